// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/growth.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* In KiB. */
static struct growth_sample sample(double at, uint64_t live, uint64_t retained, uint64_t other,
				   uint64_t swap)
{
	return (struct growth_sample){
		.at = at,
		.rss = (live + retained + other) * KIB,
		.swap = swap * KIB,
		.live = live * KIB,
		.retained = retained * KIB,
		.other = other * KIB,
		.divided = true,
	};
}

struct row {
	uint64_t before[4], after[4]; /* live, retained, other, swap; KiB */
	enum growth growth;
	const char *says;
};

/* clang-format off */
static const struct row table[] = {
	{ { 100000, 0, 0, 0 }, { 160000, 0, 0, 0 }, GROWTH_LIVE, "grown by 58.6 MiB in 60.0 s (58.6 MiB/min); 58.6 MiB (100 % of it) more are in use" },
	{ { 100000, 0, 0, 0 }, { 110000, 60000, 0, 0 }, GROWTH_RETAINED, "58.6 MiB (86 % of it) more are free" },
	{ { 100000, 0, 0, 0 }, { 100000, 0, 60000, 0 }, GROWTH_NOT_ALLOCATOR, "no allocator's" },
	/* nothing, and what counts as nothing: both the share and the bytes are small */
	{ { 100000, 0, 0, 0 }, { 100000, 0, 0, 0 }, GROWTH_NONE, "RSS has not grown by as much as counts: 0 B in" },
	{ { 1000000, 0, 0, 0 }, { 1004095, 0, 0, 0 }, GROWTH_NONE, "+4.0 MiB" },
	{ { 1000000, 0, 0, 0 }, { 1004096, 0, 0, 0 }, GROWTH_LIVE, "4.0 MiB (100 %" },
	/* a small process: a share of it */
	{ { 100000, 0, 0, 0 }, { 100999, 0, 0, 0 }, GROWTH_NONE, "as much as counts" },
	{ { 100000, 0, 0, 0 }, { 101000, 0, 0, 0 }, GROWTH_LIVE, "1000.0 KiB" },
	/* a tiny one: noise whatever the share */
	{ { 1000, 0, 0, 0 }, { 1255, 0, 0, 0 }, GROWTH_NONE, "as much as counts" },
	{ { 1000, 0, 0, 0 }, { 1256, 0, 0, 0 }, GROWTH_LIVE, "256.0 KiB" },
	/* one part shrinks for another */
	{ { 100000, 50000, 0, 0 }, { 180000, 0, 0, 0 }, GROWTH_LIVE, "grown by 29.3 MiB in 60.0 s (29.3 MiB/min); 78.1 MiB more are in use" },
	/* what was free is eaten up: no growth, but not nothing either */
	{ { 100000, 50000, 0, 0 }, { 150000, 0, 0, 0 }, GROWTH_NONE, "but 48.8 MiB more are in use" },
	{ { 100000, 50000, 0, 0 }, { 0, 0, 0, 0 }, GROWTH_NONE, "RSS has shrunk by 146.5 MiB" },
	/* what was swapped out has not gone */
	{ { 100000, 0, 0, 0 }, { 50000, 0, 0, 50000 }, GROWTH_NONE, "RSS and swap have not grown" },
	{ { 100000, 0, 0, 0 }, { 100000, 0, 0, 50000 }, GROWTH_UNKNOWN, "48.8 MiB of it (100 %) are in swap" },
	{ { 100000, 0, 0, 0 }, { 150000, 0, 0, 20000 }, GROWTH_LIVE, "48.8 MiB (71 % of it)" },
	{ { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, GROWTH_NONE, "0 B" },
};
/* clang-format on */

Test(growth, what_it_is_made_of)
{
	unsigned seen = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const uint64_t *x = table[i].before, *y = table[i].after;
		struct growth_sample a = sample(5, x[0], x[1], x[2], x[3]);
		struct growth_sample b = sample(65, y[0], y[1], y[2], y[3]);
		char text[GROWTH_TEXT];
		enum growth g = growth_of(&a, &b, text);

		cr_expect_eq(g, table[i].growth, "row %zu: %s, %s", i, growth_name(g), text);
		cr_expect_not_null(strstr(text, table[i].says), "row %zu: %s", i, text);
		cr_expect_lt(strlen(text), GROWTH_TEXT - 1);
		seen |= 1u << g;
	}
	cr_assert_eq(seen, (1u << (GROWTH_UNKNOWN + 1)) - 1, "a kind without a row");
}

Test(growth, what_was_not_divided_is_not_guessed)
{
	struct growth_sample a = sample(0, 100000, 0, 0, 0), b = sample(1, 160000, 0, 0, 0);
	char text[GROWTH_TEXT];

	a.divided = false;
	cr_assert_eq(growth_of(&a, &b, text), GROWTH_UNKNOWN);
	cr_assert_not_null(strstr(text, "58.6 MiB"), "%s", text);
	a.divided = true;
	b.divided = false;
	cr_assert_eq(growth_of(&a, &b, text), GROWTH_UNKNOWN);
	/* that it has not grown is known all the same */
	b.rss = a.rss;
	cr_assert_eq(growth_of(&a, &b, text), GROWTH_NONE);
	cr_assert_null(strstr(text, "in use"), "%s", text);
}

/* The numbers may be those of a file that somebody else has written. */
Test(growth, any_number_does)
{
	static const double times[] = { 0, -1, 1e300, -1e300, NAN, INFINITY, -INFINITY, 1e-9 };
	static const uint64_t sizes[] = { 0, 1, UINT64_MAX / 2, UINT64_MAX };
	const size_t nt = sizeof(times) / sizeof(times[0]), ns = sizeof(sizes) / sizeof(sizes[0]);

	for (size_t i = 0; i < nt * nt * ns * ns * ns; i++) {
		struct growth_sample a = { .at = times[i % nt], .divided = true };
		struct growth_sample b = { .at = times[i / nt % nt], .divided = true };
		size_t rest = i / nt / nt;
		char text[GROWTH_TEXT];

		a.rss = a.live = sizes[rest % ns];
		b.rss = b.retained = sizes[rest / ns % ns];
		a.swap = b.swap = b.other = sizes[rest / ns / ns];
		cr_assert_leq(growth_of(&a, &b, text), GROWTH_UNKNOWN);
		cr_assert_lt(strlen(text), GROWTH_TEXT - 1, "%s", text);
	}
}

Test(growth, without_two_times_there_is_no_rate)
{
	struct growth_sample a = sample(7, 100000, 0, 0, 0), b = sample(7, 160000, 0, 0, 0);
	char text[GROWTH_TEXT];

	cr_assert_eq(growth_of(&a, &b, text), GROWTH_LIVE);
	cr_assert_null(strstr(text, "/min"), "%s", text);
}

Test(growth, a_sample_has_every_byte_once)
{
	struct makeup m = {
		.rss = 1000 * MIB,
		.retained = 1 * MIB,
		.fragmented = 2 * MIB,
		.locked = 4 * MIB,
		.live = 8 * MIB,
		.go = 16 * MIB,
		.jvm = 32 * MIB,
		.stacks = 64 * MIB,
		.files = 128 * MIB,
		.shm = 256 * MIB,
		.other = 400 * MIB,
		.unasked = 9 * MIB,
		.limit = UINT64_MAX,
		.room = UINT64_MAX,
	};
	struct growth_sample s;
	struct facts f = { 0 };

	facts_set(&f, FACT_SWAP, FROM_KERNEL, 77);
	facts_set(&f, FACT_MINFLT, FROM_KERNEL, 5);
	growth_sample_of(&m, &f, 3.5, &s);
	cr_assert_eq(s.live, 24 * MIB);
	cr_assert_eq(s.retained, 7 * MIB);
	cr_assert_eq(s.live + s.retained + s.other + m.unasked, m.rss);
	cr_assert_eq(s.rss, m.rss);
	cr_assert_eq(s.swap, 77);
	cr_assert_eq(s.minflt, 5);
	cr_assert_eq(s.at, 3.5);
	cr_assert(s.divided, "nine of a thousand are left aside");
	m.unasked = 11 * MIB;
	growth_sample_of(&m, &f, 3.5, &s);
	cr_assert_not(s.divided);
}
