// SPDX-License-Identifier: GPL-3.0-or-later
/* The facts about restarting are held against the kernel that runs the tests: a child waits in the
 * call, is stopped by ptrace, and the result register says what the kernel means to do. */
#include "../../inject/syscalls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

static const struct timespec hour = { 3600, 0 };

static int an_epoll(void)
{
	return epoll_create1(0);
}

/* A connected socket; with a receive timeout if asked for. */
static int a_socket(bool timeout)
{
	struct timeval tv = { 3600, 0 };
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		_exit(1);
	if (timeout)
		setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd[0];
}

static int a_pipe(int end)
{
	int fd[2];

	if (pipe(fd))
		_exit(1);
	return fd[end];
}

static int a_listener(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	/* an empty name: the kernel finds one */
	if (bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)) || listen(fd, 1))
		_exit(1);
	return fd;
}

static void do_futex(void *unused)
{
	uint32_t word = 0;

	(void)unused;
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void do_futex_timed(void *unused)
{
	uint32_t word = 0;

	(void)unused;
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, &hour, NULL, 0);
}

static struct timespec in_an_hour(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 3600;
	return t;
}

static void wait_vector(const struct timespec *until)
{
	static uint32_t word;
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} w = { 0, (uint64_t)(uintptr_t)&word, 2 /* 32 bits */, 0 };

	syscall(449, &w, 1, 0, until, CLOCK_MONOTONIC);
}

static void do_futex_waitv(void *unused)
{
	(void)unused;
	wait_vector(NULL);
}

static void do_futex_waitv_timed(void *unused)
{
	struct timespec t = in_an_hour();

	(void)unused;
	wait_vector(&t);
}

static void do_futex_wait(void *unused)
{
	static uint32_t word;

	(void)unused;
	syscall(455, &word, 0UL, ~0UL, 2 /* 32 bits */, NULL, CLOCK_MONOTONIC);
}

static void do_nanosleep(void *unused)
{
	(void)unused;
	syscall(SYS_nanosleep, &hour, NULL);
}

static void do_clock_nanosleep(void *unused)
{
	struct timespec t = in_an_hour();

	(void)unused;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void do_poll(void *unused)
{
	struct pollfd p = { a_pipe(0), POLLIN, 0 };

	(void)unused;
	syscall(SYS_poll, &p, 1, -1);
}

/* The kernel writes the remaining time back before it restarts; "hour" is in read-only memory. */
static void do_ppoll(void *unused)
{
	struct pollfd p = { a_pipe(0), POLLIN, 0 };

	(void)unused;
	syscall(SYS_ppoll, &p, 1, &hour, NULL, 8);
}

static void do_select(void *unused)
{
	(void)unused;
	syscall(SYS_select, 0, NULL, NULL, NULL, NULL);
}

static void do_pselect6(void *unused)
{
	(void)unused;
	syscall(SYS_pselect6, 0, NULL, NULL, NULL, &hour, NULL);
}

static void do_wait4(void *unused)
{
	(void)unused;
	child_start(child_sleep, NULL);
	syscall(SYS_wait4, -1, NULL, 0, NULL);
}

static void do_waitid(void *unused)
{
	siginfo_t info;

	(void)unused;
	child_start(child_sleep, NULL);
	syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL);
}

static int a_locked_file(void)
{
	char path[] = "/tmp/lock_XXXXXX";
	int fd = mkstemp(path), other = open(path, O_RDWR);

	unlink(path);
	if (fd < 0 || flock(other, LOCK_EX))
		_exit(1);
	return fd;
}

static void do_flock(void *unused)
{
	(void)unused;
	syscall(SYS_flock, a_locked_file(), LOCK_EX);
}

static void hold_record_lock(void *fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	fcntl(*(int *)fd, F_SETLK, &l);
	child_sleep(NULL);
}

static void do_fcntl(void *unused)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = a_locked_file();
	pid_t holder = child_start(hold_record_lock, &fd);

	(void)unused;
	if (!child_reach_call(holder, holder, SYS_pause))
		_exit(1);
	syscall(SYS_fcntl, fd, F_SETLKW, &l);
}

static void do_msgrcv(void *id)
{
	struct {
		long type;
		char text[8];
	} m;

	syscall(SYS_msgrcv, *(int *)id, &m, sizeof(m.text), 0, 0);
}

static void do_semop(void *id)
{
	struct sembuf op = { 0, -1, 0 };

	syscall(SYS_semtimedop, *(int *)id, &op, 1, NULL);
}

static void do_rt_sigtimedwait(void *unused)
{
	sigset_t set;
	siginfo_t info;

	(void)unused;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	syscall(SYS_rt_sigtimedwait, &set, &info, NULL, 8);
}

static void do_rt_sigsuspend(void *unused)
{
	sigset_t set;

	(void)unused;
	sigemptyset(&set);
	syscall(SYS_rt_sigsuspend, &set, 8);
}

static void do_epoll_wait(void *unused)
{
	struct epoll_event e;

	(void)unused;
	syscall(SYS_epoll_wait, an_epoll(), &e, 1, -1);
}

static void do_epoll_pwait(void *unused)
{
	struct epoll_event e;

	(void)unused;
	syscall(SYS_epoll_pwait, an_epoll(), &e, 1, 3600000, NULL, 8);
}

static void do_epoll_pwait2(void *unused)
{
	struct epoll_event e;

	(void)unused;
	syscall(441, an_epoll(), &e, 1, &hour, NULL, 8);
}

static aio_context_t an_aio(void)
{
	aio_context_t c = 0;

	if (syscall(SYS_io_setup, 4, &c))
		_exit(1);
	return c;
}

static void do_io_getevents(void *unused)
{
	struct io_event e;

	(void)unused;
	syscall(SYS_io_getevents, an_aio(), 1, 1, &e, NULL);
}

static void do_io_pgetevents(void *unused)
{
	struct io_event e;

	(void)unused;
	syscall(SYS_io_pgetevents, an_aio(), 1, 1, &e, NULL, NULL);
}

static void do_io_uring_enter(void *unused)
{
	char params[120] = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, params);

	(void)unused;
	syscall(SYS_io_uring_enter, fd, 0, 1, 1 /* wait for events */, NULL, 0);
}

static void do_read_pipe(void *unused)
{
	char c;

	(void)unused;
	syscall(SYS_read, a_pipe(0), &c, 1);
}

static void do_read_socket_timed(void *unused)
{
	char c;

	(void)unused;
	syscall(SYS_read, a_socket(true), &c, 1);
}

static void do_write_pipe(void *unused)
{
	int fd[2];
	char block[4096] = { 0 };

	(void)unused;
	if (pipe(fd))
		_exit(1);
	fcntl(fd[1], F_SETFL, O_NONBLOCK);
	while (write(fd[1], block, sizeof(block)) > 0)
		;
	fcntl(fd[1], F_SETFL, 0);
	syscall(SYS_write, fd[1], block, sizeof(block));
}

static void do_accept4(void *unused)
{
	(void)unused;
	syscall(SYS_accept4, a_listener(), NULL, NULL, 0);
}

static void do_recvfrom(void *unused)
{
	char c;

	(void)unused;
	syscall(SYS_recvfrom, a_socket(false), &c, 1, 0, NULL, NULL);
}

static void do_recvfrom_timed(void *unused)
{
	char c;

	(void)unused;
	syscall(SYS_recvfrom, a_socket(true), &c, 1, 0, NULL, NULL);
}

static void do_recvmsg(void *unused)
{
	struct msghdr m = { 0 };

	(void)unused;
	syscall(SYS_recvmsg, a_socket(false), &m, 0);
}

static void do_recvmmsg(void *unused)
{
	struct mmsghdr m[2] = { 0 };

	(void)unused;
	syscall(SYS_recvmmsg, a_socket(false), m, 1, 0, NULL);
}

static void do_open_fifo(void *unused)
{
	char dir[] = "/tmp/fifo_XXXXXX", path[64];
	int fd;

	(void)unused;
	if (!mkdtemp(dir) || chdir(dir) || mkfifo("f", 0600))
		_exit(1);
	/* the name is not needed to open it again */
	fd = open("f", O_PATH);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (unlink("f") || rmdir(dir))
		_exit(1);
	syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
}

static void do_pause(void *unused)
{
	(void)unused;
	syscall(SYS_pause);
}

static const struct wait_case {
	const char *name;
	long nr;
	void (*fn)(void *);
	enum restart_kind want; /* what this very call does: a plain read restarts by itself */
} cases[] = {
	{ "futex", SYS_futex, do_futex, RESTART_KERNEL },
	{ "futex timed", SYS_futex, do_futex_timed, RESTART_KERNEL },
	{ "futex_waitv", 449, do_futex_waitv, RESTART_HEAL },
	{ "futex_waitv timed", 449, do_futex_waitv_timed, RESTART_HEAL },
	{ "futex_wait", 455, do_futex_wait, RESTART_KERNEL },
	{ "nanosleep", SYS_nanosleep, do_nanosleep, RESTART_KERNEL },
	{ "clock_nanosleep", SYS_clock_nanosleep, do_clock_nanosleep, RESTART_KERNEL },
	{ "poll", SYS_poll, do_poll, RESTART_KERNEL },
	{ "ppoll", SYS_ppoll, do_ppoll, RESTART_HEAL },
	{ "select", SYS_select, do_select, RESTART_KERNEL },
	{ "pselect6", SYS_pselect6, do_pselect6, RESTART_HEAL },
	{ "wait4", SYS_wait4, do_wait4, RESTART_KERNEL },
	{ "waitid", SYS_waitid, do_waitid, RESTART_KERNEL },
	{ "flock", SYS_flock, do_flock, RESTART_KERNEL },
	{ "fcntl F_SETLKW", SYS_fcntl, do_fcntl, RESTART_KERNEL },
	{ "rt_sigsuspend", SYS_rt_sigsuspend, do_rt_sigsuspend, RESTART_KERNEL },
	{ "pause", SYS_pause, do_pause, RESTART_KERNEL },
	{ "openat of a FIFO", SYS_openat, do_open_fifo, RESTART_KERNEL },
	{ "io_pgetevents", SYS_io_pgetevents, do_io_pgetevents, RESTART_KERNEL },
	{ "read of a pipe", SYS_read, do_read_pipe, RESTART_KERNEL },
	{ "write to a full pipe", SYS_write, do_write_pipe, RESTART_KERNEL },
	{ "accept4", SYS_accept4, do_accept4, RESTART_KERNEL },
	{ "recvfrom", SYS_recvfrom, do_recvfrom, RESTART_KERNEL },
	{ "recvmsg", SYS_recvmsg, do_recvmsg, RESTART_KERNEL },
	{ "recvmmsg", SYS_recvmmsg, do_recvmmsg, RESTART_KERNEL },
	{ "recvfrom with a timeout", SYS_recvfrom, do_recvfrom_timed, RESTART_HEAL },
	{ "read with a timeout", SYS_read, do_read_socket_timed, RESTART_HEAL },
	{ "epoll_wait", SYS_epoll_wait, do_epoll_wait, RESTART_HEAL },
	{ "epoll_pwait", SYS_epoll_pwait, do_epoll_pwait, RESTART_HEAL },
	{ "epoll_pwait2", 441, do_epoll_pwait2, RESTART_HEAL },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait, do_rt_sigtimedwait, RESTART_HEAL },
	{ "io_getevents", SYS_io_getevents, do_io_getevents, RESTART_HEAL },
	{ "io_uring_enter", SYS_io_uring_enter, do_io_uring_enter, RESTART_HEAL },
};

/* The result register of a child that is stopped in its call; 0 if it never got there. */
static long stopped_result(pid_t pid, long nr)
{
	struct user_regs_struct regs;
	int status;

	if (!child_reach_call(pid, pid, nr))
		return 0;
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
	cr_assert_eq((long)regs.orig_rax, nr);
	return (long)regs.rax;
}

static void check_result(const char *name, long nr, long rax, enum restart_kind want)
{
	const struct syscall_fact *f = syscall_fact(nr);

	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK */
	bool restarts = rax == -512 || rax == -513 || rax == -514 || rax == -516;

	cr_assert_not_null(f, "%s", name);
	cr_expect(f->waits, "%s", name);
	/* kernels differ in what they restart; one that does where we would heal needs no healing
	 */
	cr_expect(restarts || (want == RESTART_HEAL && rax == -EINTR), "%s: the kernel says %ld",
		  name, rax);
	/* the table may be more careful than this one call needs, never less */
	cr_expect_geq(f->restart, want, "%s", name);
	cr_expect_neq(f->restart, RESTART_NEVER, "%s", name);
}

Test(syscalls, the_kernel_agrees)
{
	unsigned seen = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wait_case *c = &cases[i];
		pid_t pid = child_start(c->fn, NULL);
		long rax;

		/* a call that this kernel lacks or forbids returns at once, and the child ends */
		rax = stopped_result(pid, c->nr);
		child_end(pid);
		if (rax == 0)
			continue;
		seen++;
		check_result(c->name, c->nr, rax, c->want);
	}
	cr_assert_geq(seen, 25, "only %u calls could be tried", seen);
}

Test(syscalls, semaphores_and_message_queues)
{
	int sem = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
	pid_t a, b;
	long ra, rb;

	if (sem < 0 || queue < 0)
		cr_skip_test("no System V semaphores or message queues here");
	a = child_start(do_semop, &sem);
	b = child_start(do_msgrcv, &queue);
	ra = stopped_result(a, SYS_semtimedop);
	rb = stopped_result(b, SYS_msgrcv);
	child_end(a);
	child_end(b);
	semctl(sem, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	check_result("semtimedop", SYS_semtimedop, ra, RESTART_HEAL);
	check_result("msgrcv", SYS_msgrcv, rb, RESTART_KERNEL);
}

Test(syscalls, what_cannot_be_undone)
{
	uint64_t a[6] = { 3, 0x1000, 100, 0, 0, 0 };

	cr_expect_eq(syscall_restart(SYS_write, a), RESTART_HEAL);
	cr_expect_eq(syscall_restart(SYS_recvfrom, a), RESTART_HEAL);
	cr_expect_eq(syscall_restart(SYS_recvmsg, a), RESTART_HEAL);
	a[2] = 4097; /* may be half written */
	cr_expect_eq(syscall_restart(SYS_write, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_sendto, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_sendmsg, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_writev, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_read, a), RESTART_HEAL);
	a[2] = a[3] = MSG_WAITALL;
	cr_expect_eq(syscall_restart(SYS_recvfrom, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_recvmsg, a), RESTART_NEVER);
	a[2] = 8; /* messages */
	a[3] = 0;
	cr_expect_eq(syscall_restart(SYS_recvmmsg, a), RESTART_NEVER);
	a[3] = MSG_WAITFORONE;
	cr_expect_eq(syscall_restart(SYS_recvmmsg, a), RESTART_HEAL);
	a[1] = 0; /* submits nothing, waits for one */
	a[2] = 1;
	cr_expect_eq(syscall_restart(SYS_io_uring_enter, a), RESTART_HEAL);
	a[1] = 1;
	cr_expect_eq(syscall_restart(SYS_io_uring_enter, a), RESTART_NEVER);
	a[1] = 0;
	a[2] = 2;
	cr_expect_eq(syscall_restart(SYS_io_uring_enter, a), RESTART_NEVER);
}

Test(syscalls, never)
{
	const uint64_t a[6] = { 0 };

	cr_expect_eq(syscall_restart(SYS_close, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_connect, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(-1, a), RESTART_NEVER);
	cr_expect_eq(syscall_restart(SYS_madvise, a), RESTART_NEVER);
	cr_expect_null(syscall_fact(SYS_madvise));
	cr_expect_null(syscall_fact(-1));
	cr_expect_null(syscall_fact(1L << 40));
}
