// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/pace.h"

#include <criterion/criterion.h>

#define MS ((uint64_t)1000000)

/* How often something of that cost is done in 1000 intervals, and with which share of a CPU. */
static unsigned times(uint64_t every, uint64_t cost, double *share)
{
	struct pace p = { 0 };
	unsigned n = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		/* ticks come some fiftieth too early and too late */
		uint64_t now = 5 * MS + i * every + (i % 2 ? every / 50 : 0);

		if (!pace_due(&p, now, every))
			continue;
		pace_done(&p, now, cost);
		n++;
	}
	*share = (double)(n * cost) / (double)(1000 * every);
	return n;
}

Test(pace, as_often_as_a_hundredth_of_a_cpu_allows)
{
	static const struct {
		uint64_t every, cost;
		unsigned least, most;
	} table[] = {
		{ 1000 * MS, 0, 1000, 1000 },	    { 1000 * MS, 5 * MS, 1000, 1000 },
		{ 1000 * MS, 10 * MS, 1000, 1000 }, { 1000 * MS, 12 * MS, 500, 500 },
		{ 1000 * MS, 100 * MS, 100, 112 },  { 1000 * MS, 4000 * MS, 2, 3 },
		{ 100 * MS, 10 * MS, 100, 112 },    { 1000 * MS, UINT64_MAX, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		double share;
		unsigned n = times(table[i].every, table[i].cost, &share);

		cr_expect_geq(n, table[i].least, "row %zu: %u times", i, n);
		cr_expect_leq(n, table[i].most, "row %zu: %u times", i, n);
		/* the first time is free */
		if (n > 10)
			cr_expect_lt(share, 0.0115, "row %zu: %f", i, share);
	}
}

/* What was expensive once is tried again, and cheap then. */
Test(pace, follows_the_cost)
{
	struct pace p = { 0 };

	cr_assert(pace_due(&p, 0, MS));
	pace_done(&p, 0, 50 * MS);
	cr_assert_not(pace_due(&p, 4000 * MS, 1000 * MS));
	cr_assert(pace_due(&p, 5000 * MS, 1000 * MS));
	cr_assert_eq(pace_period(&p, 1000 * MS), 5000 * MS);
	pace_done(&p, 5000 * MS, MS);
	cr_assert(pace_due(&p, 6000 * MS, 1000 * MS));
	cr_assert_eq(pace_period(&p, 1000 * MS), 1000 * MS);
	/* a clock that goes back is no reason to hurry */
	cr_assert_not(pace_due(&p, 4000 * MS, 100 * MS));
	pace_done(&p, 0, UINT64_MAX);
	cr_assert_eq(pace_period(&p, MS), UINT64_MAX);
}
