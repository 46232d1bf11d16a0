// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE 48U /* sizeof(struct malloc_chunk): what mtrim keeps before a range */
#define PAGE	   ((uint64_t)PAGES_SIZE)

/* Chunks and ranges both begin with their address. */
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
		uint64_t lo = pages_ceil(chunk[i].at + CHUNK_SIZE);
		uint64_t hi = pages_floor(chunk[i].at + chunk[i].size);

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
	stop = least(end, pages_floor(free_at));
	if (stop > at) {
		out->pages.live += stop - at;
	} else if (top && s->top <= at && s->top_end >= at + PAGE) {
		stop = least(end, pages_floor(s->top_end));
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
