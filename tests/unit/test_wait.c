// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/clock.h"
#include "../../inject/tracer.h"
#include "../../inject/wait.h"
#include "child.h"

static enum event_kind kind_of(int status)
{
	struct event ev;

	event_classify(1, status, &ev);
	return ev.kind;
}

static int stop(int sig, int event)
{
	return (event << 16) | (sig << 8) | 0x7f;
}

Test(wait, each_status_has_one_meaning)
{
	cr_expect_eq(kind_of(stop(SIGTRAP, PTRACE_EVENT_STOP)), EV_TRAP);
	cr_expect_eq(kind_of(stop(SIGSTOP, PTRACE_EVENT_STOP)), EV_GROUP_STOP);
	cr_expect_eq(kind_of(stop(SIGTSTP, PTRACE_EVENT_STOP)), EV_GROUP_STOP);
	cr_expect_eq(kind_of(stop(SIGTRAP | 0x80, 0)), EV_SYSCALL);
	cr_expect_eq(kind_of(stop(SIGTRAP, PTRACE_EVENT_CLONE)), EV_CLONE);
	cr_expect_eq(kind_of(stop(SIGTRAP, PTRACE_EVENT_EXEC)), EV_OTHER);
	cr_expect_eq(kind_of(stop(SIGTRAP, 0)), EV_SIGNAL, "a SIGTRAP of the application");
	cr_expect_eq(kind_of(stop(SIGSTOP, 0)), EV_SIGNAL, "the signal, before the group stops");
	cr_expect_eq(kind_of(stop(33, 0)), EV_SIGNAL);
	cr_expect_eq(kind_of(0), EV_EXITED);
	cr_expect_eq(kind_of(SIGKILL), EV_EXITED);
}

/* ---- a thread that is killed while we wait for another */

#define LONG (20 * NS_PER_SEC)

/* Shared by a test and its child. */
struct team {
	_Atomic uint32_t side; /* tid of a second thread */
	_Atomic uint32_t third;
	_Atomic uint32_t go; /* the third one executes another program then */
};

static void *stays(void *arg)
{
	struct team *t = arg;

	t->side = (uint32_t)gettid();
	child_sleep(NULL);
	return NULL;
}

static void *executes(void *arg)
{
	struct team *t = arg;

	t->third = (uint32_t)gettid();
	while (!t->go)
		clock_sleep(NS_PER_MS);
	execl("/bin/true", "true", (char *)NULL);
	return NULL;
}

static void three_threads(void *arg)
{
	pthread_t a, b;

	if (pthread_create(&a, NULL, stays, arg) || pthread_create(&b, NULL, executes, arg))
		_exit(1);
	child_sleep(NULL);
}

static void hold(struct tracee *th, pid_t tid)
{
	cr_assert_eq(tracee_seize(th, tid, 0), 0);
	cr_assert_eq(tracee_stop(th, clock_now() + LONG), 0);
}

/* Starts the child; its main thread and the second one are held. */
static pid_t team_start(struct team *t, struct tracee *leader, struct tracee *side)
{
	pid_t pid = child_start(three_threads, t);

	while (!t->side || !t->third)
		clock_sleep(NS_PER_MS);
	hold(leader, pid);
	hold(side, (pid_t)t->side);
	return pid;
}

Test(wait, a_stop_is_left_to_who_traces)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct tracee th;
	struct event ev;

	cr_assert_eq(tracee_seize(&th, pid, 0), 0);
	cr_assert_eq(tracee_interrupt(&th), 0);
	wait_death(pid);
	cr_assert(child_reach(pid, pid, 't'));
	cr_assert_eq(wait_deaths(), 1);
	cr_assert_eq(wait_event(pid, 0, NULL, &ev), 0);
	cr_assert_eq(ev.kind, EV_TRAP, "its stop was taken away");
	kill(pid, SIGKILL);
	for (uint64_t end = clock_now() + LONG; wait_deaths() && clock_now() < end;)
		sched_yield();
	cr_assert_eq(wait_deaths(), 0);
	cr_assert_eq(waitpid(pid, NULL, __WALL), -1, "its end was collected");
	cr_assert_eq(errno, ECHILD);
}

/* The third thread takes the number of the main one when it executes, which we do not trace. */
Test(wait, an_execve_does_not_wait_for_us)
{
	struct team *t = child_shared(sizeof(*t));
	struct tracee leader, side;
	pid_t pid = team_start(t, &leader, &side);
	struct event ev;
	sigset_t old;

	wait_begin(&old);
	wait_death(side.tid);
	wait_death(side.tid);
	cr_assert_eq(wait_deaths(), 1, "it lives, and stands there once");
	t->go = 1;
	cr_assert_eq(wait_event(leader.tid, clock_now() + LONG, NULL, &ev), 0);
	/* the program that it has become ends, as our child */
	cr_assert_eq(ev.kind, EV_EXITED, "the execve waited for us");
	cr_assert(WIFEXITED(ev.status));
	cr_assert_eq(wait_deaths(), 0);
	wait_end(&old);
	(void)pid;
}

Test(wait, who_is_let_go_of_dead_keeps_nobody_waiting)
{
	struct team *t = child_shared(sizeof(*t));
	struct tracee leader, side;
	pid_t pid = team_start(t, &leader, &side);
	arch_regs regs;

	t->go = 1;
	/* from here on they are killed, or will be at any moment */
	while (tracee_regs(&side, &regs) == 0)
		sched_yield();
	cr_assert_eq(tracee_detach(&leader, 0), 0);
	cr_assert_eq(tracee_detach(&side, 0), 0);
	cr_assert(!leader.seized && !side.seized);
	for (uint64_t end = clock_now() + LONG; clock_now() < end; clock_sleep(NS_PER_MS)) {
		(void)wait_deaths();
		/* it is our child: its end may be the one that was collected just now */
		if (waitpid(pid, NULL, WNOHANG) == pid || kill(pid, 0))
			return;
	}
	cr_assert_fail("the execve waited for us");
}
