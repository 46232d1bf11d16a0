// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/target.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

static void expect_refused(pid_t pid, int err, enum hm_exit code, const char *word)
{
	struct target t;
	struct diag d;

	diag_clear(&d);
	cr_expect_eq(target_open(pid, &t, &d), err, "pid %d: %s", (int)pid, d.text);
	cr_expect_eq(d.exit, code, "pid %d: %s", (int)pid, d.text);
	cr_expect_str_eq(d.code, word);
	cr_expect_eq(t.procfd, -1);
	cr_expect_eq(t.pidfd, -1);
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	cr_assert_not_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

Test(target, opens_a_child)
{
	pid_t pid = child_start(child_sleep, NULL);
	int before = open_fds();
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(t.pid, pid);
	cr_assert_geq(t.procfd, 0);
	cr_assert_gt(t.start_time, 0);
	cr_assert_gt(strlen(t.comm), 0);
	cr_assert(target_alive(&t));
	kill(pid, SIGKILL);
	/* a zombie first, then nothing: dead both times */
	cr_assert(child_reach(pid, pid, 'Z'));
	cr_assert(!target_alive(&t));
	child_end(pid);
	cr_assert(!target_alive(&t));
	cr_assert_eq(target_gone(&t, &d), -ESRCH);
	cr_assert_eq(d.exit, HM_GONE);
	target_close(&t);
	cr_assert_eq(open_fds(), before);
}

/* One cause, whoever finds out. */
Test(target, another_program_is_one_cause)
{
	const struct target t = { .pid = 7, .comm = "x" };
	char before[sizeof(((struct diag *)0)->text)] = "";

	for (int how = TARGET_IS_ANOTHER; how <= TARGET_CHANGES_ALWAYS; how++) {
		struct diag d = { 0 };

		cr_expect_eq(target_changed(&t, (enum target_change)how, &d), -ESTALE);
		cr_expect_eq(d.exit, HM_UNSAFE);
		cr_expect_str_eq(d.code, "program-changed");
		cr_expect_eq(strncmp(d.text, "process 7 (x) ", 14), 0, "%s", d.text);
		cr_expect_str_neq(d.text, before);
		snprintf(before, sizeof(before), "%s", d.text);
	}
}

Test(target, alive_without_a_pidfd)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	if (t.pidfd >= 0)
		close(t.pidfd);
	t.pidfd = -1;
	cr_assert(target_alive(&t));
	t.start_time++; /* as if the pid had been given to another */
	cr_assert(!target_alive(&t));
	t.start_time--;
	kill(pid, SIGKILL);
	cr_assert(child_reach(pid, pid, 'Z'));
	cr_assert(!target_alive(&t));
	child_end(pid);
	target_close(&t);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Signals of ours, at whatever instant, do not look like the target's end. */
Test(target, alive_while_signals_arrive)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm };
	pid_t pid = child_start(child_sleep, NULL);
	unsigned dead = 0;
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(sigaction(SIGALRM, &sa, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 200000; i++)
		dead += !target_alive(&t);
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	cr_assert_eq(dead, 0, "said to have ended %u times", dead);
	child_end(pid);
	target_close(&t);
}

Test(target, refuses_what_is_no_process)
{
	pid_t gone = child_start(child_sleep, NULL);
	int before = open_fds();

	expect_refused(0, -EINVAL, HM_USAGE, "bad-pid");
	expect_refused(-5, -EINVAL, HM_USAGE, "bad-pid");
	expect_refused(getpid(), -EINVAL, HM_USAGE, "own-pid");
	child_end(gone);
	expect_refused(gone, -ESRCH, HM_GONE, "no-process");
	expect_refused(INT32_MAX, -ESRCH, HM_GONE, "no-process");
	cr_assert_eq(open_fds(), before);
}

Test(target, refuses_a_zombie)
{
	pid_t pid = child_start(child_sleep, NULL);
	int before = open_fds();

	kill(pid, SIGKILL);
	cr_assert(child_reach(pid, pid, 'Z'));
	expect_refused(pid, -ESRCH, HM_GONE, "zombie");
	cr_assert_eq(open_fds(), before);
	child_end(pid);
}

Test(target, refuses_a_kernel_thread)
{
	struct proc_status st;

	/* pid 2 is kthreadd, unless this is a container */
	if (status_read(AT_FDCWD, "/proc/2/status", &st) || strcmp(st.name, "kthreadd") != 0)
		cr_skip_test("no kernel thread can be seen from here (a pid namespace of its own)");
	expect_refused(2, -EINVAL, HM_UNSUPPORTED, "kernel-thread");
}

static void *sleep_thread(void *tid)
{
	__atomic_store_n((uint32_t *)tid, (uint32_t)gettid(), __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

static void with_thread(void *tid)
{
	pthread_t th;

	if (pthread_create(&th, NULL, sleep_thread, tid) == 0)
		child_sleep(NULL);
}

static void without_main(void *tid)
{
	pthread_t th;

	if (pthread_create(&th, NULL, sleep_thread, tid) == 0)
		syscall(SYS_exit, 0);
}

Test(target, refuses_a_thread_and_names_its_process)
{
	uint32_t *tid = child_shared(sizeof(*tid));
	pid_t pid = child_start(with_thread, tid);
	struct target t;
	struct diag d;
	char number[16];

	cr_assert(child_reach_value(tid, 1));
	expect_refused((pid_t)*tid, -EINVAL, HM_USAGE, "not-a-process");
	cr_assert_eq(target_open((pid_t)*tid, &t, &d), -EINVAL);
	snprintf(number, sizeof(number), "%d", (int)pid);
	cr_assert_not_null(strstr(d.text, number), "%s", d.text);
	child_end(pid);
}

Test(target, refuses_a_process_whose_main_thread_has_ended)
{
	uint32_t *tid = child_shared(sizeof(*tid));
	pid_t pid = child_start(without_main, tid);

	cr_assert(child_reach_value(tid, 1));
	cr_assert(child_reach(pid, pid, 'Z'));
	expect_refused(pid, -EOPNOTSUPP, HM_UNSUPPORTED, "main-thread-ended");
	child_end(pid);
}

static void odd_name(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "a) R\n\x1b[2J");
	child_sleep(NULL);
}

Test(target, comm_is_escaped)
{
	pid_t pid = child_start(odd_name, NULL);
	struct target t;
	struct diag d;

	cr_assert(child_reach_call(pid, pid, SYS_pause));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_str_eq(t.comm, "a) R\\n\\x1b[2J");
	target_close(&t);
	child_end(pid);
}

Test(target, proc_read_is_bounded)
{
	char path[] = "/tmp/proc_read_XXXXXX";
	int fd = mkstemp(path);
	char *text, block[5000];
	size_t len;

	cr_assert_geq(fd, 0);
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 4; i++)
		cr_assert_eq(write(fd, block, sizeof(block)), sizeof(block));
	cr_assert_eq(proc_read(AT_FDCWD, path, 20000, &text, &len), 0);
	cr_assert_eq(len, 20000);
	cr_assert_eq(strlen(text), 20000);
	free(text);
	cr_assert_eq(proc_read(AT_FDCWD, path, 19999, &text, &len), -EFBIG);
	cr_assert_null(text);
	cr_assert_eq(proc_read(AT_FDCWD, path, 0, &text, &len), -EFBIG);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(proc_read(AT_FDCWD, path, 0, &text, &len), 0);
	cr_assert_str_eq(text, "");
	free(text);
	unlink(path);
	cr_assert_eq(proc_read(AT_FDCWD, path, 100, &text, &len), -ENOENT);
	close(fd);
}
