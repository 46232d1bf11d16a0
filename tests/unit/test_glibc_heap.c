// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_walk.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/glibc_tcache.h"
#include "fake_heap.h"

/* What is in the lists. */
struct lists {
	uint64_t fast, unsorted, small, largest; /* bytes */
	unsigned binned, large;			 /* chunks in bins, of those in bin 68 */
};

static void count(void *arg, const struct glibc_visit *c)
{
	struct lists *l = arg;

	if (c->size > l->largest)
		l->largest = c->size;
	if (c->place == PLACE_FASTBIN) {
		l->fast += c->size;
		return;
	}
	l->unsorted += c->index == 1 ? c->size : 0;
	l->small += c->index == 9 ? c->size : 0;
	l->binned += c->index != 1;
	l->large += c->index == 68;
}

static void compare_lists(const struct glibc_view *v, unsigned i, const struct fake_arena *want)
{
	struct glibc_budget b = { .chunks = 1000 };
	struct glibc_arena a = { 0 };
	struct glibc_fault f;
	struct lists l = { 0 };

	cr_assert_eq(glibc_arena_read(v, want->at, i, &a), 0);
	cr_assert_eq(glibc_arena_heaps(v, &a, &f), 0);
	cr_assert_eq(glibc_walk_lists(v, &a, &b, count, &l, &f), 0);
	cr_expect_eq(a.heaps, i ? 2 : 1);
	cr_expect_eq(l.fast, want->fast_bytes);
	cr_expect_eq(l.unsorted, FAKE_UNSORTED);
	cr_expect_eq(l.small, FAKE_SMALL);
	cr_expect_eq(l.largest, FAKE_LARGE0);
	cr_expect_eq(l.binned, 3);
	cr_expect_eq(l.large, 2);
	glibc_arena_free(&a);
}

static void compare(const struct glibc_view *v, const struct glibc_arena_plan *p,
		    const struct fake_arena *a)
{
	cr_expect_eq(p->fault.kind, FAULT_NONE, "2.%d: %s at %#llx", v->version,
		     glibc_fault_name(p->fault.kind), (unsigned long long)p->fault.at);
	cr_expect_eq(p->at, a->at);
	cr_expect_eq(p->system_mem, a->system_mem);
	cr_expect_eq(p->free, a->free_bytes, "2.%d: %llu, not %llu", v->version,
		     (unsigned long long)p->free, (unsigned long long)a->free_bytes);
	cr_expect_eq(p->in_use, a->system_mem - a->free_bytes);
	cr_expect_eq(p->top_bytes, a->end - a->top);
	cr_expect_gt(p->look_ns, 0);
	cr_expect_not(p->moving);
	cr_expect_not(p->cut);
	cr_expect_not(p->swapped_out);
	compare_lists(v, p->index, a);
}

static const struct glibc_plan_opts plain;
/* More free chunks than this, and the heaps are walked over. */
static const struct glibc_plan_opts walked[] = { { .many = 1 }, { .many = 2 } };

Test(glibc_heap, every_layout)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_plan p;

		fake_build(&m, version, 3);
		fake_find(&m, version, &v);
		fake_plan(&v, &plain, NULL, &p);
		cr_assert_eq(p.arenas, 4);
		cr_expect(glibc_plan_is_whole(&p));
		cr_expect_eq(p.par.mmapped_mem, 0x301000);
		for (size_t i = 0; i < p.arenas; i++)
			compare(&v, &p.arena[i], &m.arena[i]);
		glibc_plan_free(&p);
		for (size_t k = 0; k < 2; k++) {
			fake_plan(&v, &walked[k], NULL, &p);
			cr_assert_eq(p.arenas, 4);
			cr_expect(glibc_plan_is_whole(&p));
			for (size_t i = 0; i < p.arenas; i++)
				compare(&v, &p.arena[i], &m.arena[i]);
			glibc_plan_free(&p);
		}
		fake_free(&m);
	}
}

/* Where a walk over all chunks meets what cannot be, the lists are still what they are. */
Test(glibc_heap, a_damaged_block_in_use_hides_no_free_ones)
{
	struct glibc_plan p;
	struct glibc_view v;
	struct fake m;

	fake_build(&m, 36, 1);
	fake_put(&m, m.arena[1].used + 8, 0x4242424242424241);
	fake_find(&m, 36, &v);
	fake_plan(&v, &walked[0], NULL, &p);
	cr_assert_eq(p.arenas, 2);
	compare(&v, &p.arena[1], &m.arena[1]);
	glibc_plan_free(&p);
	fake_free(&m);
}

/* A link that leads astray is found by either way, and told alike. */
Test(glibc_heap, a_walk_over_all_chunks_sees_damaged_links)
{
	static const size_t links[] = { 16, 24, 32, 40 }; /* of large[0], which is in two rings */

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct glibc_plan p, q;
		struct glibc_view v;
		struct fake m;

		fake_build(&m, 36, 1);
		fake_put(&m, m.arena[1].large[0] + links[i], m.arena[1].small);
		fake_find(&m, 36, &v);
		fake_plan(&v, &plain, NULL, &p);
		fake_plan(&v, &walked[0], NULL, &q);
		cr_expect_not(glibc_plan_is_whole(&p));
		cr_expect_not(glibc_plan_is_whole(&q));
		cr_expect_neq(p.arena[1].fault.kind, FAULT_NONE);
		cr_expect_eq(p.arena[1].fault.kind, q.arena[1].fault.kind, "link %zu", i);
		cr_expect_eq(p.arena[1].fault.at, q.arena[1].fault.at);
		cr_expect_eq(p.arena[1].free, q.arena[1].free);
		glibc_plan_free(&p);
		glibc_plan_free(&q);
		fake_free(&m);
	}
}

/* A base where no memory is would make the heap as large as the address space. */
Test(glibc_heap, a_main_heap_without_a_beginning)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_plan p;

	fake_build(&m, 36, 1);
	fake_put(&m, m.mp + m.par->sbrk_base, 0x1000);
	fake_find(&m, 36, &v);
	fake_plan(&v, &plain, NULL, &p);
	cr_assert_eq(p.arenas, 2);
	cr_expect(p.arena[0].partial);
	cr_expect_eq(p.arena[0].fault.kind, FAULT_NONE);
	cr_expect_eq(p.arena[0].free, m.arena[0].free_bytes);
	glibc_plan_free(&p);
	fake_free(&m);
}

/* Safe linking is seen from the links where the version is not known. */
Test(glibc_heap, links_without_a_version)
{
	for (int version = GLIBC_FIRST; version < GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;
		struct glibc_plan p;

		fake_build(&m, version, 1);
		fake_find(&m, 0, &v);
		fake_plan(&v, &plain, NULL, &p);
		compare(&v, &p.arena[0], &m.arena[0]);
		compare(&v, &p.arena[1], &m.arena[1]);
		glibc_plan_free(&p);
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

static void thread_caches(int version, int hint)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_tcache t;
	uint64_t left = 100;

	fake_build(&m, version, 1);
	fake_find(&m, hint, &v);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(glibc_tcache_of(&v, m.arena[i].tcache, &left, &t), 0, "2.%d, hint %d",
			     version, hint);
		cr_expect_eq(t.blocks, 4);
		cr_expect_eq(t.bytes, 0x30 + 0x40 + 0x60 + 0x30);
		cr_expect_eq(glibc_tcache_of(&v, m.arena[i].used + 16, &left, &t), -ENOENT);
	}
	cr_expect_eq(left, 100 - 8);
	fake_free(&m);
}

Test(glibc_heap, thread_caches)
{
	for (int version = 26; version <= GLIBC_LAST; version++) {
		thread_caches(version, version);
		thread_caches(version, 0);
	}
}

/* Branch tips of 2.28 and 2.29 have wider counters than their releases. */
Test(glibc_heap, thread_caches_of_branch_tips)
{
	for (int version = 28; version <= 29; version++)
		thread_caches(30, version);
}

Test(glibc_heap, a_budget_is_kept)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_plan p;
	const struct glibc_budget two = { .chunks = 2 };

	fake_build(&m, 36, 1);
	fake_find(&m, 36, &v);
	fake_plan(&v, &plain, &two, &p);
	cr_expect(p.arena[0].cut);
	cr_expect(p.arena[1].cut);
	cr_expect_not(glibc_plan_is_whole(&p));
	glibc_plan_free(&p);
	fake_free(&m);
}

/* Swapped pages are told, not guessed: of a list, of what describes a heap, of an arena itself. */
Test(glibc_heap, swapped_pages)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_plan p;

	fake_build(&m, 36, 2);
	fake_find(&m, 36, &v);
	for (unsigned i = 0; i < 3; i++) {
		const struct fake_arena *a = &m.arena[1];
		const uint64_t page[] = { a->unsorted, a->heap, a->at };

		m.swapped = page[i];
		fake_plan(&v, &plain, NULL, &p);
		cr_expect_not(p.arena[0].swapped_out);
		cr_expect(i == 2 ? p.ring_unread : p.arena[1].swapped_out, "%u", i);
		cr_expect(p.total.swapped_out);
		cr_expect_not(glibc_plan_is_whole(&p));
		for (size_t k = 0; k < p.arenas; k++)
			cr_expect_eq(p.arena[k].fault.kind, FAULT_NONE);
		glibc_plan_free(&p);
	}
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
	struct glibc_plan p;

	fake_build(&m, 36, 2);
	fake_find(&m, 36, &v);
	m.on_refresh = busy;
	fake_plan(&v, &plain, NULL, &p);
	cr_expect_not(p.arena[0].moving);
	cr_expect(p.arena[1].moving);
	cr_expect_not(p.arena[2].moving);
	glibc_plan_free(&p);
	fake_free(&m);
}

/* ---- the same later */

/* How often a free chunk of an arena is read. */
struct counter {
	struct fake *m;
	unsigned chunks[3];
};

static int read_counted(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct counter *c = ctx;

	for (unsigned i = 0; i < 3; i++)
		c->chunks[i] += addr == c->m->arena[i].unsorted;
	return c->m->reader.read(c->m->reader.ctx, addr, buf, len);
}

static void refresh_counted(void *ctx)
{
	struct counter *c = ctx;

	c->m->reader.refresh(c->m->reader.ctx);
}

/* Only what has changed is read again, and not that where it is too much. */
Test(glibc_heap, a_plan_is_brought_up_to_date)
{
	struct pages pages = { .fd = open("/dev/zero", O_RDONLY | O_CLOEXEC) };
	struct counter c = { 0 };
	const struct reader counted = { read_counted, refresh_counted, &c };
	struct glibc_view v;
	struct glibc_plan p;
	struct fake m;

	cr_assert_geq(pages.fd, 0);
	c.m = &m;
	fake_build(&m, 36, 2);
	fake_find(&m, 36, &v);
	v.r = &counted;
	fake_plan(&v, &plain, NULL, &p);
	cr_assert_eq(p.arenas, 3);
	cr_assert_eq(c.chunks[0], c.chunks[1]);
	cr_assert_gt(c.chunks[0], 0);
	c = (struct counter){ .m = &m };
	cr_assert_eq(glibc_plan_again(&v, &pages, &plain, 1000, &p), 0);
	cr_expect_eq(c.chunks[0] + c.chunks[1] + c.chunks[2], 0, "nothing has changed");
	fake_put(&m, m.arena[1].at + m.state->system_mem + 8U, m.arena[1].system_mem + 4096);
	fake_put(&m, m.arena[1].at + m.state->system_mem, m.arena[1].system_mem + 4096);
	cr_assert_eq(glibc_plan_again(&v, &pages, &plain, 1000, &p), 0);
	cr_expect_gt(c.chunks[1], 0);
	cr_expect_eq(c.chunks[0] + c.chunks[2], 0);
	cr_expect_eq(p.arena[1].system_mem, m.arena[1].system_mem + 4096);
	cr_expect_eq(p.total.system_mem,
		     p.arena[0].system_mem + p.arena[1].system_mem + p.arena[2].system_mem);
	cr_expect_not(p.total.moving);
	fake_put(&m, m.arena[2].at + m.state->system_mem + 8U, m.arena[2].system_mem + 4096);
	cr_assert_eq(glibc_plan_again(&v, &pages, &plain, p.arena[2].chunks - 1, &p), 0);
	cr_expect_eq(c.chunks[2], 0);
	cr_expect(p.arena[2].moving && p.total.moving);
	glibc_plan_free(&p);
	pages_close(&pages);
	fake_free(&m);
}
