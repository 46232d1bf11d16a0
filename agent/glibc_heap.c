// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READINGS 5U /* of one arena, until it stands still */

static void add(struct glibc_sum *s, uint64_t bytes)
{
	s->count++;
	s->bytes += bytes;
}

static void count(void *arg, const struct glibc_visit *c)
{
	struct glibc_arena_report *r = arg;

	if (c->size > r->largest)
		r->largest = c->size;
	if (c->place == PLACE_FASTBIN) {
		add(&r->fast, c->size);
		return;
	}
	add(c->index == 1 ? &r->unsorted : &r->bins, c->size);
	add(&r->bin[c->index], c->size);
}

static void take_header(const struct glibc_arena *a, struct glibc_arena_report *out)
{
	*out = (struct glibc_arena_report){
		.index = a->index,
		.at = a->at,
		.system_mem = a->system_mem,
		.max_system_mem = a->max_system_mem,
		.attached = a->attached,
	};
}

static void sum_up(const struct glibc_arena *a, struct glibc_arena_report *out)
{
	out->heaps = a->index ? a->heaps : 0;
	/* a top that cannot be as it is was no part of any heap */
	if (a->top_size && out->fault.kind != FAULT_TOP_SIZE)
		add(&out->top, a->top_size);
	out->free = out->fast.bytes + out->unsorted.bytes + out->bins.bytes + out->top.bytes;
	out->in_use = out->system_mem > out->free ? out->system_mem - out->free : 0;
}

/* One reading. 1 when the arena stood still meanwhile. */
static int read_once(const struct glibc_view *v, uint64_t at, unsigned index,
		     const struct glibc_budget *budget, struct glibc_arena *a,
		     struct glibc_arena_report *out)
{
	struct glibc_budget b = *budget;
	int rc;

	/* its header not older than what it leads to */
	v->r->refresh(v->r->ctx);
	rc = glibc_arena_read(v, at, index, a);
	take_header(a, out);
	if (!rc)
		rc = glibc_arena_heaps(v, a, &out->fault);
	if (!rc)
		rc = glibc_walk_lists(v, a, &b, count, out, &out->fault);
	out->swapped = rc == -ENODATA;
	out->cut = rc == -E2BIG;
	if (rc == -ESRCH || rc == -ENOMEM)
		return rc;
	sum_up(a, out);
	return glibc_arena_still(v, a);
}

static int read_arena(const struct glibc_view *v, uint64_t at, unsigned index,
		      const struct glibc_budget *budget, struct glibc_arena_report *out)
{
	struct glibc_arena *a = calloc(1, sizeof(*a));
	int rc = 0;

	if (!a)
		return -ENOMEM;
	for (unsigned i = 0; i < READINGS && rc == 0; i++)
		rc = read_once(v, at, index, budget, a, out);
	out->moving = rc == 0;
	glibc_arena_free(a);
	free(a);
	return rc < 0 ? rc : 0;
}

int glibc_report_read(const struct glibc_view *v, const struct glibc_budget *budget,
		      struct glibc_report *out)
{
	const struct glibc_budget all = { .chunks = UINT64_MAX };
	struct glibc_ring ring;
	int rc;

	*out = (struct glibc_report){ 0 };
	rc = glibc_ring_read(v, &ring, &out->ring_fault);
	if (rc == -ESRCH || rc == -ENOMEM)
		goto done;
	out->arena = calloc(ring.n ? ring.n : 1, sizeof(*out->arena));
	rc = out->arena ? 0 : -ENOMEM;
	for (size_t i = 0; i < ring.n && !rc; i++) {
		rc = read_arena(v, ring.at[i], (unsigned)i, budget ? budget : &all, &out->arena[i]);
		out->arenas += !rc;
	}
	if (!rc && glibc_par_read(v, &out->par) == -ESRCH)
		rc = -ESRCH;
done:
	glibc_ring_free(&ring);
	return rc;
}

void glibc_report_free(struct glibc_report *r)
{
	free(r->arena);
	*r = (struct glibc_report){ 0 };
}
