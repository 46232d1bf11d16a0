// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners_glibc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP_SIZE ((uint64_t)64 << 20)
#define PAGE	  4096ULL
/* sizeof(heap_info): 32, from 2.35 on 48; the first heap's arena lies behind it */
#define INFO_MIN 32U
#define INFO_MAX 64U

/* The start of heap_info, all versions (arena.c). */
struct heap_info {
	uint64_t ar_ptr, prev, size, mprotect_size;
};

int glibc_ranges_add(struct glibc_ranges *r, const struct glibc_range *range)
{
	if (r->n == r->cap) {
		size_t want = r->cap ? r->cap * 2 : 32;
		struct glibc_range *v = reallocarray(r->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		r->v = v;
		r->cap = want;
	}
	r->v[r->n++] = *range;
	return 0;
}

void glibc_ranges_free(struct glibc_ranges *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}

int owner_claim_glibc(struct owner_facts *f, const struct glibc_ranges *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct glibc_range *g = &r->v[i];
		int err = owner_claim(f, CLAIM_ALLOCATOR,
				      &(struct claim){ .start = g->start,
						       .end = g->end,
						       .owner = g->owner,
						       .basis = g->basis,
						       .kind = "",
						       .id = g->arena });

		if (err)
			return err;
	}
	return 0;
}

struct finder {
	const struct smaps *s;
	const struct reader *r;
	struct glibc_ranges *out;
};

static bool is_anon(const struct map *m)
{
	return map_is_anon(m) && !m->shared;
}

static bool is_page_count(uint64_t v)
{
	return v && v % PAGE == 0 && v <= HEAP_SIZE;
}

/* The arena that ar points to lies at the start of a heap of its own, which points back. */
static bool is_arena(const struct finder *f, uint64_t ar)
{
	uint64_t base = ar & ~(HEAP_SIZE - 1), back;

	return ar - base >= INFO_MIN && ar - base <= INFO_MAX && ar % 8 == 0 && base &&
	       f->r->read(f->r->ctx, base, &back, sizeof(back)) == 0 && back == ar;
}

/* Is there a heap at base of which length bytes are accessible? */
static bool is_heap(const struct finder *f, uint64_t base, uint64_t length)
{
	struct heap_info h;

	return f->r->read(f->r->ctx, base, &h, sizeof(h)) == 0 && is_arena(f, h.ar_ptr) &&
	       h.prev % HEAP_SIZE == 0 && h.size == length && is_page_count(h.mprotect_size) &&
	       h.mprotect_size >= h.size;
}

/* Does nothing but inaccessible space follow row up to end? */
static bool reserved_up_to(const struct finder *f, size_t i, uint64_t end)
{
	const struct map *m = &f->s->v[i].map, *next;

	if (m->end == end)
		return true;
	if (i + 1 == f->s->n)
		return false;
	next = &f->s->v[i + 1].map;
	return next->start == m->end && next->prot == PROT_NONE && is_anon(next) &&
	       next->end >= end;
}

static int add_heap(struct finder *f, uint64_t base)
{
	return glibc_ranges_add(f->out, &(struct glibc_range){ .start = base,
							       .end = base + HEAP_SIZE,
							       .owner = OWNER_GLIBC_ARENA,
							       .arena = -1,
							       .basis = BASIS_READ });
}

/* The last heap in a mapping may be in use in part; those that it has been merged with are full. */
static int find_in_row(struct finder *f, size_t i)
{
	const struct map *m = &f->s->v[i].map;
	uint64_t base = (m->end - 1) & ~(HEAP_SIZE - 1), length = m->end - base;
	int err = 0;

	if (base > UINT64_MAX - HEAP_SIZE || !reserved_up_to(f, i, base + HEAP_SIZE))
		return 0;
	while (!err && base >= m->start && is_heap(f, base, length)) {
		err = add_heap(f, base);
		base -= HEAP_SIZE;
		length = HEAP_SIZE;
	}
	return err;
}

int glibc_ranges_from_maps(const struct smaps *s, const struct reader *r, struct glibc_ranges *out)
{
	struct finder f = { .s = s, .r = r, .out = out };
	const int rw = PROT_READ | PROT_WRITE;
	int err = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; !err && i < s->n; i++)
		if (is_anon(&s->v[i].map) && s->v[i].map.prot == rw &&
		    s->v[i].map.start < s->v[i].map.end)
			err = find_in_row(&f, i);
	if (err)
		glibc_ranges_free(out);
	return err;
}
