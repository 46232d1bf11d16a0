// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_heap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/glibc_tcache.h"
#include "fake_heap.h"

static void compare(const struct glibc_arena_report *r, const struct fake_arena *a, int version)
{
	cr_expect_eq(r->fault.kind, FAULT_NONE, "2.%d: %s at %#llx", version,
		     glibc_fault_name(r->fault.kind), (unsigned long long)r->fault.at);
	cr_expect_eq(r->at, a->at);
	cr_expect_eq(r->system_mem, a->system_mem);
	cr_expect_eq(r->free, a->free_bytes, "2.%d: %llu, not %llu", version,
		     (unsigned long long)r->free, (unsigned long long)a->free_bytes);
	cr_expect_eq(r->in_use, a->system_mem - a->free_bytes);
	cr_expect_eq(r->fast.bytes, a->fast_bytes);
	cr_expect_eq(r->unsorted.bytes, FAKE_UNSORTED);
	cr_expect_eq(r->bins.count, 3);
	cr_expect_eq(r->bin[9].bytes, FAKE_SMALL);
	cr_expect_eq(r->bin[68].count, 2);
	cr_expect_eq(r->largest, FAKE_LARGE0);
	cr_expect_eq(r->top.bytes, a->end - a->top);
	cr_expect_eq(r->heaps, r->index ? 2 : 0);
	cr_expect_not(r->moving);
	cr_expect_not(r->cut);
}

Test(glibc_heap, every_layout)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_report r;

		fake_build(&m, version, 3);
		fake_find(&m, version, &v);
		cr_assert_eq(glibc_report_read(&v, NULL, &r), 0);
		cr_assert_eq(r.arenas, 4);
		cr_expect_eq(r.ring_fault.kind, FAULT_NONE);
		cr_expect_eq(r.par.mmapped_mem, 0x301000);
		for (size_t i = 0; i < r.arenas; i++)
			compare(&r.arena[i], &m.arena[i], version);
		glibc_report_free(&r);
		fake_free(&m);
	}
}

/* Safe linking is seen from the links where the version is not known. */
Test(glibc_heap, links_without_a_version)
{
	for (int version = GLIBC_FIRST; version < GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_report r;

		fake_build(&m, version, 1);
		fake_find(&m, 0, &v);
		cr_assert_eq(glibc_report_read(&v, NULL, &r), 0);
		compare(&r.arena[0], &m.arena[0], version);
		compare(&r.arena[1], &m.arena[1], version);
		glibc_report_free(&r);
		fake_free(&m);
	}
}

struct seen {
	unsigned n, used;
	uint64_t bytes;
};

static void see(void *arg, const struct glibc_visit *c)
{
	struct seen *s = arg;

	s->n++;
	s->used += c->used;
	s->bytes += c->size;
}

Test(glibc_heap, all_chunks)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_arena a = { 0 };
		struct glibc_fault f;
		struct glibc_budget b = { .chunks = 1000 };

		fake_build(&m, version, 1);
		fake_find(&m, version, &v);
		for (unsigned i = 0; i < 2; i++) {
			struct seen s = { 0 };
			bool whole;

			cr_assert_eq(glibc_arena_read(&v, m.arena[i].at, i, &a), 0);
			cr_assert_eq(glibc_arena_heaps(&v, &a, &f), 0);
			cr_assert_eq(a.heaps, i + 1);
			cr_assert_eq(glibc_walk_chunks(&v, &a, i, &b, see, &s, &whole, &f), 0,
				     "2.%d: %s at %#llx", version, glibc_fault_name(f.kind),
				     (unsigned long long)f.at);
			cr_expect(whole);
			cr_expect_eq(s.n, m.arena[i].chunks, "2.%d: %u of %u", version, s.n,
				     m.arena[i].chunks);
			cr_expect_eq(s.n - s.used, 4, "2.%d: %u free", version, s.n - s.used);
			cr_expect_eq(s.bytes, a.top - a.heap[i].first);
			/* the old heap of a thread arena: the cache, a chunk, and the fence */
			if (i)
				cr_assert_eq(glibc_walk_chunks(&v, &a, 0, &b, see, &s, &whole, &f),
					     0);
			glibc_arena_free(&a);
		}
		fake_free(&m);
	}
}

Test(glibc_heap, thread_caches)
{
	for (int version = 26; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_arena a = { 0 };
		struct glibc_tcache t;
		struct glibc_fault f;

		fake_build(&m, version, 1);
		fake_find(&m, version, &v);
		for (unsigned i = 0; i < 2; i++) {
			cr_assert_eq(glibc_arena_read(&v, m.arena[i].at, i, &a), 0);
			cr_assert_eq(glibc_tcache_read(&v, &a, m.arena[i].tcache, &t, &f), 0,
				     "2.%d", version);
			cr_expect_eq(t.blocks, 4);
			cr_expect_eq(t.bytes, 0x30 + 0x40 + 0x60 + 0x30);
			cr_expect_eq(glibc_tcache_read(&v, &a, m.arena[i].used + 16, &t, &f),
				     -ENOENT);
		}
		fake_free(&m);
	}
}

Test(glibc_heap, a_budget_is_kept)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_report r;
	const struct glibc_budget two = { .chunks = 2 };

	fake_build(&m, 36, 1);
	fake_find(&m, 36, &v);
	cr_assert_eq(glibc_report_read(&v, &two, &r), 0);
	cr_expect(r.arena[0].cut);
	cr_expect(r.arena[1].cut);
	glibc_report_free(&r);
	fake_free(&m);
}

/* Swapped pages are told, not guessed. */
Test(glibc_heap, swapped_pages)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_report r;

	fake_build(&m, 36, 1);
	fake_find(&m, 36, &v);
	m.swapped = m.arena[1].unsorted;
	cr_assert_eq(glibc_report_read(&v, NULL, &r), 0);
	cr_expect_not(r.arena[0].swapped);
	cr_expect(r.arena[1].swapped);
	cr_expect_eq(r.arena[1].fault.kind, FAULT_NONE);
	glibc_report_free(&r);
	fake_free(&m);
}

static void busy(struct fake *m)
{
	/* have_fastchunks, mutex: something moves in the header of arena 1 every time */
	fake_put(m, m->arena[1].at + m->state->system_mem + 8U,
		 m->arena[1].system_mem + (uint64_t)4096 * m->refreshed);
}

Test(glibc_heap, a_moving_arena_is_marked)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_report r;

	fake_build(&m, 36, 2);
	fake_find(&m, 36, &v);
	m.on_refresh = busy;
	cr_assert_eq(glibc_report_read(&v, NULL, &r), 0);
	cr_expect_not(r.arena[0].moving);
	cr_expect(r.arena[1].moving);
	cr_expect_not(r.arena[2].moving);
	glibc_report_free(&r);
	fake_free(&m);
}
