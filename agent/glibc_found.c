// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_found.h"

#include <errno.h>

#include "../inject/clock.h"

#define PAGE	  4096U
#define LARGE_MIN 1024U /* from this size on chunks may be in a ring of sizes */
/* A walk over all chunks: once there are more free ones than this, and one for so many pages. */
#define WALK_FROM  10000U
#define WALK_PAGES 8U
/* What it may take: of CPU time, for each byte four times what is needed, and of time as much more.
 */
#define WALK_LEAST (100 * NS_PER_MS)
#define WALK_NS	   2U
#define WALK_WALL  5U
#define WALK_MAX   ((uint64_t)1 << 37) /* bytes that this is for */

/*
 * What a look at a free chunk costs malloc_trim, measured as CPU time of the call (glibc 2.36,
 * Linux 6.18, two CPUs of a KVM guest; 14 heaps of 1,400 to 7,000,000 free chunks, all of which
 * come out within a factor of two): beside the one before; in another line of the cache; on another
 * page. Those of fastbins are merged first.
 */
enum { NEAR_NS = 12, LINE_NS = 45, PAGE_NS = 165, MERGE_NS = 15, NEAR = 128 };

/* Chunks that malloc_trim looks at. */
struct looked {
	uint64_t n, ns;
	uint64_t last; /* address */
};

struct finder {
	const struct reader *r;
	struct glibc_found *out;
	/* All links, as they lead there (fd) and as they lead back (bk): the same where each list
	 * is whole. Likewise those of the rings of sizes. */
	uint64_t there, back, ring_there, ring_back;
	struct looked fast, unsorted, large;
	unsigned index; /* of the bin that is walked, 0: of none yet */
	uint64_t small; /* chunks of less than a page, of a walk over the heaps */
	int rc;
};

static void look(struct looked *l, uint64_t at, unsigned more)
{
	uint64_t apart = at > l->last ? at - l->last : l->last - at;

	l->n++;
	l->ns += more + (apart <= NEAR ? NEAR_NS : at / PAGE == l->last / PAGE ? LINE_NS : PAGE_NS);
	l->last = at;
}

static void add(struct finder *w, const struct glibc_visit *c)
{
	if (!w->rc)
		w->rc = freemap_add(&w->out->map, c->at, c->size);
	w->out->chunks++;
	w->out->bytes += c->size;
}

/* Of a list. mtrim passes over the bins of chunks that are smaller than a page. */
static void keep(void *arg, const struct glibc_visit *c)
{
	struct finder *w = arg;

	add(w, c);
	if (c->place == PLACE_FASTBIN) {
		look(&w->fast, c->at, MERGE_NS);
		return;
	}
	w->index = c->index;
	if (c->index == 1)
		look(&w->unsorted, c->at, 0);
	else if (c->index >= glibc_bin_index(PAGE))
		look(&w->large, c->at, 0);
}

/* A number for a link, so that the sum of many tells what they are. */
static uint64_t link_of(uint64_t from, uint64_t to)
{
	uint64_t h = from * 0x9e3779b97f4a7c15ULL;

	h = ((h << 31 | h >> 33) ^ to) * 0xc2b2ae3d27d4eb4fULL;
	return h ^ h >> 29;
}

static void keep_free(void *arg, const struct glibc_visit *c)
{
	struct finder *w = arg;
	uint64_t link[4] = { 0 }; /* fd, bk, fd_nextsize, bk_nextsize */
	size_t len = c->size < LARGE_MIN ? 2 * sizeof(*link) : sizeof(link);

	if (c->used || w->rc)
		return;
	w->rc = w->r->read(w->r->ctx, c->at + GLIBC_CHUNK_HEADER, link, len);
	w->there += link_of(c->at, link[0]);
	w->back += link_of(link[1], c->at);
	if (link[2]) {
		w->ring_there += link_of(c->at, link[2]);
		w->ring_back += link_of(link[3], c->at);
	}
	if (glibc_bin_index(c->size) >= glibc_bin_index(PAGE))
		look(&w->large, c->at, 0);
	else
		w->small++;
	add(w, c);
}

/*
 * A walk over the heaps does not tell in which order the lists have the chunks, nor which of the
 * small ones are unsorted: the lists have been walked for a while before, as few says. Where they
 * were left among the unsorted ones, all others are of these.
 */
static void estimate_looks(const struct finder *few, struct finder *w)
{
	const struct looked *u = &few->unsorted;

	w->unsorted = *u;
	if (few->index > 1)
		return;
	w->unsorted.n = w->small;
	w->unsorted.ns = u->n ? w->small * (u->ns / u->n) : w->small * LINE_NS;
}

static bool lists_hold(const struct glibc_view *v, const struct glibc_arena *a, struct finder *w)
{
	for (unsigned i = 1; i < GLIBC_BINS; i++) {
		uint64_t head = glibc_arena_bin_at(v, a, i), first, last;

		glibc_arena_bin(v, a, i, &first, &last);
		w->there += link_of(head, first);
		w->back += link_of(last, head);
	}
	return w->there == w->back && w->ring_there == w->ring_back;
}

/* Chunks in fastbins count as used: these lists are walked too. -EAGAIN where all this cannot be
 * done, or does not fit together. */
static int walk_heaps(const struct glibc_view *v, const struct glibc_arena *a,
		      struct glibc_budget *b, struct finder *w)
{
	struct glibc_fault ignored;
	int rc = 0;

	for (size_t i = 0; i < a->heaps && !rc; i++) {
		bool whole;

		rc = glibc_walk_chunks(v, a, i, b, keep_free, w, &whole, &ignored);
		if (!rc && !whole)
			rc = -EAGAIN;
	}
	for (unsigned i = 0; i < glibc_fastbins(v) && !rc; i++)
		rc = glibc_walk_fastbin(v, a, i, b, keep, w, &ignored);
	if (!rc)
		rc = w->rc;
	if (!rc && !lists_hold(v, a, w))
		rc = -EAGAIN;
	return rc;
}

static int walk_lists(const struct glibc_view *v, const struct glibc_arena *a,
		      struct glibc_budget *b, struct finder *w, struct glibc_fault *f)
{
	int rc = glibc_walk_lists(v, a, b, keep, w, f);

	w->out->look_ns = w->fast.ns + w->unsorted.ns + w->large.ns;
	return w->rc ? w->rc : rc;
}

static void begin(struct finder *w, const struct reader *r, struct glibc_found *out)
{
	const unsigned near = out->map.near;

	freemap_free(&out->map);
	*out = (struct glibc_found){ .map.near = near };
	*w = (struct finder){ .r = r, .out = out };
}

static void set_limit(struct glibc_budget *b, const struct glibc_arena *a, const uint64_t begun[2])
{
	uint64_t bytes = a->system_mem < WALK_MAX ? a->system_mem : WALK_MAX;
	uint64_t ns = WALK_LEAST + WALK_NS * bytes;

	if (b->until)
		b->until = begun[0] + WALK_WALL * ns;
	if (b->until_cpu)
		b->until_cpu = begun[1] + ns;
}

static void extend(struct glibc_budget *b, const uint64_t begun[2])
{
	if (b->until)
		b->until += clock_now() - begun[0];
	if (b->until_cpu)
		b->until_cpu += clock_cpu() - begun[1];
}

int glibc_found_read(const struct glibc_view *v, const struct glibc_arena *a,
		     struct glibc_budget *b, uint64_t many, struct glibc_found *out,
		     struct glibc_fault *f)
{
	const uint64_t begun[2] = { clock_now(), clock_cpu() };
	struct glibc_budget few = *b, walk = *b;
	struct finder w, sample;
	int rc;

	begin(&w, v->r, out);
	if (a->open || b->chunks != UINT64_MAX)
		return walk_lists(v, a, b, &w, f);
	few.chunks = many ? many : WALK_FROM + a->system_mem / PAGE / WALK_PAGES;
	rc = walk_lists(v, a, &few, &w, f);
	if (rc != -E2BIG)
		return rc;
	sample = w;
	begin(&w, v->r, out);
	set_limit(&walk, a, begun);
	rc = walk_heaps(v, a, &walk, &w);
	estimate_looks(&sample, &w);
	out->look_ns = w.fast.ns + w.unsorted.ns + w.large.ns;
	extend(b, begun);
	if (!rc || rc == -E2BIG || rc == -ESRCH || rc == -ENOMEM)
		return rc;
	begin(&w, v->r, out);
	return walk_lists(v, a, b, &w, f);
}
