// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * seccomp filters, and memory that may not be executable. Whatever is forbidden:
 * heapmedic works, or names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "asking.h"
#include "crash.h"
#include "torture.h"

static const char *const filtered_calls[] = {
	"mmap",		"mprotect", "munmap", "clone",	 "clone3",	   "memfd_create",
	"close_range",	"pipe2",    "futex",  "rseq",	 "rt_sigprocmask", "set_robust_list",
	"rt_sigreturn", "exit",	    "brk",    "madvise",
};
static const char *const actions[] = {
	"errno", "trap", "trap-handled", "kill-thread", "kill", "log"
};
/* Where an error is as bad as a kill. */
static bool refuses_error(const char *call)
{
	static const char *const needed[] = { "futex", "rt_sigreturn", "exit", "rseq" };

	return in_list(needed, COUNT(needed), call);
}

static bool is_refused(const char *call, const char *action)
{
	if (!strcmp(action, "log"))
		return false;
	return strcmp(action, "errno") || refuses_error(call);
}

Test(filters, seccomp_each_call_and_action, .timeout = 3600)
{
	unsigned step = torture_rounds(1, 13), n = 0, at = (unsigned)getpid() % step;

	if (!is_root())
		cr_skip_test("only root may ask a filter");
	for (size_t i = 0; i < COUNT(filtered_calls); i++) {
		for (size_t k = 0; k < COUNT(actions); k++) {
			bool refused = is_refused(filtered_calls[i], actions[k]);

			if (at++ % step)
				continue;
			victim_of("filtered", filtered_calls[i], actions[k], refused ? 6 : 0,
				  refused ? "seccomp-kills" : "");
			n++;
		}
	}
	torture_figure("%u filters, each one call and what it comes to: none did harm", n);
}

static unsigned killed_at_points(struct victim *v, unsigned step)
{
	char pid[16];
	const char *args[] = { "-p", pid, "trim", NULL };
	unsigned n = 0;

	snprintf(pid, sizeof(pid), "%d", v->pid);
	for (unsigned at = 1 + (unsigned)getpid() % step; crash_run_at(at, args); at += step) {
		n++;
		sleep_ns(1000000);
		victim_check(v);
	}
	return n;
}

/*
 * The filter is suspended only while we live. With one that allows nothing but what is asked for, a
 * call that has been forgotten is the victim's death; with one that answers an error, whatever was
 * going on is given up, and the next run has nothing left to complain of.
 */
Test(filters, seccomp_and_we_are_killed, .timeout = 3600)
{
	static struct state state;
	unsigned n = 0;

	if (!is_root())
		cr_skip_test("only root may suspend a filter");
	for (size_t i = 0; i <= COUNT(filtered_calls); i++) {
		bool listed = i == COUNT(filtered_calls);
		const char *call = listed ? "listed" : filtered_calls[i];
		const struct victim_plan plan = {
			.argv = { "@filtered", call, listed ? "eintr" : "errno",
				  listed ? NULL : "eintr" },
		};
		struct victim v;

		if (!listed && (!torture_full() || strcmp(call, "munmap")))
			continue;
		victim_start(&v, &plan);
		state_take(&v, &state);
		n += killed_at_points(&v, torture_rounds(listed ? 2 : 17, listed ? 9 : 11));
		state_await_threads(&v, state.threads);
		run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("killed %u times under a filter: it lives, and nothing is left", n);
}

Test(filters, memory_that_may_not_be_written_and_executed, .timeout = 600)
{
	victim_of("filtered", "wx", NULL, 0, "");
	victim_of("filtered", "mdwe", NULL, 0, "");
	victim_of("filtered", "mdwe-no-inherit", NULL, 0, "");
}
