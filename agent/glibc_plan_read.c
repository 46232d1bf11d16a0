// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_plan_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"
#include "glibc_found.h"

#define READINGS  5U	    /* of one arena, until it stands still */
#define PAUSE	  NS_PER_MS /* before a second one where a list looked wrong, then doubled */
#define PATIENCE  (100 * NS_PER_MS) /* of all pauses */
#define LONG	  (500 * NS_PER_MS) /* of CPU time: an arena that takes longer is read once */
#define PAGE	  ((uint64_t)PAGES_SIZE)
#define COUNTABLE ((uint64_t)1 << 40) /* bytes of a heap */
/* What malloc_trim needs for a range (one madvise(2)), for each page that is freed, and for one
 * that is mapped as a part of a huge page; measured as glibc_found.c says. */
#define RANGE_NS 1300U
#define PAGE_NS	 120U
#define HUGE_NS	 10U

static int take_run(void *arg, uint64_t start, uint64_t end, unsigned flags)
{
	return glibc_sweep_run(arg, start, end, flags);
}

/* What a target says of its heap may be any address space; asking costs time for each page of it.
 */
static int count_range(const struct pages *pages, struct glibc_sweep *s, uint64_t start,
		       uint64_t end)
{
	return end > start + COUNTABLE ? -E2BIG : pages_each(pages, start, end, take_run, s);
}

/* With the page that it begins in. It may lie anywhere among the ranges. */
static int count_top(const struct pages *pages, struct glibc_sweep *s)
{
	uint64_t end = s->a->top + s->a->top_size, at = s->cuts->top ? s->cuts->top : end;
	size_t hint = 0;

	if (at >= PAGE && freemap_page(s->m, at - PAGE, &hint).tail)
		at -= PAGE;
	s->at_cut = s->at_pin = 0;
	return count_range(pages, s, at, end);
}

/*
 * The memory whose pages are counted: the heaps; of an arena that is not one piece, what is known
 * of it, the ranges that would be given back and top.
 */
static int count_pages(const struct pages *pages, struct glibc_sweep *s)
{
	const struct glibc_arena *a = s->a;
	int rc = 0;

	for (size_t i = 0; i < a->heaps && !rc; i++)
		rc = count_range(pages, s, pages_floor(a->heap[i].at), pages_ceil(a->heap[i].end));
	for (size_t i = 0; i < s->cuts->n && a->open && !rc; i++)
		if (s->cuts->v[i].start != s->cuts->brk_from)
			rc = count_range(pages, s, s->cuts->v[i].start, s->cuts->v[i].end);
	return rc || !a->open || !a->top_size ? rc : count_top(pages, s);
}

/* Before anything is merged. A top that cannot be as it is was no part of any heap. */
static void count_free(const struct glibc_arena *a, const struct glibc_found *found,
		       struct glibc_arena_plan *out)
{
	out->top_bytes = out->fault.kind == FAULT_TOP_SIZE ? 0 : a->top_size;
	out->free = out->top_bytes + found->bytes;
	out->in_use = out->system_mem > out->free ? out->system_mem - out->free : 0;
	out->chunks = found->chunks;
	out->look_ns = found->look_ns;
	out->partial = a->open;
}

struct job {
	const struct glibc_view *v;
	const struct pages *pages;
	const struct glibc_plan_opts *o;
	struct glibc_budget budget; /* chunks: of each reading, until: of all */
	uint64_t patience;	    /* ns that may still be waited */
};

static int plan_arena(struct job *j, const struct glibc_arena *a, struct glibc_arena_plan *out)
{
	struct glibc_found found = { .map.near = glibc_plan_near(j->o->pad) };
	struct glibc_budget b = j->budget;
	struct glibc_cuts cuts = { 0 };
	struct glibc_sweep s = { a, j->o, &found.map, &cuts, 0, 0, 0, out };
	int rc = glibc_found_read(j->v, a, &b, j->o->many, &found, &out->fault), err;

	j->budget.until = b.until;
	j->budget.until_cpu = b.until_cpu;
	if (rc == -ESRCH || rc == -ENOMEM)
		goto done;
	count_free(a, &found, out);
	err = freemap_add(&found.map, a->top, a->top_size);
	if (!err)
		err = glibc_plan_cuts(a, j->o, &found.map, &cuts);
	if (!err)
		err = count_pages(j->pages, &s);
	out->ranges = cuts.n;
	rc = err ? err : rc;
done:
	freemap_free(&found.map);
	free(cuts.v);
	return rc;
}

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
static int read_once(struct job *j, uint64_t at, unsigned index, struct glibc_arena *a,
		     struct glibc_arena_plan *out)
{
	const struct glibc_view *v = j->v;
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
		rc = plan_arena(j, a, out);
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
	sum->look_ns += a->look_ns;
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

/* What takes so long to read is not met standing still by reading it again. */
static bool is_long(uint64_t begun)
{
	return clock_cpu() - begun > LONG;
}

/*
 * A program without threads takes no lock: where it has no CPU in the middle of a change, its arena
 * stands still and looks wrong. Of readings that are all of a moving arena the one counts that has
 * seen the most, of equal ones the last.
 */
static int read_arena(struct job *j, uint64_t at, unsigned index, struct glibc_arena_plan *out)
{
	struct glibc_arena *a = calloc(1, sizeof(*a));
	uint64_t begun = clock_cpu();
	bool whole = false;
	int rc = 0;

	if (!a)
		return -ENOMEM;
	for (unsigned i = 0; i < READINGS && rc >= 0 && !whole && !is_long(begun); i++) {
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

	return t->look_ns + t->ranges * RANGE_NS + small / PAGE * PAGE_NS +
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
	struct job j = { v, pages, o, budget ? *budget : all, PATIENCE };
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
	struct job j = { v, pages, o, all, 0 };
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
