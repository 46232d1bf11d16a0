// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_plan_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"

#define READINGS 5U		   /* of one arena, until it stands still */
#define PAUSE	 NS_PER_MS	   /* before a second one where a list looked wrong, then doubled */
#define PATIENCE (100 * NS_PER_MS) /* of all pauses */
#define PAGE	 ((uint64_t)PAGES_SIZE)
/* What it costs, as measured: a look at a free chunk; a range (one madvise(2)); freeing a page, and
 * one that is mapped as a part of a huge page. */
#define CHUNK_NS 15U
#define RANGE_NS 1300U
#define PAGE_NS	 270U
#define HUGE_NS	 20U

static int by_address(const void *x, const void *y)
{
	const struct page_run *a = x, *b = y;

	return (a->start > b->start) - (a->start < b->start);
}

struct collect {
	struct glibc_free *v;
	size_t n, cap;
	bool failed;
};

static void keep(void *arg, const struct glibc_visit *c)
{
	struct collect *k = arg;

	if (k->n == k->cap && !k->failed) {
		size_t cap = k->cap ? 2 * k->cap : 256;
		struct glibc_free *more = reallocarray(k->v, cap, sizeof(*more));

		k->failed = !more;
		if (more) {
			k->v = more;
			k->cap = cap;
		}
	}
	if (!k->failed)
		k->v[k->n++] = (struct glibc_free){ c->at, c->size };
}

/*
 * The memory whose pages are counted: the heaps; of an arena that is not one piece, what is known
 * of it, the ranges that would be given back and top.
 */
static int all_runs(const struct glibc_arena *a, const struct glibc_cuts *cuts, uint64_t top,
		    const struct pages *pages, struct page_runs *runs)
{
	uint64_t end = a->top + a->top_size;
	int rc = 0;

	for (size_t i = 0; i < a->heaps && !rc; i++)
		rc = pages_runs(pages, pages_floor(a->heap[i].at), pages_ceil(a->heap[i].end),
				runs);
	if (!a->open)
		return rc;
	for (size_t i = 0; i < cuts->n && !rc; i++)
		if (cuts->v[i].start != cuts->brk_from)
			rc = pages_runs(pages, cuts->v[i].start, cuts->v[i].end, runs);
	if (!rc && top)
		rc = pages_runs(pages, pages_floor(top), pages_ceil(end), runs);
	if (runs->n)
		qsort(runs->v, runs->n, sizeof(*runs->v), by_address);
	return rc;
}

/* Before anything is merged. A top that cannot be as it is was no part of any heap. */
static void count_free(const struct glibc_arena *a, const struct collect *k,
		       struct glibc_arena_plan *out)
{
	out->top_bytes = out->fault.kind == FAULT_TOP_SIZE ? 0 : a->top_size;
	out->free = out->top_bytes;
	for (size_t i = 0; i < k->n; i++)
		out->free += k->v[i].size;
	out->in_use = out->system_mem > out->free ? out->system_mem - out->free : 0;
}

static int plan_arena(const struct glibc_view *v, const struct pages *pages,
		      const struct glibc_plan_opts *o, struct glibc_budget *b,
		      struct glibc_arena *a, struct glibc_arena_plan *out)
{
	struct page_runs runs = { 0 };
	struct glibc_cuts cuts = { 0 };
	struct collect k = { 0 };
	uint64_t top = 0, chunks;
	int rc = glibc_walk_lists(v, a, b, keep, &k, &out->fault), err;

	if (k.failed)
		rc = -ENOMEM;
	if (rc == -ESRCH || rc == -ENOMEM)
		goto done;
	chunks = k.n;
	count_free(a, &k, out);
	err = glibc_plan_cuts(a, o, k.v, &k.n, &top, &cuts);
	if (!err)
		err = all_runs(a, &cuts, top, pages, &runs);
	if (err) {
		rc = err;
		goto done;
	}
	out->partial = a->open;
	out->ranges = cuts.n;
	out->chunks = chunks;
	glibc_plan_pages(a, o, k.v, k.n, top, &cuts, &runs, out);
done:
	pages_free_runs(&runs);
	free(cuts.v);
	free(k.v);
	return rc;
}

struct job {
	const struct glibc_view *v;
	const struct pages *pages;
	const struct glibc_plan_opts *o;
	const struct glibc_budget *budget;
	uint64_t patience; /* ns that may still be waited */
};

/* A number for a header; who holds the lock is no part of it. */
static uint64_t stamp_of(const struct glibc_arena *a)
{
	uint64_t h = 14695981039346656037ULL; /* FNV-1a, by words */

	for (size_t i = 0; i + sizeof(h) <= a->len; i += sizeof(h)) {
		uint64_t w;

		memcpy(&w, a->raw + i, sizeof(w));
		if (i == 0)
			w >>= 32; /* the lock, then flags */
		h = (h ^ w) * 1099511628211ULL;
	}
	return h;
}

/* One reading. 1 when the arena stood still meanwhile. */
static int read_once(const struct job *j, uint64_t at, unsigned index, struct glibc_arena *a,
		     struct glibc_arena_plan *out)
{
	const struct glibc_view *v = j->v;
	struct glibc_budget b = *j->budget;
	int rc;

	/* its header not older than what it leads to */
	v->r->refresh(v->r->ctx);
	rc = glibc_arena_read(v, at, index, a);
	*out = (struct glibc_arena_plan){ .index = index, .at = at };
	if (!rc)
		rc = glibc_arena_heaps(v, a, &out->fault);
	out->attached = a->attached;
	out->system_mem = out->in_use = a->system_mem;
	out->stamp = stamp_of(a);
	if (!rc)
		rc = plan_arena(v, j->pages, j->o, &b, a, out);
	out->swapped_out = rc == -ENODATA;
	out->cut = rc && rc != -ENODATA && rc != -EBADMSG;
	if (rc == -ESRCH || rc == -ENOMEM)
		return rc;
	return glibc_arena_still(v, a);
}

static void add_up(struct glibc_arena_plan *sum, const struct glibc_arena_plan *a)
{
	sum->attached += a->attached;
	sum->system_mem += a->system_mem;
	sum->in_use += a->in_use;
	sum->free += a->free;
	sum->top_bytes += a->top_bytes;
	sum->pages.live += a->pages.live;
	sum->pages.stranded += a->pages.stranded;
	sum->pages.trimmable += a->pages.trimmable;
	sum->pages.pinned += a->pages.pinned;
	sum->pages.top += a->pages.top;
	sum->resident += a->resident;
	sum->ranges += a->ranges;
	sum->chunks += a->chunks;
	sum->from_top += a->from_top;
	sum->huge += a->huge;
	sum->swapped += a->swapped;
	sum->locked += a->locked;
	sum->hugetlb += a->hugetlb;
	sum->free_resident += a->free_resident;
	sum->stranded_bytes += a->stranded_bytes;
	sum->partial |= a->partial;
	sum->moving |= a->moving;
	sum->swapped_out |= a->swapped_out;
	sum->cut |= a->cut;
}

/* A list that looked wrong ended its reading: what comes behind is not in it. */
static bool sees_more(const struct glibc_arena_plan *x, const struct glibc_arena_plan *y)
{
	if (!x->fault.kind != !y->fault.kind)
		return !x->fault.kind;
	return x->fault.kind && x->free > y->free;
}

/*
 * A program without threads takes no lock: where it has no CPU in the middle of a change, its arena
 * stands still and looks wrong. Of readings that are all of a moving arena the one counts that has
 * seen the most, of equal ones the last.
 */
static int read_arena(struct job *j, uint64_t at, unsigned index, struct glibc_arena_plan *out)
{
	struct glibc_arena *a = calloc(1, sizeof(*a));
	bool whole = false;
	int rc = 0;

	if (!a)
		return -ENOMEM;
	for (unsigned i = 0; i < READINGS && rc >= 0 && !whole; i++) {
		struct glibc_arena_plan now;
		uint64_t ns = i && out->fault.kind && j->o->wait ? PAUSE << (i - 1) : 0;

		if (ns && ns <= j->patience) {
			j->patience -= ns;
			j->o->wait(j->o->ctx, ns);
		}
		rc = read_once(j, at, index, a, &now);
		now.moving = rc == 0;
		whole = rc == 1 && !now.fault.kind;
		if (i == 0 || whole || !sees_more(out, &now))
			*out = now;
	}
	glibc_arena_free(a);
	free(a);
	return rc < 0 ? rc : 0;
}

static uint64_t estimate(const struct glibc_arena_plan *t)
{
	uint64_t small = t->pages.trimmable - t->huge + t->swapped;

	return t->chunks * CHUNK_NS + t->ranges * RANGE_NS + small / PAGE * PAGE_NS +
	       t->huge / PAGE * HUGE_NS;
}

static void sum_up(struct glibc_plan *plan)
{
	plan->total = (struct glibc_arena_plan){ 0 };
	for (size_t i = 0; i < plan->arenas; i++)
		add_up(&plan->total, &plan->arena[i]);
	plan->total.swapped_out |= plan->ring_unread;
	plan->estimate_ns = estimate(&plan->total);
}

int glibc_plan_read(const struct glibc_view *v, const struct pages *pages,
		    const struct glibc_plan_opts *o, const struct glibc_budget *budget,
		    struct glibc_plan *out)
{
	const struct glibc_budget all = { .chunks = UINT64_MAX };
	struct job j = { v, pages, o, budget ? budget : &all, PATIENCE };
	struct glibc_ring ring;
	int rc;

	*out = (struct glibc_plan){ 0 };
	rc = glibc_ring_read(v, &ring, &out->ring_fault);
	out->ring_unread = rc && rc != -EBADMSG;
	if (rc == -ESRCH || rc == -ENOMEM)
		goto done;
	out->arena = calloc(ring.n ? ring.n : 1, sizeof(*out->arena));
	rc = out->arena ? 0 : -ENOMEM;
	for (size_t i = 0; i < ring.n && !rc; i++) {
		rc = read_arena(&j, ring.at[i], (unsigned)i, &out->arena[i]);
		out->arenas += !rc;
	}
	if (!rc && glibc_par_read(v, &out->par) == -ESRCH)
		rc = -ESRCH;
	sum_up(out);
done:
	glibc_ring_free(&ring);
	return rc;
}

/* 1: its header is as it was, 0: it is not, or cannot be read; -ESRCH. */
static int is_same(const struct glibc_view *v, const struct glibc_arena_plan *plan)
{
	struct glibc_arena *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return -ENOMEM;
	rc = glibc_arena_read(v, plan->at, plan->index, a);
	if (rc != -ESRCH)
		rc = !rc && stamp_of(a) == plan->stamp;
	free(a);
	return rc;
}

int glibc_plan_again(const struct glibc_view *v, const struct pages *pages,
		     const struct glibc_plan_opts *o, uint64_t chunks, struct glibc_plan *plan)
{
	const struct glibc_budget all = { .chunks = 2 * chunks };
	struct job j = { v, pages, o, &all, 0 };
	int rc = 0;

	v->r->refresh(v->r->ctx);
	for (size_t i = 0; i < plan->arenas && rc >= 0; i++) {
		struct glibc_arena_plan *a = &plan->arena[i];

		rc = is_same(v, a);
		if (rc)
			continue;
		if (a->chunks > chunks) {
			a->moving = true;
			continue;
		}
		chunks -= a->chunks;
		rc = read_arena(&j, a->at, a->index, a);
	}
	sum_up(plan);
	return rc < 0 ? rc : 0;
}

bool glibc_plan_is_whole(const struct glibc_plan *plan)
{
	bool whole = !plan->ring_unread && plan->ring_fault.kind == FAULT_NONE;

	for (size_t i = 0; i < plan->arenas; i++)
		whole &= plan->arena[i].fault.kind == FAULT_NONE && !plan->arena[i].cut &&
			 !plan->arena[i].swapped_out;
	return whole;
}

void glibc_plan_free(struct glibc_plan *p)
{
	free(p->arena);
	*p = (struct glibc_plan){ 0 };
}
