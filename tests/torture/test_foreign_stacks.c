// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Stacks that are not what libc makes. However small or strange:
 * heapmedic works, or names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "asking.h"
#include "torture.h"

static void all_commands(pid_t pid, unsigned rounds)
{
	static const char *const commands[] = { "trim", "stats", "info", "check" };

	for (unsigned i = 0; i < rounds; i++)
		run_ok(pid, commands[i % COUNT(commands)], NULL);
}

Test(foreign_stacks, stacks_as_small_as_they_can_be, .timeout = 600)
{
	static const char *const names[] = { "stacks", "stackstls" };
	static struct state state;
	unsigned rounds = torture_rounds(60, 8);
	struct victim v;

	for (size_t i = 0; i < COUNT(names); i++) {
		victim_start_named(&v, names[i], i ? NULL : "small", NULL);
		state_take(&v, &state);
		both_say(v.pid, &plain, 0, "", NULL);
		all_commands(v.pid, rounds);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("%u calls among the smallest stacks, %u with 1 MiB of thread-local data",
		       rounds, rounds);
}

Test(foreign_stacks, thread_local_data_that_no_stack_of_ours_holds, .timeout = 600)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "stackshuge", NULL, NULL);
	state_take(&v, &state);
	both_say(v.pid, &plain, 5, "large-tls", "bytes of thread-local storage");
	run_ok(v.pid, "--via", "direct", "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* Every thread is on a malloc'ed stack nearly always: borrowed is none, or one that is not. */
Test(foreign_stacks, fibers, .timeout = 600)
{
	static const char *const names[] = { "stacks", "stackstls" };
	static struct state state;
	unsigned rounds = torture_rounds(8, 2), refused = 0;
	struct victim v;

	for (unsigned i = 0; i < rounds; i++) {
		struct run r;

		victim_start_named(&v, names[i % COUNT(names)], "fiber", NULL);
		state_take(&v, &state);
		run(&r, v.pid, "--deadline", "300ms", "trim", NULL);
		cr_assert(r.exit == 0 || r.exit == 6, "exit %d: %s", r.exit, r.err);
		cr_assert(r.exit == 0 || strstr(r.err, "fiber") || strstr(r.err, "thread "), "%s",
			  r.err);
		refused += r.exit == 6;
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("%u programs on fibers alone: %u calls refused, none harmed", rounds,
		       refused);
}

Test(foreign_stacks, goroutines, .timeout = 600)
{
	struct victim v;

	victim_start_named(&v, "gopure", NULL, NULL);
	both_say(v.pid, &plain, 5, "no-libc", NULL);
	victim_stop(&v);
	victim_start_named(&v, "gocgo", NULL, NULL);
	all_commands(v.pid, torture_rounds(24, 4));
	victim_stop(&v);
}
