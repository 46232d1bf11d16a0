// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A heap of 64 pages at BASE; its top chunk is given by each test. */
#define BASE 0x500000000000ULL
#define P    4096ULL

static struct glibc_arena arena(unsigned index, uint64_t top, uint64_t top_size)
{
	return (struct glibc_arena){ .index = index, .top = top, .top_size = top_size };
}

/* A free chunk. */
struct chunk {
	uint64_t at, size;
};

struct planned {
	struct glibc_arena_plan plan;
	uint64_t top; /* from this page on */
	size_t cuts;
};

static void same(const struct glibc_arena_plan *a, const struct glibc_arena_plan *b)
{
	cr_assert_eq(memcmp(&a->pages, &b->pages, sizeof(a->pages)), 0);
	cr_assert_eq(a->resident, b->resident);
	cr_assert_eq(a->from_top, b->from_top);
	cr_assert_eq(a->huge, b->huge);
	cr_assert_eq(a->swapped, b->swapped);
	cr_assert_eq(a->locked, b->locked);
	cr_assert_eq(a->hugetlb, b->hugetlb);
	cr_assert_eq(a->free_resident, b->free_resident);
	cr_assert_eq(a->stranded_bytes, b->stranded_bytes);
}

/* Plans with the pages [BASE, BASE + pages) in memory: in one run, and the same in runs of a page.
 */
static struct planned plan(const struct glibc_arena *a, const struct glibc_plan_opts *o,
			   const struct chunk *chunk, size_t n, uint64_t pages, unsigned flags)
{
	struct freemap m = { .near = glibc_plan_near(o->pad) };
	struct glibc_arena_plan by_page = { 0 };
	struct planned out = { .cuts = 0 };
	struct glibc_cuts cuts;
	struct glibc_sweep s = { a, o, &m, &cuts, 0, 0, 0, &out.plan };

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(freemap_add(&m, chunk[i].at, chunk[i].size), 0);
	cr_assert_eq(freemap_add(&m, a->top, a->top_size), 0);
	cr_assert_eq(glibc_plan_cuts(a, o, &m, &cuts), 0);
	cr_assert_eq(glibc_sweep_run(&s, BASE, BASE + pages * P, flags), 0);
	s = (struct glibc_sweep){ a, o, &m, &cuts, 0, 0, 0, &by_page };
	for (uint64_t at = BASE; at < BASE + pages * P; at += P)
		cr_assert_eq(glibc_sweep_run(&s, at, at + P, flags), 0);
	same(&by_page, &out.plan);
	out.cuts = cuts.n;
	out.top = cuts.top;
	free(cuts.v);
	freemap_free(&m);
	return out;
}

static const struct glibc_plan_opts plain;

Test(glibc_plan, a_chunk_keeps_its_header_and_both_partial_pages)
{
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE + 100 * 16, 10 * P } };
	struct planned p = plan(&a, &plain, chunk, 1, 64, PAGE_PRESENT);

	cr_assert_eq(p.plan.pages.trimmable, 9 * P);
	cr_assert_eq(p.plan.pages.stranded, 2 * P);
	cr_assert_eq(p.plan.pages.top, 4 * P);
	cr_assert_eq(p.plan.pages.live, (64 - 9 - 2 - 4) * P);
	cr_assert_eq(p.plan.resident, 64 * P);
	cr_assert_eq(p.plan.free_resident, 14 * P);
	cr_assert_eq(p.plan.stranded_bytes, P);
}

/* The 48 bytes of a chunk's header stay: a chunk that begins 48 bytes before a page gives that page
 * away, one that begins at 32 before does not. */
Test(glibc_plan, the_first_48_bytes_stay)
{
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk near[] = { { BASE + P - 48, 2 * P + 48 } };
	struct chunk nearer[] = { { BASE + P - 32, 2 * P + 32 } };
	struct chunk small[] = { { BASE + P - 48, P + 32 } };

	cr_assert_eq(plan(&a, &plain, near, 1, 64, PAGE_PRESENT).plan.pages.trimmable, 2 * P);
	cr_assert_eq(plan(&a, &plain, nearer, 1, 64, PAGE_PRESENT).plan.pages.trimmable, P);
	/* not larger than a page - 1 + 48: mtrim does not look at it */
	cr_assert_eq(plan(&a, &plain, small, 1, 64, PAGE_PRESENT).plan.pages.trimmable, 0);
}

Test(glibc_plan, neighbours_become_one)
{
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE + 2 * P, P }, { BASE, P }, { BASE + P, P }, { BASE, P } };
	struct planned p = plan(&a, &plain, chunk, 4, 64, PAGE_PRESENT);

	cr_assert_eq(p.cuts, 1);
	cr_assert_eq(p.plan.pages.trimmable, 2 * P);
	cr_assert_eq(p.plan.free_resident, 7 * P);
}

Test(glibc_plan, before_top_becomes_top)
{
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE + 20 * P, 40 * P } };
	struct planned p = plan(&a, &plain, chunk, 1, 64, PAGE_PRESENT);

	cr_assert_eq(p.cuts, 0);
	cr_assert_eq(p.top, BASE + 20 * P);
	cr_assert_eq(p.plan.pages.trimmable, 0, "a thread arena's top is not trimmed");
	cr_assert_eq(p.plan.pages.top, 44 * P);
}

/* Pieces of an arena that is not one follow each other downwards: behind top comes an older one. */
Test(glibc_plan, behind_top_is_another_piece)
{
	struct glibc_arena a = arena(0, BASE + 4 * P - 64, 64), b = arena(0, BASE + P, 3 * P);
	struct chunk chunk[] = { { BASE + 4 * P, 10 * P } };

	cr_expect_eq(plan(&a, &plain, chunk, 1, 64, PAGE_PRESENT).plan.pages.trimmable, 9 * P);
	cr_expect_eq(plan(&b, &plain, chunk, 1, 64, PAGE_PRESENT).plan.pages.trimmable, 9 * P);
}

Test(glibc_plan, the_main_arena_lowers_the_break)
{
	struct glibc_arena a = arena(0, BASE + 10 * P + 16, 54 * P - 16);
	struct glibc_plan_opts o = { .brk = BASE + 64 * P };
	struct planned p = plan(&a, &o, NULL, 0, 64, PAGE_PRESENT);

	/* top less MINSIZE and a byte, in whole pages */
	cr_assert_eq(p.plan.pages.trimmable, 53 * P);
	cr_assert_eq(p.plan.from_top, 53 * P);
	o.pad = 50 * P;
	p = plan(&a, &o, NULL, 0, 64, PAGE_PRESENT);
	cr_assert_eq(p.plan.pages.trimmable, 3 * P);
	cr_assert_eq(p.plan.pages.top, 50 * P);
	o.pad = 54 * P;
	cr_assert_eq(plan(&a, &o, NULL, 0, 64, PAGE_PRESENT).plan.pages.trimmable, 0);
	o = (struct glibc_plan_opts){ .brk = BASE + 65 * P };
	cr_assert_eq(plan(&a, &o, NULL, 0, 64, PAGE_PRESENT).plan.pages.trimmable, 0,
		     "somebody else has moved the break");
}

Test(glibc_plan, what_is_not_in_memory_is_not_counted)
{
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE + 16, 40 * P } };
	struct planned p = plan(&a, &plain, chunk, 1, 10, PAGE_PRESENT);

	cr_assert_eq(p.plan.pages.trimmable, 9 * P);
	cr_assert_eq(p.plan.resident, 10 * P);
	p = plan(&a, &plain, chunk, 1, 64, PAGE_SWAPPED);
	cr_assert_eq(p.plan.pages.trimmable, 0);
	cr_assert_eq(p.plan.swapped, 39 * P);
	cr_assert_eq(p.plan.resident, 0);
	p = plan(&a, &plain, chunk, 1, 64, PAGE_PRESENT | PAGE_ZERO);
	cr_assert_eq(p.plan.resident, 0, "the page of zeros is nobody's");
}

Test(glibc_plan, locked_and_huge_memory_stays)
{
	const struct glibc_pinned lock = { BASE, BASE + 20 * P, false };
	const struct glibc_pinned huge = { BASE, BASE + 64 * P, true };
	struct glibc_plan_opts o = { .pinned = &lock, .pinned_n = 1, .brk = BASE + 64 * P };
	struct glibc_arena a = arena(0, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE + 16, 40 * P } };
	struct planned p = plan(&a, &o, chunk, 1, 64, PAGE_PRESENT);

	/* the range begins in it: the call is refused as a whole */
	cr_assert_eq(p.plan.locked, 39 * P);
	cr_assert_eq(p.plan.pages.pinned, 39 * P);
	cr_assert_eq(p.plan.pages.trimmable, 3 * P);
	o.pinned = &huge;
	p = plan(&a, &o, chunk, 1, 64, PAGE_PRESENT);
	cr_assert_eq(p.plan.hugetlb, (39 + 3) * P);
	cr_assert_eq(p.plan.pages.trimmable, 0);
	/* the break goes down over locked memory too */
	o.pinned = &(struct glibc_pinned){ BASE, BASE + 64 * P, false };
	p = plan(&a, &o, chunk, 1, 64, PAGE_PRESENT);
	cr_assert_eq(p.plan.pages.trimmable, 3 * P);
	cr_assert_eq(p.plan.locked, 39 * P);
}

/* madvise(2) goes from mapping to mapping and ends at the first that it refuses. */
Test(glibc_plan, a_range_ends_at_locked_memory)
{
	const struct glibc_pinned pin[] = { { BASE + 10 * P, BASE + 12 * P, false },
					    { BASE + 15 * P, BASE + 16 * P, false },
					    { BASE + 45 * P, BASE + 50 * P, true } };
	const struct glibc_plan_opts o = { .pinned = pin, .pinned_n = 3 };
	struct glibc_arena a = arena(1, BASE + 60 * P, 4 * P);
	struct chunk chunk[] = { { BASE, 20 * P },
				 { BASE + 21 * P, 10 * P },
				 { BASE + 40 * P, 15 * P } };
	struct planned p = plan(&a, &o, chunk, 3, 64, PAGE_PRESENT);

	/* pages 1 to 9, 22 to 30 and 41 to 44 */
	cr_assert_eq(p.plan.pages.trimmable, (9 + 9 + 4) * P);
	cr_assert_eq(p.plan.locked, 10 * P);
	cr_assert_eq(p.plan.hugetlb, 10 * P);
	cr_assert_eq(p.plan.resident, 64 * P);
	p = plan(&a, &o, chunk, 3, 64, PAGE_SWAPPED);
	cr_assert_eq(p.plan.swapped, (9 + 9 + 4) * P);
	cr_assert_eq(p.plan.locked, 0, "what is swapped out is not locked");
}

/* With transparent huge pages the break is lowered by whole ones (mp_.thp_pagesize). */
Test(glibc_plan, the_break_moves_in_steps)
{
	struct glibc_arena a = arena(0, BASE + 10 * P + 16, 54 * P - 16);
	struct glibc_plan_opts o = { .brk = BASE + 64 * P, .step = 16 * P };
	struct planned p = plan(&a, &o, NULL, 0, 64, PAGE_PRESENT);

	cr_assert_eq(p.plan.from_top, 48 * P);
	cr_assert_eq(p.plan.pages.trimmable, 48 * P);
	cr_assert_eq(p.plan.pages.top, 5 * P);
	cr_assert_eq(p.plan.huge, 0);
	o.pad = 10 * P;
	p = plan(&a, &o, NULL, 0, 64, PAGE_PRESENT | PAGE_HUGE);
	cr_assert_eq(p.plan.from_top, 32 * P);
	cr_assert_eq(p.plan.huge, 32 * P);
	o.pad = 38 * P;
	cr_assert_eq(plan(&a, &o, NULL, 0, 64, PAGE_PRESENT).plan.from_top, 0);
}

/* Whatever the lists say, every resident page is counted once. */
Test(glibc_plan, each_page_is_of_one_class)
{
	srandom(7);
	for (int turn = 0; turn < 2000; turn++) {
		const struct glibc_pinned pin = { BASE + (uint64_t)(random() % 64) * P,
						  BASE + 64 * P, random() % 2 };
		struct glibc_plan_opts o = { .brk = BASE + 64 * P,
					     .pinned = &pin,
					     .pinned_n = (size_t)(random() % 2) };
		uint64_t top = BASE + (uint64_t)(random() % (64 * 256)) * 16;
		struct glibc_arena a = arena((unsigned)random() % 2, top, BASE + 64 * P - top);
		struct chunk chunk[40];
		size_t n = (size_t)random() % 40;
		const struct glibc_classes *c;
		struct planned p;

		for (size_t i = 0; i < n; i++) {
			chunk[i].at = BASE + (uint64_t)(random() % (64 * 256)) * 16;
			chunk[i].size = 16 * (2 + (uint64_t)random() % 3000);
		}
		p = plan(&a, &o, chunk, n, 64, PAGE_PRESENT);
		c = &p.plan.pages;
		cr_assert_eq(c->live + c->stranded + c->trimmable + c->pinned + c->top, 64 * P);
		cr_assert_eq(p.plan.resident, 64 * P);
		cr_assert_eq(c->pinned, p.plan.locked + p.plan.hugetlb);
	}
}

/* ---- against malloc_trim itself, written down once more: with all units of 16 bytes */

#define UNITS ((size_t)64 * 256)

struct heap {
	bool free[UNITS];
	uint64_t top; /* top is behind it */
};

/* Chunks in a row, some of them free; the last one is top. */
static struct heap random_heap(struct freemap *m)
{
	struct heap h = { .top = UNITS - 2 - (size_t)random() % 3000 };
	int share = 1 + (int)random() % 9;

	for (size_t i = 0; i < h.top;) {
		size_t n = 2 + (size_t)random() % (random() % 4 ? 10 : 900);
		bool is_free = random() % 10 < share;

		n = n > h.top - i || h.top - i - n < 2 ? h.top - i : n;
		if (is_free)
			cr_assert_eq(freemap_add(m, BASE + 16 * i, 16 * n), 0);
		for (size_t k = 0; k < n; k++)
			h.free[i + k] = is_free;
		i += n;
	}
	cr_assert_eq(freemap_add(m, BASE + 16 * h.top, 16 * (UNITS - h.top)), 0);
	return h;
}

static uint64_t mtrim(struct heap *h, const struct glibc_plan_opts *o, bool main)
{
	uint64_t sum = 0, extra, top_area;

	/* malloc_consolidate */
	while (h->top > 0 && h->free[h->top - 1])
		h->top--;
	for (size_t i = 0, n; i < h->top; i += n) {
		uint64_t lo, hi;

		for (n = 1; h->free[i] && i + n < h->top && h->free[i + n]; n++)
			;
		if (!h->free[i] || 16 * n <= P - 1 + 48)
			continue;
		lo = (16 * i + 48 + P - 1) / P * P;
		hi = 16 * (i + n) / P * P;
		sum += hi > lo ? hi - lo : 0;
	}
	/* systrim */
	top_area = 16 * (UNITS - h->top) - 32 - 1;
	if (!main || top_area <= o->pad)
		return sum;
	extra = o->step ? (top_area - o->pad) / o->step * o->step : (top_area - o->pad) / P * P;
	return sum + extra;
}

Test(glibc_plan, is_what_the_formulas_say)
{
	srandom(11);
	for (int turn = 0; turn < 3000; turn++) {
		struct glibc_plan_opts o = { .brk = BASE + 64 * P };
		struct freemap m = { 0 };
		struct glibc_arena_plan sum = { 0 };
		struct glibc_cuts cuts;
		struct glibc_arena a;
		struct heap h;

		o.pad = random() % 2 ? (uint64_t)random() % (3 * P) : 0;
		o.step = random() % 4 ? 0 : 4 * P;
		m.near = glibc_plan_near(o.pad);
		h = random_heap(&m);
		a = arena((unsigned)random() % 2, BASE + 16 * h.top, 16 * (UNITS - h.top));
		cr_assert_eq(glibc_plan_cuts(&a, &o, &m, &cuts), 0);
		cr_assert_eq(
			glibc_sweep_run(&(struct glibc_sweep){ &a, &o, &m, &cuts, 0, 0, 0, &sum },
					BASE, BASE + 64 * P, PAGE_PRESENT),
			0);
		cr_assert_eq(sum.pages.trimmable, mtrim(&h, &o, a.index == 0), "turn %d, pad %llu",
			     turn, (unsigned long long)o.pad);
		free(cuts.v);
		freemap_free(&m);
	}
}

/* ---- what is free, page by page */

Test(freemap, blocks_that_are_free_as_a_whole)
{
	const uint64_t b = FREEMAP_BLOCK;
	struct freemap m = { .near = 5 };
	struct freemap_page p;
	size_t hint = 0;

	/* parts of two blocks first, which then become a part of something larger */
	cr_assert_eq(freemap_add(&m, BASE + b + 32, 64), 0);
	cr_assert_eq(freemap_add(&m, BASE + 9 * b, 32), 0);
	cr_assert_eq(freemap_add(&m, BASE + 16, 3 * b), 0);
	cr_expect_eq(m.blocks, 5);
	for (uint64_t at = BASE + P; at < BASE + 3 * b; at += P) {
		p = freemap_page(&m, at, &hint);
		cr_assert(p.free == FREEMAP_FULL && p.tail == FREEMAP_HEAD && p.near == 5);
	}
	p = freemap_page(&m, BASE, &hint);
	cr_expect(p.free == FREEMAP_FULL - 1 && p.tail == FREEMAP_HEAD && p.near == 5);
	p = freemap_page(&m, BASE + 3 * b, &hint);
	cr_expect(p.free == 1 && p.tail == 0 && p.near == 0);
	p = freemap_page(&m, BASE + 9 * b, &hint);
	cr_expect_eq(p.free, 2);
	cr_expect_eq(freemap_page(&m, BASE + 5 * b, &hint).free, 0);
	cr_expect_eq(freemap_page(&m, BASE - P, &hint).free, 0);
	freemap_free(&m);
}

Test(freemap, the_end_of_a_page)
{
	struct freemap m = { .near = 100 };
	struct freemap_page p;
	size_t hint = 0;

	cr_assert_eq(freemap_add(&m, BASE + P - 32, 32), 0);
	p = freemap_page(&m, BASE, &hint);
	cr_expect(p.free == 2 && p.tail == 2 && p.near == 2);
	cr_assert_eq(freemap_add(&m, BASE + P - 2400, 2000), 0);
	p = freemap_page(&m, BASE, &hint);
	cr_expect(p.free == 127 && p.tail == 2 && p.near == 77, "%u %u %u", p.free, p.tail, p.near);
	/* nothing has more of it than there is */
	cr_assert_eq(freemap_add(&m, BASE, P), 0);
	p = freemap_page(&m, BASE, &hint);
	cr_expect(p.free == FREEMAP_FULL && p.tail == FREEMAP_HEAD && p.near == 100);
	freemap_free(&m);
}

Test(freemap, more_than_any_heap)
{
	struct freemap m = { 0 };

	cr_expect_eq(freemap_add(&m, 1 << 20, (uint64_t)1 << 46), -E2BIG);
	freemap_free(&m);
}
