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

Test(stray, is_waited_for_at_the_end)
{
	pid_t pid = stray_make();

	stray_settle(20 * NS_PER_SEC);
	cr_assert(!is_traced(pid), "it still stands there");
	end(pid);
}
