// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_plan.h"

#include <errno.h>
#include <stdlib.h>

#define TOP_KEPT 33U /* MINSIZE and a byte: what systrim leaves of top beside the pad */
#define PAGE	 ((uint64_t)PAGES_SIZE)

/* ---- what is given back */

unsigned glibc_plan_near(uint64_t pad)
{
	return (unsigned)((TOP_KEPT % PAGE + pad % PAGE) % PAGE + FREEMAP_UNIT - 1) / FREEMAP_UNIT;
}

/* Where the pages begin that are top and nothing else: malloc_consolidate makes what lies before
 * top a part of it. */
static uint64_t top_from(const struct glibc_arena *a, const struct freemap *m)
{
	uint64_t at = pages_floor(a->top + a->top_size);
	size_t hint = 0;

	if (!a->top_size)
		return 0;
	while (at >= PAGE && freemap_page(m, at - PAGE, &hint).free == FREEMAP_FULL) {
		at -= PAGE;
		if (hint < m->blocks && !m->block[hint].page)
			at = m->block[hint].at;
	}
	return at < a->top + a->top_size ? at : 0;
}

/*
 * systrim: lowers the break in whole steps, but only if nobody else has moved it. A part of a page
 * of top counts where it is as large as what is missing to a page.
 */
static uint64_t lowered_from(const struct glibc_arena *a, const struct glibc_plan_opts *o,
			     const struct freemap *m, uint64_t top)
{
	uint64_t end = a->top + a->top_size, step = o->step ? o->step : PAGE, area, kept;
	size_t hint = 0;

	if (a->index != 0 || !a->top_size || end != o->brk || !top || o->pad > end - top)
		return 0;
	area = end - top;
	kept = pages_floor(o->pad + TOP_KEPT);
	if (top < PAGE || freemap_page(m, top - PAGE, &hint).near < m->near)
		kept += PAGE;
	if (area <= kept || area - kept < step)
		return 0;
	return end - (area - kept) / step * step;
}

static int by_start(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	return (a->start > b->start) - (a->start < b->start);
}

struct cutter {
	const struct glibc_arena *a;
	struct glibc_cuts *out;
	size_t cap;
	uint64_t start, end; /* of the range that goes on; start 0: none */
	bool before;	     /* the 48 bytes before end are free */
};

static int add_cut(struct cutter *c, uint64_t start, uint64_t end)
{
	struct glibc_cuts *out = c->out;

	if (out->n == c->cap) {
		size_t want = c->cap ? c->cap * 2 : 16;
		struct span *v = reallocarray(out->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
		c->cap = want;
	}
	out->v[out->n++] = (struct span){ start, end };
	return 0;
}

static bool in_top(const struct glibc_arena *a, const struct glibc_cuts *cuts, uint64_t page)
{
	return cuts->top && page >= cuts->top && page < a->top + a->top_size;
}

/*
 * Pages, len bytes together, all of which are as page says. A range leaves the first 48 bytes of
 * its chunk (sizeof(struct malloc_chunk)) and what is no whole page.
 */
static int take_pages(struct cutter *c, uint64_t at, uint64_t len, struct freemap_page page)
{
	bool full = page.free == FREEMAP_FULL && !in_top(c->a, c->out, at);
	int rc = 0;

	c->before = c->before && c->end == at;
	if (c->start && (!full || c->end != at)) {
		rc = add_cut(c, c->start, c->end);
		c->start = 0;
	}
	if (full && !c->start && (c->before || len > PAGE))
		c->start = c->before ? at : at + PAGE;
	c->end = at + len;
	/* what follows top is another piece of memory */
	c->before = page.tail == FREEMAP_HEAD && c->end != c->a->top + c->a->top_size;
	return rc;
}

int glibc_plan_cuts(const struct glibc_arena *a, const struct glibc_plan_opts *o,
		    const struct freemap *m, struct glibc_cuts *out)
{
	struct cutter c = { .a = a, .out = out };
	int rc = 0;

	*out = (struct glibc_cuts){ .top = top_from(a, m) };
	for (size_t i = 0; i < m->blocks && !rc; i++) {
		const struct freemap_block *b = &m->block[i];

		if (!b->page)
			rc = take_pages(&c, b->at, FREEMAP_BLOCK, freemap_full(m));
		for (size_t k = 0; b->page && k < FREEMAP_PAGES && !rc; k++)
			rc = take_pages(&c, b->at + k * PAGE, PAGE, b->page[k]);
	}
	if (!rc && c.start)
		rc = add_cut(&c, c.start, c.end);
	out->brk_from = lowered_from(a, o, m, out->top);
	if (!rc && out->brk_from) {
		rc = add_cut(&c, out->brk_from, a->top + a->top_size);
		qsort(out->v, out->n, sizeof(*out->v), by_start);
	}
	return rc;
}

/* ---- which pages are in memory */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	uint64_t lo = a > b ? a : b, hi = least(a_end, b_end);

	return lo < hi ? hi - lo : 0;
}

static const struct span *next_cut(struct glibc_sweep *s, uint64_t at)
{
	while (s->at_cut < s->cuts->n && s->cuts->v[s->at_cut].end <= at)
		s->at_cut++;
	return s->at_cut < s->cuts->n ? &s->cuts->v[s->at_cut] : NULL;
}

/* What ends the call for this range, or NULL. Lowering the break is munmap(2): that works on locked
 * memory too. */
static const struct glibc_pinned *stopped_by(struct glibc_sweep *s, const struct span *cut,
					     bool brk)
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
static void cut_pages(struct glibc_sweep *s, const struct span *cut, uint64_t at, uint64_t end,
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

/* Pages of which nothing is given back are looked at one by one. */
static void kept_page(struct glibc_sweep *s, uint64_t at)
{
	struct glibc_arena_plan *out = s->out;
	uint64_t bytes;

	bytes = (uint64_t)FREEMAP_UNIT * freemap_page(s->m, at, &s->at_block).free;
	if (in_top(s->a, s->cuts, at)) {
		out->pages.top += PAGE;
	} else if (bytes) {
		out->pages.stranded += PAGE;
		out->stranded_bytes += bytes;
	} else {
		out->pages.live += PAGE;
	}
	out->free_resident += bytes;
	out->resident += PAGE;
}

int glibc_sweep_run(struct glibc_sweep *s, uint64_t start, uint64_t end, unsigned flags)
{
	bool swapped = flags & PAGE_SWAPPED;
	uint64_t at = start, stop;

	/* a page of zeros is shared by all and counts as nobody's */
	if (!swapped && (!(flags & PAGE_PRESENT) || (flags & PAGE_ZERO)))
		return 0;
	for (; at < end; at = stop) {
		const struct span *cut = next_cut(s, at);

		stop = end;
		if (cut && cut->start <= at) {
			stop = least(stop, cut->end);
			cut_pages(s, cut, at, stop, flags);
			continue;
		}
		if (cut)
			stop = least(stop, cut->start);
		for (uint64_t page = at; page < stop && !swapped; page += PAGE)
			kept_page(s, page);
	}
	return 0;
}
