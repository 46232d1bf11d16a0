// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "../../inject/clock.h"
#include "../../inject/slept.h"
#include "../../inject/target.h"
#include "child.h"

Test(slept, parses_what_the_kernel_prints)
{
	uint64_t ns, n;

	cr_assert_eq(slept_parse("cat (1, #threads: 1)\nse.exec_start     :       4961340.085972\n"
				 "nr_switches   :            19\n"
				 "nr_voluntary_switches   :            17\n",
				 &ns, &n),
		     0);
	cr_expect_eq(ns, 4961340085972ULL);
	cr_expect_eq(n, 17);
	cr_expect_eq(slept_parse("", &ns, &n), -EINVAL);
	cr_expect_eq(slept_parse("se.exec_start : x\nnr_voluntary_switches : 1", &ns, &n), -EINVAL);
	cr_expect_eq(slept_parse("se.exec_start : 1.000002", &ns, &n), -EINVAL);
}

Test(slept, a_sleeping_child_has_slept_as_long_as_we_watched_it)
{
	const struct timespec nap = { .tv_nsec = 60000000 };
	uint64_t before = clock_now(), asleep, now;
	pid_t pid = child_start(child_sleep, NULL);
	struct slept s;
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert(child_reach(pid, pid, 'S'));
	asleep = clock_now();
	nanosleep(&nap, NULL);
	slept_measure(t.procfd, pid, &s);
	now = clock_now();
	if (!s.ns)
		cr_skip_test("this kernel shows no /proc/PID/task/TID/sched");
	cr_expect_leq(s.ns, now - before, "more than it can have slept");
	/* the clocks of two CPUs may differ a little; a wait that is too long is no harm */
	cr_expect_geq(s.ns + 20 * NS_PER_MS, now - asleep);
	cr_expect_eq(slept_until_stop(t.procfd, pid, &s, now), 0, "it has not been stopped since");
	target_close(&t);
	child_end(pid);
}
