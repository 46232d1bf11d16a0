// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "../../inject/wait.h"

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
