// SPDX-License-Identifier: GPL-3.0-or-later
/* What is made of jemalloc's answers: sums of arenas, the huge arena, parts of its statistics. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/jemalloc_arenas.h"
#include "../../agent/jemalloc_stats.h"

Test(jemalloc, figures_add_up)
{
	struct jemalloc_arena v[2] = { { .index = 0 }, { .index = 5 } };
	struct jemalloc_arenas all = { .v = v, .n = 2 };
	int64_t n;

	/* of two names, and of pages */
	jemalloc_arena_add(&v[0], JEM_ALLOCATED, 100, 0);
	jemalloc_arena_add(&v[0], JEM_ALLOCATED, 23, 0);
	jemalloc_arena_add(&v[1], JEM_ALLOCATED, 1000, 0);
	jemalloc_arena_add(&v[0], JEM_DIRTY, 3, 4096);
	jemalloc_arena_add(&v[1], JEM_DIRTY, 1, 4096);
	/* only one has told */
	jemalloc_arena_add(&v[1], JEM_MUZZY, 7, 4096);
	jemalloc_arenas_sum(&all);
	cr_expect(jemalloc_figure(&all.total, JEM_ALLOCATED, &n));
	cr_expect_eq(n, 1123);
	cr_expect(jemalloc_figure(&all.total, JEM_DIRTY, &n));
	cr_expect_eq(n, 16384);
	cr_expect_not(jemalloc_figure(&all.total, JEM_MUZZY, &n), "not known of all");
	cr_expect_eq(n, 0);
	/* times are no amounts */
	cr_expect_not(jemalloc_figure(&all.total, JEM_DIRTY_DECAY, &n));
	cr_expect_not(all.total.impossible);
}

Test(jemalloc, impossible_numbers_are_none)
{
	static const struct {
		uint64_t n, page;
		bool possible;
	} cases[] = {
		{ 0, 4096, true },
		{ JEMALLOC_BYTES_MAX, 0, true },
		{ JEMALLOC_BYTES_MAX + 1, 0, false },
		{ UINT64_MAX, 0, false },
		{ UINT64_MAX, 4096, false },
		/* the product wraps to a small number */
		{ (UINT64_C(1) << 52) + 1, 4096, false },
		{ 1, UINT64_MAX, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct jemalloc_arena a = { 0 };
		int64_t n;

		jemalloc_arena_add(&a, JEM_ACTIVE, cases[i].n, cases[i].page);
		cr_expect_eq(jemalloc_figure(&a, JEM_ACTIVE, &n), cases[i].possible, "%zu", i);
		cr_expect_eq(a.impossible, !cases[i].possible, "%zu", i);
		/* and nothing that is added makes it one again */
		jemalloc_arena_add(&a, JEM_ACTIVE, 1, 4096);
		if (!cases[i].possible)
			cr_expect_not(jemalloc_figure(&a, JEM_ACTIVE, &n));
	}
}

Test(jemalloc, no_sum_of_many_overflows)
{
	static struct jemalloc_arena v[JEMALLOC_ARENAS_MAX];
	struct jemalloc_arenas all = { .v = v, .n = JEMALLOC_ARENAS_MAX };
	int64_t n;

	for (size_t i = 0; i < JEMALLOC_ARENAS_MAX; i++)
		jemalloc_arena_add(&v[i], JEM_RETAINED, JEMALLOC_BYTES_MAX, 0);
	jemalloc_arenas_sum(&all);
	cr_expect(jemalloc_figure(&all.total, JEM_RETAINED, &n));
	cr_expect_eq((uint64_t)n, JEMALLOC_BYTES_MAX * JEMALLOC_ARENAS_MAX);
	all.n = 0;
	jemalloc_arenas_sum(&all);
	cr_expect_not(jemalloc_figure(&all.total, JEM_RETAINED, &n));
}

/* arena_init_huge: the index behind the automatic ones, where a threshold is in force. */
Test(jemalloc, huge_arena)
{
	static const struct {
		uint64_t automatic, threshold, narenas;
		bool there;
		uint32_t index;
	} cases[] = {
		{ 8, 8 << 20, 9, true, 8 },
		{ 8, 8 << 20, 12, true, 8 },
		{ 8, 0, 9, false, 8 },	     /* an arena made by hand has that index */
		{ 8, 8 << 20, 8, false, 8 }, /* it says that there are no more */
		{ 0, 8 << 20, 9, false, 0 }, /* not known */
		{ 5000, 8 << 20, 4095, true, 4094 },
		{ UINT64_MAX, 1, UINT64_MAX, true, 4094 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t index;

		cr_expect_eq(jemalloc_huge_index(cases[i].automatic, cases[i].threshold,
						 cases[i].narenas, &index),
			     cases[i].there, "%zu", i);
		cr_expect_eq(index, cases[i].index, "%zu", i);
	}
}

static void omit(const char *words, unsigned version, int rc, const char *opts)
{
	char got[16] = "J";
	struct diag d = { 0 };

	cr_expect_eq(stats_omit(words, version, got, sizeof(got), &d), rc, "%s: %s", words, d.text);
	if (!rc) {
		cr_expect_str_eq(got, opts, "%s: %s", words, got);
		return;
	}
	cr_expect_eq(d.exit, rc == -EINVAL ? HM_USAGE : HM_UNSUPPORTED);
	cr_expect(*d.text && *d.hint && *d.code);
}

Test(jemalloc, parts_of_the_statistics)
{
	omit("bins", 0x050300, 0, "Jb");
	omit("bins,large,bins", 0x050300, 0, "Jbl");
	omit("general,merged,destroyed,arenas,bins,large,mutexes,extents,hpa", 0x050300, 0,
	     "Jgmdablxeh");
	omit("hpa", 0, 0, "Jh");
	/* h was something else before, e was nothing */
	omit("hpa", 0x050201, -ENOTSUP, "");
	omit("extents", 0x050100, -ENOTSUP, "");
	omit("extents", 0x050200, 0, "Je");
	omit("mutexes", 0x040500, -ENOTSUP, "");
	omit("destroyed", 0x040500, -ENOTSUP, "");
	omit("arenas", 0x040500, 0, "Ja");
	omit("", 0x050300, -EINVAL, "");
	omit("bins,", 0x050300, -EINVAL, "");
	omit(",bins", 0x050300, -EINVAL, "");
	omit("Bins", 0x050300, -EINVAL, "");
	omit("bin", 0x050300, -EINVAL, "");
	omit("b", 0x050300, -EINVAL, "");
}

Test(jemalloc, letters_of_the_statistics)
{
	struct diag d = { 0 };

	cr_expect_eq(stats_letters("", &d), 0);
	cr_expect_eq(stats_letters("Jgmdablxeh", &d), 0);
	cr_expect_eq(stats_letters("z", &d), -EINVAL);
	cr_expect_eq(stats_letters("J g", &d), -EINVAL);
	cr_expect_eq(stats_letters("ggggggggggggggggggggggggggggggggg", &d), -EINVAL);
	cr_expect_eq(d.exit, HM_USAGE);
}
