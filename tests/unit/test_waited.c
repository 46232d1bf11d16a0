// SPDX-License-Identifier: GPL-3.0-or-later
/* A child waits with a timeout, is stopped and let go again and again, and looks at the clock. */
#include "../../inject/waited.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../inject/clock.h"
#include "../../inject/mem.h"
#include "child.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define TIMEOUT_MS_WANTED 400
#define HITS		  12

enum how { EPOLL_WAIT, EPOLL_PWAIT2, SIGTIMEDWAIT, SEMTIMEDOP, RAW, KNOWN };

struct shared {
	enum how how;
	int sem;
	uint32_t done;
	uint64_t took;
	int rc, err;
};

/*
 * As gcc makes it where it sees both functions: the one called leaves rdx alone, so the other goes
 * on with it. Returns ts.
 */
const struct timespec *wait_and_go_on(const void *set, void *info, const struct timespec *ts);
__asm__(".text\n"
	"wait_for_signal:\n\t"
	"mov $8, %r10d\n\t"
	"mov $128, %eax\n\t"
	"syscall\n\t"
	"ret\n"
	".globl wait_and_go_on\n"
	"wait_and_go_on:\n\t"
	"call wait_for_signal\n\t"
	"mov %rdx, %rax\n\t"
	"ret\n");

static int one_wait(const struct shared *s, int epoll)
{
	struct timespec ts = { .tv_nsec = TIMEOUT_MS_WANTED * (long)NS_PER_MS };
	struct sembuf op = { 0, -1, 0 };
	struct epoll_event e;
	sigset_t set;
	int rc;

	switch (s->how) {
	case EPOLL_WAIT:
		return epoll_wait(epoll, &e, 1, TIMEOUT_MS_WANTED);
	case EPOLL_PWAIT2:
		return epoll_pwait2(epoll, &e, 1, &ts, NULL);
	case SIGTIMEDWAIT:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		return sigtimedwait(&set, NULL, &ts);
	case SEMTIMEDOP:
		return semtimedop(s->sem, &op, 1, &ts);
	case KNOWN:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (wait_and_go_on(&set, NULL, &ts) != &ts)
			_exit(2);
		return 0;
	case RAW:
		break;
	}
	/* the argument is read again right behind the call */
	{
		register const struct timespec *arg __asm__("r10") = &ts;
		register const void *mask __asm__("r8") = NULL;
		register long size __asm__("r9") = 8;
		const struct timespec *after;

		__asm__ volatile("syscall\n\tmov %%r10, %1\n\t"
				 : "=a"(rc), "=r"(after)
				 : "0"(441L), "D"((long)epoll), "S"(&e), "d"(1L), "r"(arg),
				   "r"(mask), "r"(size)
				 : "rcx", "r11", "memory");
		if (after != &ts)
			_exit(2);
	}
	return rc;
}

static void wait_once(void *arg)
{
	struct shared *s = arg;
	int epoll = epoll_create1(0);
	uint64_t start = clock_now();

	s->rc = one_wait(s, epoll);
	s->err = errno;
	s->took = clock_now() - start;
	__atomic_store_n(&s->done, 1, __ATOMIC_SEQ_CST);
	child_sleep(NULL);
}

/* Stops it and lets it go. Returns whether that was in a wait with a timeout of its own. */
static bool hit(const struct target *t, bool *anew)
{
	arch_regs regs, back;
	struct waited w;
	struct thread th;
	struct tracee tr;
	int memfd = mem_open_force(t->procfd);
	bool in;

	cr_assert_geq(memfd, 0);
	cr_assert_eq(thread_read(t, t->pid, &th), 0);
	waited_prepare(&w, t, &th, false);
	cr_assert_eq(tracee_seize(&tr, t->pid, PTRACE_O_TRACESYSGOOD), 0);
	cr_assert_eq(tracee_stop(&tr, clock_now() + 10 * NS_PER_SEC), 0);
	cr_assert_eq(tracee_regs(&tr, &regs), 0);
	waited_stop(&w, t, &tr, &regs);
	in = w.form != TIMEOUT_NONE;
	*anew |= w.anew;
	waited_regs(&w, &regs, &back);
	waited_write(&w, memfd, &back);
	cr_assert_eq(tracee_set_regs(&tr, &back), 0);
	cr_assert_eq(tracee_detach(&tr, 0), 0);
	close(memfd);
	return in;
}

static void check_wait(enum how how, int want_rc, int want_errno, bool can_be_kept)
{
	struct shared *s = child_shared(sizeof(*s));
	unsigned hits = 0;
	bool anew = false;
	sigset_t old;
	struct target t;
	struct diag d;
	pid_t pid;

	s->how = how;
	s->sem = semget(IPC_PRIVATE, 1, 0600);
	pid = child_start(wait_once, s);
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert(child_reach(pid, pid, 'S'));
	wait_begin(&old);
	for (int i = 0; i < HITS && !__atomic_load_n(&s->done, __ATOMIC_SEQ_CST); i++) {
		hits += hit(&t, &anew);
		clock_sleep(25 * NS_PER_MS);
	}
	wait_end(&old);
	cr_assert(child_reach_value(&s->done, 1));
	cr_expect_eq(s->rc, want_rc, "%d: returned %d, errno %d", how, s->rc, s->err);
	cr_expect(s->rc != -1 || s->err == want_errno, "%d: errno %d", how, s->err);
	cr_expect_geq(s->took, TIMEOUT_MS_WANTED * NS_PER_MS, "%d: early", how);
	cr_expect_gt(hits, 1, "%d: stopped %u times in its wait", how, hits);
	cr_expect_eq(anew, !can_be_kept, "%d", how);
	/* begun anew with the last of these it would have taken about twice as long */
	if (can_be_kept)
		cr_expect_lt(s->took, (TIMEOUT_MS_WANTED + 250) * NS_PER_MS, "%d: %llu us", how,
			     (unsigned long long)s->took / 1000);
	target_close(&t);
	child_end(pid);
	semctl(s->sem, 0, IPC_RMID);
}

Test(waited, milliseconds)
{
	check_wait(EPOLL_WAIT, 0, 0, true);
}

Test(waited, a_timespec)
{
	check_wait(EPOLL_PWAIT2, 0, 0, true);
	check_wait(SIGTIMEDWAIT, -1, EAGAIN, true);
	check_wait(SEMTIMEDOP, -1, EAGAIN, true);
}

/* Code that looks at its register again finds in it what it has put there. */
Test(waited, an_argument_that_is_read_again)
{
	check_wait(RAW, 0, 0, false);
	check_wait(KNOWN, 0, 0, false);
}

static void exec_when_told(void *go)
{
	while (!__atomic_load_n((uint32_t *)go, __ATOMIC_SEQ_CST))
		sched_yield();
	execlp("sleep", "sleep", "60", (char *)NULL);
	_exit(1);
}

/* The thread that we hold may be gone in an execve(2) of another one. */
Test(waited, another_program_is_not_written_to)
{
	uint32_t *go = child_shared(sizeof(*go));
	pid_t pid = child_start(exec_when_told, go);
	uint64_t before[2], after[2];
	arch_regs regs = { 0 };
	struct waited w = { .form = TIMEOUT_WRITTEN };
	struct thread th;
	struct target t;
	struct diag d;
	int memfd;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	memfd = mem_open_force(t.procfd);
	cr_assert_geq(memfd, 0);
	__atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
	cr_assert(child_reach_call(pid, pid, SYS_clock_nanosleep));
	cr_assert_eq(thread_read(&t, pid, &th), 0);
	w.arg = th.sp;
	w.end_ns = clock_now() + 1234 * NS_PER_SEC;
	cr_assert_eq(mem_read(pid, th.sp, before, sizeof(before)), 0);
	waited_write(&w, memfd, &regs);
	cr_assert_eq(mem_read(pid, th.sp, after, sizeof(after)), 0);
	cr_expect_arr_eq(before, after, sizeof(before));
	close(memfd);
	target_close(&t);
	child_end(pid);
}

/* The next run may be in a container whose clock is another one. */
Test(waited, a_clock_that_is_shifted)
{
	struct shared *s = child_shared(sizeof(*s));
	struct target t;
	struct diag d;
	bool anew = false;
	pid_t pid, other;
	int fd;

	s->how = SIGTIMEDWAIT;
	pid = child_start(wait_once, s);
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert(child_reach_call(pid, pid, SYS_rt_sigtimedwait));
	cr_assert(hit(&t, &anew) && !anew);
	if (unshare(CLONE_NEWTIME))
		cr_skip_test("no time namespace can be made here: %s", strerror(errno));
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "monotonic 1000 0", 16), 16);
	close(fd);
	other = fork();
	if (other == 0) {
		if (clock_is_common())
			_exit(2);
		hit(&t, &anew);
		_exit(!anew);
	}
	cr_assert_eq(waitpid(other, &fd, 0), other);
	cr_assert_eq(fd, 0, "it was not told that the wait begins anew (2: the clock is common)");
	cr_assert(child_reach_value(&s->done, 1));
	cr_expect_geq(s->took, TIMEOUT_MS_WANTED * NS_PER_MS, "early");
	target_close(&t);
	child_end(pid);
}

/* ---- a sleep counts only for the wait that it was measured of */

static void poll_long(void *unused)
{
	(void)unused;
	poll(NULL, 0, 100000);
	_exit(1);
}

enum change { SAME, OTHER_TIMEOUT, OTHER_STACK, OTHER_PLACE, AT_ITS_END };

/* How long it has waited, when it was seen in that call before it was stopped. */
static uint64_t waited_by(enum change change)
{
	pid_t pid = child_start(poll_long, NULL);
	arch_regs regs, back;
	struct diag d = { 0 };
	struct tracee tr;
	struct waited w;
	struct thread th;
	struct target t;
	sigset_t old;
	uint64_t ns;

	cr_assert(child_reach_call(pid, pid, SYS_poll));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	clock_sleep(20 * NS_PER_MS);
	cr_assert_eq(thread_read(&t, pid, &th), 0);
	th.arg[2] -= change == OTHER_TIMEOUT;
	th.sp += change == OTHER_STACK ? 16U : 0U;
	th.pc += change == OTHER_PLACE;
	waited_prepare(&w, &t, &th, false);
	if (!w.slept.ns)
		cr_skip_test("this kernel shows no /proc/PID/task/TID/sched");
	cr_assert_not(w.ends_soon);
	/* it may be another wait by now, the same call made again */
	if (change == AT_ITS_END)
		w.slept.ns = 100000 * NS_PER_MS - NS_PER_MS / 2;
	wait_begin(&old);
	cr_assert_eq(tracee_seize(&tr, pid, PTRACE_O_TRACESYSGOOD), 0);
	cr_assert_eq(tracee_stop(&tr, clock_now() + 10 * NS_PER_SEC), 0);
	cr_assert_eq(tracee_regs(&tr, &regs), 0);
	waited_stop(&w, &t, &tr, &regs);
	ns = waited_so_far(&w);
	waited_regs(&w, &regs, &back);
	cr_assert_eq(tracee_set_regs(&tr, &back), 0);
	cr_assert_eq(tracee_detach(&tr, 0), 0);
	wait_end(&old);
	target_close(&t);
	child_end(pid);
	return ns;
}

Test(waited, the_sleep_of_another_wait_is_none_of_this_one)
{
	cr_expect_gt(waited_by(SAME), 10 * NS_PER_MS);
	for (enum change c = OTHER_TIMEOUT; c <= AT_ITS_END; c++)
		cr_expect_eq(waited_by(c), 0, "%d", (int)c);
}

static void poll_again(void *unused)
{
	(void)unused;
	for (;;)
		poll(NULL, 0, 50);
}

/* Who is about to wake by itself is not stopped just then. */
Test(waited, a_wait_that_ends_soon_is_seen)
{
	pid_t pid = child_start(poll_again, NULL);
	unsigned soon = 0, early = 0;
	struct diag d = { 0 };
	struct target t;

	cr_assert(child_reach_call(pid, pid, SYS_poll));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	for (unsigned i = 0; i < 100000 && (soon < 3 || early < 3); i++) {
		struct waited w;
		struct thread th;

		cr_assert_eq(thread_read(&t, pid, &th), 0);
		waited_prepare(&w, &t, &th, false);
		soon += w.ends_soon;
		early += w.slept.ns && !w.ends_soon;
		if (w.ends_soon)
			cr_assert_gt(w.slept.ns, 40 * NS_PER_MS);
		else
			cr_assert_lt(w.slept.ns, 50 * NS_PER_MS);
		clock_sleep(NS_PER_MS / 4);
	}
	target_close(&t);
	child_end(pid);
	if (!soon && !early)
		cr_skip_test("this kernel shows no /proc/PID/task/TID/sched");
	cr_expect_geq(soon, 3);
	cr_expect_geq(early, 3);
}
