// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"

#define READINGS   5U	     /* of one arena, until it stands still */
#define PAUSE	   NS_PER_MS /* before a second one where a list looked wrong, then doubled */
#define PATIENCE   (100 * NS_PER_MS) /* of all pauses */
#define CHUNK_SIZE 48U /* sizeof(struct malloc_chunk): what mtrim keeps before a range */
#define PAGE	   ((uint64_t)PAGES_SIZE)
/* What it costs, as measured: a look at a free chunk; a range (one madvise(2)); freeing a page, and
 * one that is mapped as a part of a huge page. */
#define CHUNK_NS 15U
#define RANGE_NS 1300U
#define PAGE_NS	 270U
#define HUGE_NS	 20U

static uint64_t page_down(uint64_t x)
{
	return x & ~(PAGE - 1);
}

static uint64_t page_up(uint64_t x)
{
	return page_down(x + PAGE - 1);
}

/* Chunks, ranges and runs of pages all begin with their address. */
static int by_address(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

/* As malloc_consolidate: neighbours become one, and what lies before top becomes top. */
static size_t merge(const struct glibc_arena *a, struct glibc_free *chunk, size_t n, uint64_t *top)
{
	size_t kept = 0;

	*top = a->top_size ? a->top : 0;
	if (!n)
		return 0;
	qsort(chunk, n, sizeof(*chunk), by_address);
	for (size_t i = 1; i < n; i++) {
		struct glibc_free *last = &chunk[kept];

		if (chunk[i].at == last->at + last->size)
			last->size += chunk[i].size;
		else if (chunk[i].at > last->at) /* seen twice: it moved from list to list */
			chunk[++kept] = chunk[i];
	}
	kept++;
	for (size_t i = 0; i < kept && *top; i++)
		if (chunk[i].at + chunk[i].size == *top) {
			*top = chunk[i].at;
			memmove(&chunk[i], &chunk[i + 1], (kept - i - 1) * sizeof(*chunk));
			kept--;
			break;
		}
	return kept;
}

/* systrim: lowers the break in whole steps, but only if nobody else has moved it. */
static uint64_t lowered_from(const struct glibc_arena *a, const struct glibc_plan_opts *o,
			     uint64_t top)
{
	uint64_t end = a->top + a->top_size, area, step = o->step ? o->step : PAGE;

	if (a->index != 0 || !top || end != o->brk || end - top <= GLIBC_MINSIZE)
		return 0;
	area = end - top - GLIBC_MINSIZE - 1;
	if (area <= o->pad || area - o->pad < step)
		return 0;
	return end - (area - o->pad) / step * step;
}

int glibc_plan_cuts(const struct glibc_arena *a, const struct glibc_plan_opts *o,
		    struct glibc_free *chunk, size_t *n, uint64_t *top, struct glibc_cuts *out)
{
	*out = (struct glibc_cuts){ 0 };
	*n = merge(a, chunk, *n, top);
	out->v = calloc(*n + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++) {
		uint64_t lo = page_up(chunk[i].at + CHUNK_SIZE);
		uint64_t hi = page_down(chunk[i].at + chunk[i].size);

		if (chunk[i].size > PAGE - 1 + CHUNK_SIZE && lo < hi)
			out->v[out->n++] = (struct span){ lo, hi };
	}
	out->brk_from = lowered_from(a, o, *top);
	if (out->brk_from) {
		out->v[out->n++] = (struct span){ out->brk_from, a->top + a->top_size };
		qsort(out->v, out->n, sizeof(*out->v), by_address);
	}
	return 0;
}

/* Where we are in each of the sorted lists while the runs go by. */
struct sweep {
	const struct glibc_plan_opts *o;
	const struct glibc_free *chunk;
	const struct glibc_cuts *cuts;
	size_t n, at_chunk, at_cut, at_pin;
	uint64_t top, top_end;
	struct glibc_arena_plan *out;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	uint64_t lo = a > b ? a : b, hi = least(a_end, b_end);

	return lo < hi ? hi - lo : 0;
}

static const struct span *next_cut(struct sweep *s, uint64_t at)
{
	while (s->at_cut < s->cuts->n && s->cuts->v[s->at_cut].end <= at)
		s->at_cut++;
	return s->at_cut < s->cuts->n ? &s->cuts->v[s->at_cut] : NULL;
}

/* What ends the call for this range, or NULL. Lowering the break is munmap(2): that works on locked
 * memory too. */
static const struct glibc_pinned *stopped_by(struct sweep *s, const struct span *cut, bool brk)
{
	const struct glibc_pinned *p = s->o->pinned;

	while (s->at_pin < s->o->pinned_n && p[s->at_pin].end <= cut->start)
		s->at_pin++;
	for (size_t i = s->at_pin; i < s->o->pinned_n && p[i].start < cut->end; i++)
		if (p[i].hugetlb || !brk)
			return &p[i];
	return NULL;
}

/* The pages [at, end) of a range that a trim is for. */
static void cut_pages(struct sweep *s, const struct span *cut, uint64_t at, uint64_t end,
		      unsigned flags)
{
	struct glibc_arena_plan *out = s->out;
	bool swapped = flags & PAGE_SWAPPED, brk = cut->start == s->cuts->brk_from;
	const struct glibc_pinned *p = stopped_by(s, cut, brk);
	uint64_t kept = p ? overlap(at, end, p->start, cut->end) : 0, gone = end - at - kept;

	if (swapped) {
		out->swapped += gone;
		return;
	}
	out->pages.pinned += kept;
	if (p)
		*(p->hugetlb ? &out->hugetlb : &out->locked) += kept;
	out->pages.trimmable += gone;
	out->from_top += brk ? gone : 0;
	out->huge += flags & PAGE_HUGE ? gone : 0;
	out->resident += end - at;
	out->free_resident += end - at;
}

/* A page that is free in part, or a small chunk's. */
static void mixed_page(struct sweep *s, uint64_t page)
{
	uint64_t bytes = s->top ? overlap(page, page + PAGE, s->top, s->top_end) : 0;

	for (size_t i = s->at_chunk; i < s->n && s->chunk[i].at < page + PAGE; i++)
		bytes += overlap(page, page + PAGE, s->chunk[i].at,
				 s->chunk[i].at + s->chunk[i].size);
	s->out->pages.stranded += PAGE;
	s->out->stranded_bytes += bytes;
	s->out->free_resident += bytes;
}

/* The first pages of [at, end), none of which is given back, that are of one kind: returns where
 * they end. */
static uint64_t kept_pages(struct sweep *s, uint64_t at, uint64_t end)
{
	struct glibc_arena_plan *out = s->out;
	bool top = s->top && s->top_end > at;
	uint64_t free_at = UINT64_MAX, stop;

	while (s->at_chunk < s->n && s->chunk[s->at_chunk].at + s->chunk[s->at_chunk].size <= at)
		s->at_chunk++;
	if (s->at_chunk < s->n)
		free_at = s->chunk[s->at_chunk].at;
	if (top)
		free_at = least(free_at, s->top);
	stop = least(end, page_down(free_at));
	if (stop > at) {
		out->pages.live += stop - at;
	} else if (top && s->top <= at && s->top_end >= at + PAGE) {
		stop = least(end, page_down(s->top_end));
		out->pages.top += stop - at;
		out->free_resident += stop - at;
	} else {
		stop = at + PAGE;
		mixed_page(s, at);
	}
	out->resident += stop - at;
	return stop;
}

static void one_run(struct sweep *s, const struct page_run *run)
{
	bool swapped = run->flags & PAGE_SWAPPED;
	uint64_t at = run->start;

	/* a page of zeros is shared by all and counts as nobody's */
	if (!swapped && (!(run->flags & PAGE_PRESENT) || (run->flags & PAGE_ZERO)))
		return;
	while (at < run->end) {
		const struct span *cut = next_cut(s, at);
		uint64_t end = run->end;

		if (cut && cut->start <= at) {
			end = least(end, cut->end);
			cut_pages(s, cut, at, end, run->flags);
			at = end;
			continue;
		}
		if (cut)
			end = least(end, cut->start);
		at = swapped ? end : kept_pages(s, at, end);
	}
}

void glibc_plan_pages(const struct glibc_arena *a, const struct glibc_plan_opts *o,
		      const struct glibc_free *chunk, size_t n, uint64_t top,
		      const struct glibc_cuts *cuts, const struct page_runs *runs,
		      struct glibc_arena_plan *out)
{
	struct sweep s = { .o = o,
			   .chunk = chunk,
			   .cuts = cuts,
			   .n = n,
			   .top = top,
			   .top_end = a->top + a->top_size,
			   .out = out };

	for (size_t i = 0; i < runs->n; i++)
		one_run(&s, &runs->v[i]);
}

/* ---- reading */

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
		rc = pages_runs(pages, page_down(a->heap[i].at), page_up(a->heap[i].end), runs);
	if (!a->open)
		return rc;
	for (size_t i = 0; i < cuts->n && !rc; i++)
		if (cuts->v[i].start != cuts->brk_from)
			rc = pages_runs(pages, cuts->v[i].start, cuts->v[i].end, runs);
	if (!rc && top)
		rc = pages_runs(pages, page_down(top), page_up(end), runs);
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
	out->swapped_out = rc == -ENODATA;
	out->cut = rc == -E2BIG;
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
	if (!rc)
		rc = plan_arena(v, j->pages, j->o, &b, a, out);
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
	if (rc == -ESRCH || rc == -ENOMEM)
		goto done;
	out->arena = calloc(ring.n ? ring.n : 1, sizeof(*out->arena));
	rc = out->arena ? 0 : -ENOMEM;
	for (size_t i = 0; i < ring.n && !rc; i++) {
		rc = read_arena(&j, ring.at[i], (unsigned)i, &out->arena[i]);
		if (rc)
			break;
		out->arenas++;
		add_up(&out->total, &out->arena[i]);
	}
	if (!rc && glibc_par_read(v, &out->par) == -ESRCH)
		rc = -ESRCH;
	out->estimate_ns = estimate(&out->total);
done:
	glibc_ring_free(&ring);
	return rc;
}

void glibc_plan_free(struct glibc_plan *p)
{
	free(p->arena);
	*p = (struct glibc_plan){ 0 };
}
