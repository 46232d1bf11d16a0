// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <time.h>

#include "../../inject/clock.h"
#include "../../inject/starved.h"
#include "child.h"

#define LIMIT (60 * NS_PER_SEC) /* for a CPU on a machine that is very busy */

static void spin(void *unused)
{
	(void)unused;
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static void look(pid_t pid, struct target *t, struct starved *s)
{
	struct diag d = { 0 };

	cr_assert_eq(target_open(pid, t, &d), 0, "%s", d.text);
	cr_assert_eq(starved_note(t, s), 0);
}

/* One that runs has had less than a year of CPU time, and some day a millisecond. */
Test(starved, a_thread_that_runs)
{
	pid_t pid = child_start(spin, NULL);
	uint64_t until = clock_now() + LIMIT;
	struct target t;
	struct starved s;

	cr_assert(child_reach(pid, pid, 'R'));
	look(pid, &t, &s);
	cr_assert_eq(s.n, 1);
	cr_assert(starved_any(&t, &s, 365 * 86400 * NS_PER_SEC));
	while (starved_any(&t, &s, NS_PER_MS)) {
		cr_assert_lt(clock_now(), until);
		clock_sleep(NS_PER_MS);
	}
	child_end(pid);
	cr_assert_not(starved_any(&t, &s, 365 * 86400 * NS_PER_SEC), "it has ended");
	starved_free(&s);
	target_close(&t);
}

Test(starved, a_thread_that_sleeps_wants_no_cpu)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct target t;
	struct starved s;

	cr_assert(child_reach(pid, pid, 'S'));
	look(pid, &t, &s);
	cr_assert_eq(s.n, 0);
	cr_assert_not(starved_any(&t, &s, UINT64_MAX));
	starved_free(&s);
	target_close(&t);
	child_end(pid);
}
