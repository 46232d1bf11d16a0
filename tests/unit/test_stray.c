// SPDX-License-Identifier: GPL-3.0-or-later
/* A thread that was asked to stop and could not is let go of as soon as it does, whatever we wait
 * for meanwhile. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/clock.h"
#include "../../inject/stray.h"
#include "../../inject/target.h"
#include "../../inject/wait.h"
#include "child.h"

#define STUCK_MS 300

/* The parent of vfork(2) waits where nothing but SIGKILL gets it out. */
static void stuck_then_sleep(void *unused)
{
	pid_t pid = vfork();

	if (pid == 0) {
		clock_sleep(STUCK_MS * NS_PER_MS);
		_exit(0);
	}
	child_sleep(unused);
}

static bool is_traced(pid_t pid)
{
	struct proc_status st;
	struct target t;
	struct diag d = { 0 };
	bool traced;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(status_read(t.procfd, "status", &st), 0);
	traced = st.tracer != 0;
	target_close(&t);
	return traced;
}

/* A child that was asked to stop while it was stuck. */
static pid_t stray_make(void)
{
	pid_t pid = child_start(stuck_then_sleep, NULL);
	struct tracee th;

	clock_sleep(STUCK_MS / 3 * NS_PER_MS);
	cr_assert_eq(tracee_seize(&th, pid, 0), 0);
	cr_assert_eq(tracee_stop(&th, clock_now() + 20 * NS_PER_MS), -ETIMEDOUT,
		     "it was not stuck");
	stray_add(&th);
	cr_assert(!th.seized, "it has been taken over");
	cr_assert(is_traced(pid));
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, __WALL), pid);
}

Test(stray, is_let_go_while_we_sleep)
{
	pid_t pid = stray_make();

	stray_sleep(20 * STUCK_MS * NS_PER_MS / 10);
	cr_assert(!is_traced(pid), "it still stands there");
	end(pid);
}

Test(stray, is_let_go_while_we_wait_for_another)
{
	pid_t pid = stray_make(), other = child_start(child_sleep, NULL);
	struct tracee th;
	struct event ev;
	sigset_t old;

	wait_begin(&old);
	cr_assert_eq(tracee_seize(&th, other, 0), 0);
	cr_assert_eq(wait_event(other, clock_now() + 2 * STUCK_MS * NS_PER_MS, NULL, &ev), 0);
	cr_assert_eq(ev.kind, EV_NONE);
	cr_assert(!is_traced(pid), "it still stands there");
	wait_end(&old);
	end(other);
	end(pid);
}

static volatile sig_atomic_t *handled;

static void handler(int sig)
{
	(void)sig;
	*handled = 1;
}

static void catch_then_sleep(void *flag)
{
	handled = flag;
	signal(SIGSEGV, handler);
	child_sleep(NULL);
}

/* A signal that somebody has sent starts no handler where code of ours runs, and is not lost. */
Test(stray, takes_no_handler_into_code_of_ours)
{
	sig_atomic_t *flag = child_shared(sizeof(*flag));
	pid_t pid = child_start(catch_then_sleep, flag);
	struct proc_status st;
	struct target t;
	struct tracee th;
	struct diag d = { 0 };

	cr_assert(child_reach(pid, pid, 'S'));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(tracee_seize(&th, pid, 0), 0);
	cr_assert_eq(kill(pid, SIGSEGV), 0);
	cr_assert_eq(tracee_wait(&th, clock_now() + 20 * NS_PER_SEC, NULL), 0);
	cr_assert_eq(th.event.kind, EV_SIGNAL);
	th.lent = true;
	stray_add(&th);
	cr_assert_eq(stray_collect(), 0);
	cr_assert(!is_traced(pid));
	cr_assert(child_reach(pid, pid, 'S'));
	cr_assert_eq(status_read(t.procfd, "status", &st), 0);
	cr_expect_eq(*flag, 0, "its handler has run");
	cr_expect((st.sig_pending | st.shd_pending) >> (SIGSEGV - 1) & 1, "the signal is gone");
	target_close(&t);
	end(pid);
}

Test(stray, is_waited_for_at_the_end)
{
	pid_t pid = stray_make();

	stray_settle(20 * NS_PER_SEC);
	cr_assert(!is_traced(pid), "it still stands there");
	end(pid);
}
