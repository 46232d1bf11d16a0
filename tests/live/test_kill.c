// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * heapmedic is killed in front of each single request that touches the target, one after another,
 * until a run gets through. (test_survive kills at random times instead.)
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"
#include "victim.h"

enum { MOST_POINTS = 2000, REAP_EVERY = 16 };

/* The program with places to be killed at lies beside the tests. */
static const char *fault_program(void)
{
	const char *path = getenv("HEAPMEDIC_FAULT");

	return path ? path : "build/heapmedic-fault";
}

static bool killed_at(unsigned point, const char *const *args)
{
	struct run_opts o = { .program = fault_program() };
	struct run r;
	char text[16];
	bool killed;

	snprintf(text, sizeof(text), "%u", point);
	setenv("HEAPMEDIC_KILL_AT", text, 1);
	run_with(&r, &o, args);
	unsetenv("HEAPMEDIC_KILL_AT");
	killed = r.sig == SIGKILL;
	if (!killed)
		run_expect(&r, 0);
	run_free(&r);
	return killed;
}

static void killed_everywhere(const char *name, const char *arg1, const char *arg2,
			      const char *command, unsigned expect)
{
	static struct state state;
	const char *args[] = { "-p", NULL, command, NULL };
	struct victim v;
	unsigned point = 1;
	char pid[16];

	victim_start_named(&v, name, arg1, arg2);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	args[1] = pid;
	state_take(&v, &state);
	for (; point < MOST_POINTS && killed_at(point, args); point++) {
		sleep_ns(1000000);
		victim_check(&v);
		if (point % REAP_EVERY == 0)
			run_ok(v.pid, command, NULL);
	}
	cr_assert_gt(point, expect, "only %u places to be killed at", point);
	cr_assert_lt(point, MOST_POINTS);
	state_await_threads(&v, state.threads);
	run_ok(v.pid, command, NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(kill, before_each_request_with_a_proxy, .timeout = 300)
{
	killed_everywhere("eight", "eintr", NULL, "trim", 30);
}

Test(kill, before_each_request_of_stats, .timeout = 300)
{
	killed_everywhere("eight", "eintr", NULL, "stats", 30);
}

Test(kill, before_each_request_on_the_only_thread, .timeout = 300)
{
	killed_everywhere("single", "eintr", NULL, "trim", 20);
}

Test(kill, before_each_request_with_registers_at_stake, .timeout = 300)
{
	killed_everywhere("spin", NULL, NULL, "trim", 20);
}

Test(kill, before_each_request_on_a_thread_that_never_sleeps, .timeout = 300)
{
	killed_everywhere("single", "busy", "eintr", "trim", 20);
}
