// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_heap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define DATA_AT	  0x7f5500200000ULL
#define DATA_LEN  0x5000ULL
#define MP_AT	  (DATA_AT + 0x1340)
#define ARENA_OFF 0x2c60ULL
#define MAIN_AT	  0x555555560000ULL
#define THREAD_AT 0x7f1000000000ULL
#define HEAP_LEN  0x21000ULL
#define OLD_LEN	  0x3000ULL
#define USED	  0x50

static struct fake_region *region_of(const struct fake *m, uint64_t at, size_t len)
{
	for (size_t i = 0; i < m->regions; i++) {
		const struct fake_region *r = &m->region[i];

		if (at >= r->at && at - r->at <= r->len && len <= r->len - (at - r->at))
			return (struct fake_region *)(uintptr_t)r;
	}
	return NULL;
}

static int fake_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct fake *m = ctx;
	const struct fake_region *r = region_of(m, addr, len);

	if (m->swapped && addr / 4096 <= m->swapped / 4096 &&
	    (addr + len - 1) / 4096 >= m->swapped / 4096)
		return -ENODATA;
	if (!r)
		return -EFAULT;
	memcpy(buf, r->bytes + (addr - r->at), len);
	return 0;
}

static void fake_refresh(void *ctx)
{
	struct fake *m = ctx;

	m->refreshed++;
	if (m->on_refresh)
		m->on_refresh(m);
}

uint64_t fake_get(const struct fake *m, uint64_t at)
{
	uint64_t v = 0;

	cr_assert_not_null(region_of(m, at, 8), "no such place: %#llx", (unsigned long long)at);
	memcpy(&v, region_of(m, at, 8)->bytes + (at - region_of(m, at, 8)->at), sizeof(v));
	return v;
}

static void put(struct fake *m, uint64_t at, const void *v, size_t len)
{
	struct fake_region *r = region_of(m, at, len);

	cr_assert_not_null(r, "no such place: %#llx", (unsigned long long)at);
	memcpy(r->bytes + (at - r->at), v, len);
}

void fake_put(struct fake *m, uint64_t at, uint64_t value)
{
	put(m, at, &value, sizeof(value));
}

static void put32(struct fake *m, uint64_t at, uint32_t value)
{
	put(m, at, &value, sizeof(value));
}

static void add_region(struct fake *m, uint64_t at, uint64_t len)
{
	struct fake_region *r = &m->region[m->regions++];

	cr_assert_leq(m->regions, FAKE_REGIONS);
	*r = (struct fake_region){ at, (size_t)len, calloc(1, (size_t)len) };
	cr_assert_not_null(r->bytes);
}

/* ---- chunks, from the bottom of a heap up */

struct cursor {
	struct fake *m;
	struct fake_arena *a;
	uint64_t at;
	uint64_t bits; /* NON_MAIN or 0 */
	bool before_free;
	uint64_t before_size;
};

static uint64_t place(struct cursor *c, uint64_t size, bool is_free)
{
	uint64_t at = c->at;

	if (c->before_free)
		fake_put(c->m, at, c->before_size);
	fake_put(c->m, at + 8, size | c->bits | (c->before_free ? 0 : CHUNK_PREV_INUSE));
	c->at += size;
	c->before_free = is_free;
	c->before_size = size;
	c->a->chunks++;
	return at;
}

/* To the end of the bin's list. */
static void link_free(struct fake *m, struct fake_arena *a, unsigned bin, uint64_t chunk)
{
	uint64_t head = a->at + m->state->bins + (uint64_t)16 * (bin - 1) - 16;
	uint64_t last = fake_get(m, head + 24);

	fake_put(m, chunk + 16, head);
	fake_put(m, chunk + 24, last);
	fake_put(m, last + 16, chunk);
	fake_put(m, head + 24, chunk);
}

static uint64_t stored(const struct fake *m, uint64_t field, uint64_t pointer)
{
	return m->version >= GLIBC_SAFE_LINKING ? (field >> 12) ^ pointer : pointer;
}

static void fill_fast(struct fake *m, struct cursor *c, struct fake_arena *a)
{
	if (m->state->fastbins == GLIBC_NONE)
		return;
	a->fast[0] = place(c, FAKE_FAST, false);
	place(c, USED, false);
	a->fast[1] = place(c, FAKE_FAST, false);
	fake_put(m, a->fast[0] + 16, stored(m, a->fast[0] + 16, a->fast[1]));
	fake_put(m, a->fast[1] + 16, stored(m, a->fast[1] + 16, 0));
	fake_put(m, a->at + m->state->fastbins, a->fast[0]);
	a->fast_bytes = (uint64_t)2 * FAKE_FAST;
}

/* Two blocks of 0x30 in one list, one of 0x40 and one of 0x60 in theirs. */
static void fill_tcache(struct fake *m, struct cursor *c, struct fake_arena *a)
{
	static const unsigned sizes[] = { 0x30, 0x40, 0x60, 0x30 };
	uint64_t size;

	if (!m->tcache)
		return;
	size = ((uint64_t)m->tcache->size + 8 + 15) & ~(uint64_t)15;
	a->tcache = place(c, size, false) + 16;
	if (m->version >= 42)
		for (unsigned i = 0; i < m->tcache->bins; i++) {
			uint16_t slots = 7;

			put(m, a->tcache + (uint64_t)2 * i, &slots, 2);
		}
	for (unsigned k = 0; k < 4; k++) {
		uint64_t block = place(c, sizes[k], false) + 16;
		unsigned i = (sizes[k] - 0x20) / 16;
		uint64_t head = a->tcache + m->tcache->entries + (uint64_t)8 * i;
		uint64_t counter = a->tcache + (uint64_t)m->tcache->count_size * i;
		uint16_t n = 0;

		fake_put(m, block, stored(m, block, fake_get(m, head)));
		fake_put(m, head, block);
		memcpy(&n,
		       region_of(m, counter, 2)->bytes + (counter - region_of(m, counter, 2)->at),
		       m->tcache->count_size);
		n = (uint16_t)(m->version >= 42 ? n - 1 : n + 1);
		put(m, counter, &n, m->tcache->count_size);
		if (k < 3)
			a->cached[k] = block;
	}
}

static void fill_heap(struct fake *m, struct fake_arena *a, uint64_t first, uint64_t bits)
{
	struct cursor c = { .m = m, .a = a, .at = first, .bits = bits };

	if (!bits)
		fill_tcache(m, &c, a);
	place(&c, USED, false);
	a->used = place(&c, USED, false);
	a->unsorted = place(&c, FAKE_UNSORTED, true);
	place(&c, USED, false);
	a->small = place(&c, FAKE_SMALL, true);
	place(&c, USED, false);
	a->large[0] = place(&c, FAKE_LARGE0, true);
	place(&c, USED, false);
	a->large[1] = place(&c, FAKE_LARGE1, true);
	place(&c, USED, false);
	fill_fast(m, &c, a);
	place(&c, USED, false);
	link_free(m, a, 1, a->unsorted);
	link_free(m, a, glibc_bin_index(FAKE_SMALL), a->small);
	for (unsigned i = 0; i < 2; i++) {
		link_free(m, a, glibc_bin_index(FAKE_LARGE0), a->large[i]);
		fake_put(m, a->large[i] + 32, a->large[!i]);
		fake_put(m, a->large[i] + 40, a->large[!i]);
	}
	a->top = c.at;
	fake_put(m, a->top + 8, (a->end - a->top) | CHUNK_PREV_INUSE);
	a->free_bytes = FAKE_UNSORTED + FAKE_SMALL + FAKE_LARGE0 + FAKE_LARGE1 + a->fast_bytes +
			(a->end - a->top);
}

static void init_state(struct fake *m, struct fake_arena *a)
{
	for (unsigned i = 1; i < GLIBC_BINS; i++) {
		uint64_t head = a->at + m->state->bins + (uint64_t)16 * (i - 1) - 16;

		fake_put(m, head + 16, head);
		fake_put(m, head + 24, head);
	}
}

static void end_state(struct fake *m, struct fake_arena *a, uint64_t next)
{
	fake_put(m, a->at + m->state->top, a->top);
	fake_put(m, a->at + m->state->next, next);
	if (m->state->attached != GLIBC_NONE)
		fake_put(m, a->at + m->state->attached, 1);
	fake_put(m, a->at + m->state->system_mem, a->system_mem);
	fake_put(m, a->at + m->state->system_mem + 8U, a->system_mem);
}

static void build_main(struct fake *m)
{
	struct fake_arena *a = &m->arena[0];

	add_region(m, MAIN_AT, HEAP_LEN);
	a->at = DATA_AT + ARENA_OFF;
	a->heap = MAIN_AT;
	a->end = MAIN_AT + HEAP_LEN;
	a->system_mem = HEAP_LEN;
	init_state(m, a);
	fill_heap(m, a, MAIN_AT, 0);
}

static void put_info(struct fake *m, uint64_t heap, uint64_t arena, uint64_t prev, uint64_t size)
{
	fake_put(m, heap, arena);
	fake_put(m, heap + 8, prev);
	fake_put(m, heap + 16, size);
	fake_put(m, heap + 24, size);
}

/* The arena is in an old heap, with the thread cache and a chunk up to the fence; its other chunks
 * are in a newer one. */
static void build_thread(struct fake *m, unsigned i)
{
	struct fake_arena *a = &m->arena[i];
	uint64_t old = THREAD_AT + (uint64_t)2 * i * FAKE_HEAP_MAX, first, fence;
	struct cursor c = { .m = m, .a = a, .bits = CHUNK_NON_MAIN };

	add_region(m, old, OLD_LEN);
	add_region(m, old + FAKE_HEAP_MAX, HEAP_LEN);
	a->at = old + m->info_size;
	a->heap = old + FAKE_HEAP_MAX;
	a->end = a->heap + HEAP_LEN;
	a->system_mem = OLD_LEN + HEAP_LEN;
	put_info(m, old, a->at, 0, OLD_LEN);
	put_info(m, a->heap, a->at, old, HEAP_LEN);
	init_state(m, a);
	first = (a->at + m->state->size + 15) & ~(uint64_t)15;
	fence = old + OLD_LEN - 32;
	c.at = first;
	fill_tcache(m, &c, a);
	place(&c, fence - c.at, false);
	fake_put(m, fence + 8, 16 | CHUNK_PREV_INUSE);
	fake_put(m, fence + 24, 0 | CHUNK_PREV_INUSE);
	a->chunks = 0;
	fill_heap(m, a, a->heap + m->info_size, CHUNK_NON_MAIN);
}

static void build_par(struct fake *m)
{
	fake_put(m, m->mp, 128U * 1024);
	fake_put(m, m->mp + 8, 128U * 1024);
	fake_put(m, m->mp + 16, 256U * 1024);
	fake_put(m, m->mp + 24, 8);
	fake_put(m, m->mp + m->par->mmapped_mem, 0x301000);
	fake_put(m, m->mp + m->par->mmapped_mem + 8U, 0x602000);
	put32(m, m->mp + m->par->n_mmaps, 1);
	put32(m, m->mp + m->par->n_mmaps + 4U, 65536);
	put32(m, m->mp + m->par->n_mmaps + 8U, 2);
	fake_put(m, m->mp + m->par->sbrk_base, MAIN_AT);
	if (m->par->thp_pagesize != GLIBC_NONE)
		fake_put(m, m->mp + m->par->thp_pagesize, 0x200000);
	if (m->par->tcache_bins == GLIBC_NONE)
		return;
	fake_put(m, m->mp + m->par->tcache_bins, 64);
	fake_put(m, m->mp + m->par->tcache_bins + 8U, 1032);
	fake_put(m, m->mp + m->par->tcache_bins + 16U, 7);
}

static void choose_rows(struct fake *m)
{
	const struct glibc_state_row *s;
	const struct glibc_par_row *p;
	const struct glibc_tcache_row *t;

	for (size_t i = 0, n = glibc_state_rows(&s); i < n; i++)
		if (m->version >= s[i].first && m->version <= s[i].last)
			m->state = &s[i];
	for (size_t i = 0, n = glibc_par_rows(&p); i < n; i++)
		if (m->version >= p[i].first && m->version <= p[i].last)
			m->par = &p[i];
	for (size_t i = 0, n = glibc_tcache_rows(&t); i < n; i++)
		if (m->version >= t[i].first && m->version <= t[i].last)
			m->tcache = &t[i];
	cr_assert(m->state && m->par && (m->tcache || m->version < 26), "2.%d has no row",
		  m->version);
}

void fake_build(struct fake *m, int version, unsigned threads)
{
	*m = (struct fake){ .version = version,
			    .data = DATA_AT,
			    .data_len = DATA_LEN,
			    .mp = MP_AT,
			    .arenas = threads + 1 };
	m->reader = (struct reader){ fake_read, fake_refresh, m };
	cr_assert_lt(threads, FAKE_ARENAS);
	choose_rows(m);
	m->info_size = glibc_heap_info_size(version);
	add_region(m, DATA_AT, DATA_LEN);
	/* what else is in libc's data: tables, and pointers to themselves as list heads are */
	for (uint64_t at = DATA_AT; at < DATA_AT + 0x800; at += 16)
		fake_put(m, at, at % 32 ? at : at * 3);
	build_main(m);
	for (unsigned i = 1; i <= threads; i++)
		build_thread(m, i);
	for (unsigned i = 0; i <= threads; i++)
		end_state(m, &m->arena[i], m->arena[i == threads ? 0 : i + 1].at);
	build_par(m);
}

void fake_free(struct fake *m)
{
	for (size_t i = 0; i < m->regions; i++)
		free(m->region[i].bytes);
	m->regions = 0;
}

void fake_find(struct fake *m, int hint, struct glibc_view *v)
{
	/* in two pieces, as a library's data and its zeroed part are mapped */
	const struct span data[] = { { DATA_AT, DATA_AT + 0x2000 },
				     { DATA_AT + 0x2000, DATA_AT + DATA_LEN } };

	cr_assert_eq(glibc_find(&m->reader, data, 2, hint, 0, v), 0, "2.%d, hint %d", m->version,
		     hint);
}

void fake_plan(const struct glibc_view *v, const struct glibc_plan_opts *o,
	       const struct glibc_budget *b, struct glibc_plan *out)
{
	/* as a pagemap that says of every page that it is not there */
	struct pages pages = { .fd = open("/dev/zero", O_RDONLY | O_CLOEXEC) };

	cr_assert_geq(pages.fd, 0);
	cr_assert_eq(glibc_plan_read(v, &pages, o, b, out), 0);
	pages_close(&pages);
}
