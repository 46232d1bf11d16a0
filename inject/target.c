// SPDX-License-Identifier: GPL-3.0-or-later
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cause.h"
#include "wait.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define STAT_MAX ((size_t)16 * 1024)
/* How long the end of a process may take before it is something else: a quarter of a second. */
#define ENDING_NAPS   25
#define ENDING_NAP_MS 10

/* ---- reading /proc */

/* Grows *buf so that at least one more byte and the NUL fit; never over max + 1 bytes of content.
 */
static int grow(char **buf, size_t *cap, size_t used, size_t max)
{
	size_t want;
	char *p;

	if (used + 1 < *cap)
		return 0;
	want = *cap > SIZE_MAX / 2 ? SIZE_MAX : *cap * 2;
	if (want < 4096)
		want = 4096;
	/* one byte over max tells "exactly max" from "more" */
	if (want > max + 2)
		want = max + 2;
	if (want <= used + 1)
		return -EFBIG;
	p = realloc(*buf, want);
	if (!p)
		return -ENOMEM;
	*buf = p;
	*cap = want;
	return 0;
}

/*
 * The kernel makes these files up page by page: a read is short without being the last, so only a
 * read of nothing is the end (proc(5), seq_file).
 */
static int read_all(int fd, size_t max, char **out, size_t *len)
{
	char *buf = NULL;
	size_t cap = 0, used = 0;
	int err;

	for (;;) {
		ssize_t n;

		err = grow(&buf, &cap, used, max);
		if (err)
			goto fail;
		n = read(fd, buf + used, cap - used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			goto fail;
		}
		if (n == 0)
			break;
		used += (size_t)n;
		if (used > max) {
			err = -EFBIG;
			goto fail;
		}
	}
	buf[used] = '\0';
	*out = buf;
	*len = used;
	return 0;
fail:
	free(buf);
	return err;
}

int proc_read(int dirfd, const char *path, size_t max, char **out, size_t *len)
{
	int fd, r;

	*out = NULL;
	*len = 0;
	if (max > SIZE_MAX - 2)
		max = SIZE_MAX - 2;
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = read_all(fd, max, out, len);
	close(fd);
	return r;
}

/* ---- opening */

/* What a /proc that is missing, or that shows another pid namespace than ours, says of itself. */
int target_check_proc(struct diag *d)
{
	char self[32];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	if (n < 0)
		return cause_fail(d, -ENOENT, CAUSE_NO_PROC,
				  "/proc is not mounted here or not of this pid namespace");
	self[n] = '\0';
	if (strtol(self, NULL, 10) != (long)getpid())
		return cause_fail(
			d, -ENOENT, CAUSE_NO_PROC,
			"/proc is that of another pid namespace: it calls us %s, we are %d", self,
			(int)getpid());
	return 0;
}

static int no_such_process(pid_t pid, struct diag *d)
{
	int err = target_check_proc(d);

	if (err)
		return err;
	/* signal 0 only asks; EPERM means that it is there */
	if (kill(pid, 0) == 0 || errno == EPERM)
		return cause_fail(d, -EACCES, CAUSE_HIDDEN,
				  "process %d exists, but /proc/%d is hidden from us", (int)pid,
				  (int)pid);
	return cause_fail(d, -ESRCH, CAUSE_NO_PROCESS, "no process has pid %d, it may have ended",
			  (int)pid);
}

static int check_pid(pid_t pid, struct diag *d)
{
	if (pid <= 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-pid", "give the number of a process",
				 "%d is not a pid", (int)pid);
	if (pid == getpid())
		return cause_fail(d, -EINVAL, CAUSE_OWN_PID,
				  "%d is heapmedic itself, which cannot attach to itself",
				  (int)pid);
	return 0;
}

/* Refuses what is there but has no memory of its own to look at. */
static int check_kind(pid_t pid, const struct proc_status *st, const char *stat, struct diag *d)
{
	if (st->tgid != st->pid)
		return cause_fail(d, -EINVAL, CAUSE_NOT_A_PROCESS,
				  "%d is a thread of process %d, not a process", (int)pid,
				  (int)st->tgid);
	if (st->kthread || stat_is_kthread(stat))
		return target_kernel_thread(pid, st->name, d);
	if ((st->state == 'Z' || st->state == 'X') && st->threads > 1)
		return cause_fail(
			d, -EOPNOTSUPP, CAUSE_MAIN_THREAD_ENDED,
			"the main thread of %d (%s) has ended, %d of its threads go on: the "
			"kernel shows no memory for it",
			(int)pid, st->name, st->threads - 1);
	if (st->state == 'Z' || st->state == 'X')
		return cause_fail(d, -ESRCH, CAUSE_ZOMBIE,
				  "%d (%s) is a zombie: it has ended, its parent is %d", (int)pid,
				  st->name, (int)st->ppid);
	return 0;
}

int target_kernel_thread(pid_t pid, const char *name, struct diag *d)
{
	return cause_fail(d, -EINVAL, CAUSE_KERNEL_THREAD,
			  "%d (%s) is a kernel thread: it has no user memory", (int)pid, name);
}

/* A limit of ours, of which the process knows nothing. */
static int no_descriptors(pid_t pid, const char *name, int err, struct diag *d)
{
	if (err == -ENOMEM)
		return diag_internal(d, err, "looking at the process");
	return cause_fail(d, err, CAUSE_NO_DESCRIPTORS,
			  "heapmedic has no descriptor left to open /proc/%d%s: %s", (int)pid, name,
			  strerror(-err));
}

/* Neither "no such process" nor what hidepid=2 does: the entry is there. */
static int closed_proc(pid_t pid, const char *name, int err, struct diag *d)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return no_descriptors(pid, name, err, d);
	return cause_fail(d, err, CAUSE_HIDDEN, "/proc/%d%s cannot be read: %s", (int)pid, name,
			  strerror(-err));
}

/* procfd and pidfd of t are closed by the caller on error. */
static int identify(struct target *t, struct diag *d)
{
	struct proc_status st;
	char *stat = NULL;
	size_t len;
	int err;

	err = status_read(t->procfd, "status", &st);
	if (err == -ESRCH || err == -ENOENT)
		return no_such_process(t->pid, d);
	if (err)
		return closed_proc(t->pid, "/status", err, d);
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd < 0 && errno == ESRCH)
		return no_such_process(t->pid, d);
	/*
	 * Any other refusal (ENOSYS, a seccomp filter, a tid) costs only the pidfd. What is read
	 * through procfd from here on proves that the pidfd is of the same process: procfd is tied
	 * to one process for good and answers ESRCH after it, and its pid cannot have been given
	 * to another before it was reaped.
	 */
	err = proc_read(t->procfd, "stat", STAT_MAX, &stat, &len);
	if (err == -ESRCH || err == -ENOENT)
		return no_such_process(t->pid, d);
	if (err)
		return closed_proc(t->pid, "/stat", err, d);
	if (stat_parse(stat, NULL, &t->start_time, NULL) ||
	    stat_comm(stat, t->comm, sizeof(t->comm)))
		err = diag_internal(d, -EBADMSG, "/proc/PID/stat has an unknown form");
	else
		err = check_kind(t->pid, &st, stat, d);
	free(stat);
	return err;
}

/* The main thread is on its way out, or out. */
static bool main_thread_exiting(const struct target *t)
{
	uint64_t start;
	char *stat, state;
	size_t len;
	bool exiting;

	if (proc_read(t->procfd, "stat", STAT_MAX, &stat, &len))
		return true;
	exiting = stat_is_exiting(stat) || stat_parse(stat, &state, &start, NULL) || state == 'Z' ||
		  state == 'X';
	free(stat);
	return exiting;
}

/*
 * Without its main thread a process ends, goes on like that for good, or is in an execve(2) of
 * another thread, which then has the place of the main thread. What it is decides itself soon.
 */
static int main_thread_ended(struct target *t, struct diag *d)
{
	if (target_ending(t, false))
		return target_gone(t, d);
	if (main_thread_exiting(t))
		return -EOPNOTSUPP;
	diag_clear(d);
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
	return identify(t, d);
}

int target_open(pid_t pid, struct target *t, struct diag *d)
{
	char path[32];
	int err;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->pidfd = t->procfd = -1;
	err = check_pid(pid, d);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	t->procfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->procfd < 0 && (errno == ENOENT || errno == ESRCH))
		return no_such_process(pid, d);
	if (t->procfd < 0)
		return closed_proc(pid, "", -errno, d);
	/* a /proc of another pid namespace would show a stranger under that number */
	err = target_check_proc(d);
	if (!err)
		err = identify(t, d);
	if (err == -EOPNOTSUPP)
		err = main_thread_ended(t, d);
	if (err)
		target_close(t);
	return err;
}

void target_close(struct target *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	if (t->procfd >= 0)
		close(t->procfd);
	t->pidfd = t->procfd = -1;
}

bool target_alive(const struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };
	uint64_t start;
	char *stat, state;
	size_t len;
	int r;

	/*
	 * A pidfd is readable once the whole thread group has ended (pidfd_open(2)). The state in
	 * stat is only that of the main thread, which may have ended before the others. A poll that
	 * a signal breaks off (EINTR, also without a wait) says nothing.
	 */
	if (t->pidfd >= 0)
		return poll(&p, 1, 0) <= 0;
	if (proc_read(t->procfd, "stat", STAT_MAX, &stat, &len))
		return false;
	r = stat_parse(stat, &state, &start, NULL);
	free(stat);
	return r == 0 && start == t->start_time && state != 'Z' && state != 'X';
}

int target_gone(const struct target *t, struct diag *d)
{
	return cause_fail(d, -ESRCH, CAUSE_GONE, "process %d (%s) has ended", (int)t->pid, t->comm);
}

int target_changed(const struct target *t, enum target_change how, struct diag *d)
{
	static const char *const text[] = {
		[TARGET_IS_ANOTHER] = "runs another program than a moment ago; nothing was touched",
		[TARGET_CHANGED_MEANWHILE] =
			"has executed another program or loaded a library meanwhile",
		[TARGET_CHANGES_ALWAYS] = "becomes another program all the time",
	};

	return cause_fail(d, -ESTALE, CAUSE_PROGRAM_CHANGED, "process %d (%s) %s", (int)t->pid,
			  t->comm, text[how]);
}

int target_unreadable(const struct target *t, const char *name, int err, struct diag *d)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return no_descriptors(t->pid, name, err, d);
	if (err == -ESRCH || err == -ENOENT || !target_alive(t))
		return target_gone(t, d);
	return diag_internal(d, err, name);
}

bool target_ending(const struct target *t, bool suspected)
{
	const struct timespec nap = { .tv_nsec = ENDING_NAP_MS * 1000000L };

	if (!target_alive(t))
		return true;
	if (!suspected && !main_thread_exiting(t))
		return false;
	for (int i = 0; i < ENDING_NAPS; i++) {
		nanosleep(&nap, NULL);
		(void)wait_deaths();
		if (!target_alive(t))
			return true;
		if (!suspected && !main_thread_exiting(t))
			return false;
	}
	return false;
}
