// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_mmapped.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096ULL
#define BASE 0x7f0000000000ULL
#define LEN  (4096 * PAGE)

/* Memory from BASE on, and malloc's own count in front of it. */
struct scene {
	unsigned char *memory;
	struct reader r;
	struct glibc_view v;
	struct glibc_par_row row;
	struct glibc_mmapped m;
	size_t reads;
};

#define PAR 0x1000ULL /* where mp_ is */

static int read_scene(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct scene *s = ctx;

	s->reads++;
	if (addr < BASE || addr + len > BASE + LEN)
		return -EFAULT;
	memcpy(buf, s->memory + (addr - BASE), len);
	return 0;
}

static void refresh(void *ctx)
{
	(void)ctx;
}

static void start(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->memory = calloc(1, LEN);
	cr_assert_not_null(s->memory);
	s->r = (struct reader){ read_scene, refresh, s };
	s->v.r = &s->r;
	s->v.version = 36;
	s->v.par.at = PAR;
	s->v.par.row = &s->row;
}

static void end(struct scene *s)
{
	glibc_mmapped_free(&s->m);
	free(s->memory);
}

static void put(struct scene *s, uint64_t head, uint64_t prev, uint64_t size)
{
	const uint64_t word[2] = { prev, size };

	memcpy(s->memory + (head - BASE), word, sizeof(word));
}

/* A block of len bytes of mapping whose address is aligned so. */
static void block(struct scene *s, uint64_t at, uint64_t len, uint64_t align)
{
	uint64_t head = ((at + 16 + align - 1) & ~(align - 1)) - 16;

	put(s, head, head - at, (len - (head - at)) | 2);
	s->v.par.n_mmaps++;
	s->v.par.mmapped_mem += len;
}

static void find(struct scene *s, const struct span *place, size_t n)
{
	glibc_mmapped_free(&s->m);
	cr_assert_eq(glibc_mmapped_find(&s->v, place, n, &s->m), 0);
}

static const struct span all = { BASE, BASE + LEN };

Test(glibc_mmapped, plain_and_merged)
{
	struct scene s;

	start(&s);
	block(&s, BASE, 769 * PAGE, 16);
	block(&s, BASE + 769 * PAGE, 33 * PAGE, 16);
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 2);
	cr_assert(s.m.proven);
	cr_assert_eq(s.m.v[0].start, BASE);
	cr_assert_eq(s.m.v[0].end, BASE + 769 * PAGE);
	cr_assert_eq(s.m.v[1].end, BASE + 802 * PAGE);
	cr_assert_lt(s.reads, 10);
	end(&s);
}

Test(glibc_mmapped, aligned)
{
	for (uint64_t align = 16; align <= 4 << 20; align *= 2) {
		struct scene s;
		uint64_t len = 1200 * PAGE;

		start(&s);
		/* not aligned itself */
		block(&s, BASE + PAGE, len, align);
		block(&s, BASE + PAGE + len, 40 * PAGE, 16);
		find(&s, &(struct span){ BASE + PAGE, BASE + LEN }, 1);
		cr_assert_eq(s.m.n, 2, "aligned to %llu", (unsigned long long)align);
		cr_assert(s.m.proven);
		cr_assert_eq(s.m.v[0].end, BASE + PAGE + len);
		end(&s);
	}
}

/* Behind memory of somebody else's in one mapping, and only then is every page looked at. */
Test(glibc_mmapped, behind_others)
{
	struct scene s;

	start(&s);
	block(&s, BASE + 700 * PAGE, 50 * PAGE, 16);
	block(&s, BASE + 800 * PAGE, 50 * PAGE, 4096);
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 2);
	cr_assert(s.m.proven);
	cr_assert_eq(s.m.v[0].start, BASE + 700 * PAGE);
	cr_assert_eq(s.m.v[1].start, BASE + 800 * PAGE);
	/* none at all: nothing is read */
	s.v.par.n_mmaps = 0;
	s.reads = 0;
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 0);
	cr_assert_eq(s.reads, 0);
	end(&s);
}

/* The program has divided mappings of blocks: some advice, or a lock, for all but the header's
 * page. */
Test(glibc_mmapped, divided)
{
	static const struct span place[] = {
		{ BASE, BASE + PAGE },			    /* a block's header */
		{ BASE + PAGE, BASE + 500 * PAGE },	    /* and its rest */
		{ BASE + 500 * PAGE, BASE + 700 * PAGE },   /* others', then an aligned block */
		{ BASE + 700 * PAGE, BASE + 800 * PAGE },   /* which goes on */
		{ BASE + 800 * PAGE, BASE + 900 * PAGE },   /* and ends with a plain one */
		{ BASE + 1000 * PAGE, BASE + 1001 * PAGE }, /* behind a gap */
		{ BASE + 1002 * PAGE, BASE + 1100 * PAGE },
	};
	static const struct span block_at[] = {
		{ BASE, BASE + 500 * PAGE },
		{ BASE + 600 * PAGE, BASE + 850 * PAGE },
		{ BASE + 850 * PAGE, BASE + 900 * PAGE },
	};
	struct scene s;

	start(&s);
	block(&s, BASE, 500 * PAGE, 16);
	block(&s, BASE + 600 * PAGE, 250 * PAGE, 65536);
	block(&s, BASE + 850 * PAGE, 50 * PAGE, 16);
	find(&s, place, sizeof(place) / sizeof(place[0]));
	cr_assert_eq(s.m.n, 3);
	cr_assert(s.m.proven);
	for (size_t i = 0; i < s.m.n; i++)
		cr_assert(s.m.v[i].start == block_at[i].start && s.m.v[i].end == block_at[i].end,
			  "block %zu", i);
	/* what looks like one, and reaches into another, is none */
	s.v.par.n_mmaps++;
	put(&s, BASE + 510 * PAGE, 0, (300 * PAGE) | 2);
	put(&s, BASE + 700 * PAGE, 0, (20 * PAGE) | 2);
	find(&s, place, sizeof(place) / sizeof(place[0]));
	for (size_t i = 1; i < s.m.n; i++)
		cr_assert_leq(s.m.v[i - 1].end, s.m.v[i].start);
	put(&s, BASE + 510 * PAGE, 0, 0);
	put(&s, BASE + 700 * PAGE, 0, 0);
	s.v.par.n_mmaps--;
	/* no block goes on behind a gap */
	block(&s, BASE + 1000 * PAGE, 10 * PAGE, 16);
	find(&s, place, sizeof(place) / sizeof(place[0]));
	cr_assert_eq(s.m.n, 3);
	cr_assert_not(s.m.proven);
	end(&s);
}

Test(glibc_mmapped, no_headers)
{
	static const struct {
		uint64_t prev, size;
	} bad[] = {
		{ 0, 10 * PAGE },	      /* not mmapped */
		{ 0, (10 * PAGE) | 3 },	      /* its neighbour in use: a chunk of a heap */
		{ 0, (10 * PAGE) | 6 },	      /* of a thread's arena */
		{ 16, (10 * PAGE - 16) | 2 }, /* not as far behind the start as it says */
		{ 0, (10 * PAGE + 16) | 2 },  /* no whole pages */
		{ 0, 2 },		      /* nothing */
		{ 0, (LEN + PAGE) | 2 },      /* longer than its place */
		{ 0, (UINT64_MAX & ~(PAGE - 1)) | 2 },
		{ UINT64_MAX - 15, (PAGE + 16) | 2 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scene s;

		start(&s);
		put(&s, BASE, bad[i].prev, bad[i].size);
		s.v.par.n_mmaps = 1;
		s.v.par.mmapped_mem = 10 * PAGE;
		find(&s, &all, 1);
		cr_assert_eq(s.m.n, 0, "row %zu", i);
		cr_assert_not(s.m.proven);
		end(&s);
	}
}

Test(glibc_mmapped, counts_differ)
{
	struct scene s;

	start(&s);
	block(&s, BASE, 64 * PAGE, 16);
	s.v.par.n_mmaps = 2;
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 1);
	cr_assert_not(s.m.proven);
	s.v.par.n_mmaps = 1;
	s.v.par.mmapped_mem += PAGE;
	find(&s, &all, 1);
	cr_assert_not(s.m.proven);
	/* malloc counts one: no second is looked for */
	s.v.par.mmapped_mem -= PAGE;
	put(&s, BASE + 64 * PAGE, 0, (8 * PAGE) | 2);
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 1);
	cr_assert(s.m.proven);
	end(&s);
}

/* 2.43: the size is without the 16 bytes of a header behind. */
Test(glibc_mmapped, glibc_2_43)
{
	struct scene s;

	start(&s);
	s.v.version = 43;
	put(&s, BASE, 0, (64 * PAGE - 16) | 2);
	s.v.par.n_mmaps = 1;
	s.v.par.mmapped_mem = 64 * PAGE;
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 1);
	cr_assert(s.m.proven);
	cr_assert_eq(s.m.v[0].end, BASE + 64 * PAGE);
	/* its sum has grown by that much each time that a block was moved */
	s.v.par.mmapped_mem += (uint64_t)3 * 16;
	find(&s, &all, 1);
	cr_assert_eq(s.m.n, 1);
	cr_assert(s.m.proven);
	s.v.par.mmapped_mem += 8;
	find(&s, &all, 1);
	cr_assert_not(s.m.proven);
	s.v.par.mmapped_mem = 63 * PAGE;
	find(&s, &all, 1);
	cr_assert_not(s.m.proven);
	end(&s);
}

/* Any bytes, and many places: bounded. */
Test(glibc_mmapped, bounded)
{
	enum { PLACES = 4096 };
	static struct span place[PLACES];
	struct scene s;
	unsigned state = 7;

	start(&s);
	for (size_t i = 0; i < LEN; i += 4096) {
		state = state * 1664525u + 1013904223u;
		put(&s, BASE + i, state % 3 ? 0 : state, ((uint64_t)(state >> 8) << 12) | 2);
	}
	for (size_t i = 0; i < PLACES; i++)
		place[i] = (struct span){ BASE + i * PAGE, BASE + (i + 1) * PAGE };
	s.v.par.n_mmaps = INT32_MAX;
	find(&s, place, PLACES);
	cr_assert_leq(s.reads, 110000);
	for (size_t i = 1; i < s.m.n; i++)
		cr_assert_leq(s.m.v[i - 1].end, s.m.v[i].start);
	find(&s, &all, 1);
	for (size_t i = 0; i < s.m.n; i++)
		cr_assert(s.m.v[i].start >= (i ? s.m.v[i - 1].end : BASE) &&
			  s.m.v[i].end <= BASE + LEN && s.m.v[i].start < s.m.v[i].end);
	end(&s);
}
