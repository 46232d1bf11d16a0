// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/makeup.h"

#include <criterion/criterion.h>

static struct makeup_parts nothing(void)
{
	struct makeup_parts p;

	makeup_parts_init(&p);
	return p;
}

static uint64_t sum(const struct makeup *m)
{
	return m->retained + m->fragmented + m->live + m->locked + m->go + m->jvm + m->stacks +
	       m->files + m->shm + m->other + m->unasked + m->untold;
}

/* Whatever an owner has is in one place, and in no two. */
Test(makeup, each_owner_is_counted_once)
{
	for (unsigned i = 0; i < OWNERS; i++)
		for (unsigned known = 0; known < 32; known++) {
			struct makeup m;
			struct makeup_parts p = nothing();

			p.resident[i] = 1000;
			p.rss = 1000;
			p.glibc = known & 1;
			p.jemalloc = known & 2;
			p.jemalloc_asked = (known & 6) == 6;
			p.tcmalloc = known & 8;
			p.tcmalloc_asked = (known & 24) == 24;
			p.tcmalloc_free = p.tcmalloc_cached = 300;
			p.tcmalloc_heap = 700;
			p.trimmable = p.pinned = p.stranded = p.top = 300;
			p.allocated = 200;
			p.active = p.purgeable = p.estimate = 700;
			makeup_fill(&p, &m);
			cr_expect_eq(sum(&m), 1000, "%s, known %u: %lu", owner_name((enum owner)i),
				     known, (unsigned long)sum(&m));
			cr_expect_eq(makeup_rest(&m), 0);
			cr_expect_eq(m.rss, 1000);
			cr_expect_eq(m.limit, UINT64_MAX);
		}
}

Test(makeup, glibc_is_divided_as_far_as_it_was_read)
{
	struct makeup m;
	struct makeup_parts p = nothing();

	p.rss = 2000;
	p.resident[OWNER_GLIBC_MAIN] = 400;
	p.resident[OWNER_GLIBC_ARENA] = 600;
	p.resident[OWNER_GLIBC_MMAPPED] = 50;
	p.trimmable = 100;
	p.pinned = 20;
	p.stranded = 30;
	p.top = 40;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 1000);
	cr_assert_eq(m.live, 50);
	cr_assert_eq(m.retained + m.fragmented + m.locked, 0);
	p.glibc = true;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 0);
	cr_assert_eq(m.retained, 100);
	cr_assert_eq(m.locked, 20);
	cr_assert_eq(m.fragmented, 70);
	cr_assert_eq(m.live, 50 + 1000 - 190);
	/* the heap has shrunk between the two readings */
	p.trimmable = 1500;
	makeup_fill(&p, &m);
	cr_assert_eq(m.retained, 1000);
	cr_assert_eq(m.live, 50);
	cr_assert_eq(m.fragmented + m.locked, 0);
}

Test(makeup, jemalloc_is_divided_once_it_was_asked)
{
	struct makeup m;
	struct makeup_parts p = nothing();

	p.resident[OWNER_JEMALLOC] = 1000;
	p.resident[OWNER_UNCLAIMED] = 100;
	p.jemalloc = true;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 1000);
	cr_assert_eq(m.other, 100);
	/* one without statistics */
	p.purgeable = 300;
	makeup_fill(&p, &m);
	cr_assert_eq(m.retained, 300);
	cr_assert_eq(m.unasked, 700);
	p.allocated = 500;
	p.active = 600;
	p.jemalloc_asked = true;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 0);
	cr_assert_eq(m.retained, 300);
	cr_assert_eq(m.fragmented, 100);
	cr_assert_eq(m.live, 600, "with its own books");
	/* the two are counted one after the other: less than nothing is nothing */
	p.allocated = 700;
	makeup_fill(&p, &m);
	cr_assert_eq(m.fragmented, 0);
}

Test(makeup, tcmalloc_is_divided_once_it_was_asked)
{
	struct makeup m;
	struct makeup_parts p = nothing();

	p.resident[OWNER_TCMALLOC] = 1000;
	p.resident[OWNER_UNCLAIMED] = 100;
	p.tcmalloc = true;
	p.tcmalloc_free = 300;
	p.tcmalloc_cached = 200;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 1000);
	cr_assert_eq(m.live + m.retained + m.fragmented, 0);
	p.tcmalloc_asked = true;
	makeup_fill(&p, &m);
	cr_assert_eq(m.unasked, 0);
	cr_assert_eq(m.retained, 300);
	cr_assert_eq(m.fragmented, 200);
	cr_assert_eq(m.live, 500);
	cr_assert_eq(m.other, 100);
	/* one of several: what nobody claims, as far as it has memory */
	p.resident[OWNER_TCMALLOC] = 0;
	p.tcmalloc_heap = 60;
	makeup_fill(&p, &m);
	cr_assert_eq(m.retained, 60);
	cr_assert_eq(m.other, 40);
}

/* Asked or not: there is nothing to divide it by. */
Test(makeup, mimalloc_and_musl_do_not_tell)
{
	struct makeup m;
	struct makeup_parts p = nothing();

	p.resident[OWNER_MIMALLOC] = 700;
	p.resident[OWNER_MUSL] = 300;
	makeup_fill(&p, &m);
	cr_assert_eq(m.untold, 1000);
	cr_assert_eq(m.unasked + m.live + m.other, 0);
}

/* Beside glibc its mappings cannot be told from others'. */
Test(makeup, one_of_two_allocators_is_in_what_nobody_claims)
{
	struct makeup m;
	struct makeup_parts p = nothing();

	p.resident[OWNER_UNCLAIMED] = 1000;
	p.resident[OWNER_FILE_PRIVATE] = 10;
	makeup_fill(&p, &m);
	cr_assert_eq(m.other, 1010);
	p.jemalloc = true;
	makeup_fill(&p, &m);
	cr_assert_eq(m.other, 10);
	cr_assert_eq(m.unasked, 1000);
	p.jemalloc_asked = true;
	p.estimate = 800;
	p.allocated = p.active = 500;
	p.purgeable = 300;
	makeup_fill(&p, &m);
	cr_assert_eq(m.other, 210);
	cr_assert_eq(m.retained, 300);
	cr_assert_eq(m.live, 500);
}

Test(makeup, pieces_are_added_up)
{
	struct piece v[] = {
		{ .owner = OWNER_SHM, .a.resident = 5 },
		{ .owner = OWNER_JVM, .a.resident = 7 },
		{ .owner = OWNER_SHM, .a.resident = 11 },
	};
	struct owners o = { .v = v, .n = 3 };
	uint64_t r[OWNERS];

	makeup_count(&o, r);
	cr_assert_eq(r[OWNER_SHM], 16);
	cr_assert_eq(r[OWNER_JVM], 7);
	cr_assert_eq(r[OWNER_UNCLAIMED], 0);
}
