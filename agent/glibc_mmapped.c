// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_mmapped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE	  4096ULL
#define ALIGN_MAX ((uint64_t)4 << 20) /* of aligned blocks that are looked for */
#define READS_MAX 100000U

/*
 * Memory in which a block may begin. The program may have divided a block's mapping, by madvise(2)
 * or mlock(2) of a part: then the block goes on in the places that follow without a gap.
 */
struct place {
	uint64_t start, end;
	uint64_t reach; /* where the last of those ends, or a block in them begins */
	uint64_t first; /* block that was found here, 0: none */
};

struct finder {
	const struct glibc_view *v;
	const struct glibc_par *par;
	struct glibc_mmapped *out;
	uint64_t bytes;
	unsigned reads; /* that are left */
	bool aligned;
};

static int add(struct finder *f, uint64_t start, uint64_t end)
{
	struct glibc_mmapped *out = f->out;

	if (out->n == out->cap) {
		size_t want = out->cap ? out->cap * 2 : 32;
		struct span *v = reallocarray(out->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
		out->cap = want;
	}
	out->v[out->n++] = (struct span){ start, end };
	f->bytes += end - start;
	return 0;
}

/* Since 2.43 the size is without the header of a chunk behind, which there never is. */
static uint64_t behind(const struct glibc_view *v)
{
	return v->version >= 43 ? GLIBC_CHUNK_HEADER : 0;
}

/* The length of the mapping from start on whose chunk is at head, 0 if there is none. */
static int length_at(struct finder *f, uint64_t start, uint64_t head, uint64_t end, uint64_t *len)
{
	uint64_t word[2], size;
	int rc;

	*len = 0;
	if (head + sizeof(word) > end || f->reads == 0)
		return 0;
	f->reads--;
	rc = f->v->r->read(f->v->r->ctx, head, word, sizeof(word));
	if (rc)
		return rc == -ESRCH ? rc : 0;
	size = word[1] & ~(uint64_t)CHUNK_BITS;
	if ((word[1] & CHUNK_BITS) != CHUNK_MMAPPED || word[0] != head - start ||
	    size < GLIBC_MINSIZE || size > end - head)
		return 0;
	size += word[0] + behind(f->v);
	if (size % PAGE == 0 && size <= end - start)
		*len = size;
	return 0;
}

/*
 * The block that a mapping from start on holds: its address is aligned to some power of two, which
 * is 16 unless aligned blocks are looked for too.
 */
static int mapping_at(struct finder *f, uint64_t start, uint64_t end, uint64_t *len)
{
	int rc = length_at(f, start, start, end, len);

	for (uint64_t align = 32; f->aligned && !rc && !*len && align <= ALIGN_MAX; align *= 2) {
		uint64_t block = (start + GLIBC_CHUNK_HEADER + align - 1) & ~(align - 1);

		rc = length_at(f, start, block - GLIBC_CHUNK_HEADER, end, len);
	}
	return rc;
}

static bool is_complete(const struct finder *f)
{
	return f->par->n_mmaps >= 0 && f->out->n >= (size_t)f->par->n_mmaps;
}

/* From the start of a place on, one behind the other; the start is then where that ends. */
static int chain(struct finder *f, struct place *p)
{
	uint64_t len = 1;
	int rc = 0;

	while (!rc && p->start < p->end && len && !is_complete(f)) {
		rc = mapping_at(f, p->start, p->reach, &len);
		if (!rc && len)
			rc = add(f, p->start, p->start + len);
		if (len && !p->first)
			p->first = p->start;
		p->start += len;
	}
	return rc;
}

/* The kernel has merged blocks with what lies below them: they may begin at any page. */
static int search(struct finder *f, struct place *p)
{
	int rc = 0;

	while (!rc && p->start < p->end && f->reads && !is_complete(f)) {
		rc = chain(f, p);
		if (p->start < p->end)
			p->start += PAGE;
	}
	return rc;
}

/* No block reaches into one that was found already. */
static void limit(struct place *p, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		uint64_t to = p[i].first ? p[i].first : p[i].reach;

		if (p[i - 1].reach > p[i - 1].end && p[i - 1].reach > to)
			p[i - 1].reach = to;
	}
}

/*
 * The likely things first, as every look costs a page to be read and all may be found soon: plain
 * blocks at the start of a place, aligned ones, then any page. place is changed.
 */
static int find(struct finder *f, struct place *place, size_t n)
{
	int rc = 0;

	for (int pass = 0; pass < 3; pass++) {
		f->aligned = pass > 0;
		limit(place, n);
		for (size_t i = 0; !rc && i < n; i++) {
			/* a block that begins in the place before may take all of this one */
			if (i && place[i].start < place[i - 1].start)
				place[i].start = place[i - 1].start;
			rc = pass < 2 ? chain(f, &place[i]) : search(f, &place[i]);
		}
	}
	return rc;
}

/* NULL without memory; the caller frees it. */
static struct place *places_join(const struct span *v, size_t n)
{
	struct place *p = calloc(n, sizeof(*p));

	for (size_t i = n; p && i-- > 0;) {
		p[i] = (struct place){ v[i].start, v[i].end, v[i].end, 0 };
		if (i + 1 < n && v[i].end == v[i + 1].start)
			p[i].reach = p[i + 1].reach;
	}
	return p;
}

static int by_start(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return (a->start > b->start) - (a->start < b->start);
}

/* Since 2.43 glibc's own sum has 16 bytes more for each time that a block was moved (glibc_par.c).
 */
static bool agrees(const struct finder *f, const struct glibc_par *par)
{
	uint64_t more = par->mmapped_mem - f->bytes;

	if (par->n_mmaps < 0 || (size_t)par->n_mmaps != f->out->n || par->mmapped_mem < f->bytes)
		return false;
	return more == 0 || (behind(f->v) && more % behind(f->v) == 0);
}

int glibc_mmapped_find(const struct glibc_view *v, const struct span *places, size_t n,
		       struct glibc_mmapped *out)
{
	struct finder f = { .v = v, .par = &v->par, .out = out, .reads = READS_MAX };
	struct glibc_par after;
	struct place *rest;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!v->par.at || v->par.n_mmaps <= 0 || n == 0)
		return 0;
	rest = places_join(places, n);
	if (!rest)
		return -ENOMEM;
	rc = find(&f, rest, n);
	free(rest);
	if (rc)
		return rc;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_start);
	v->r->refresh(v->r->ctx);
	out->proven = agrees(&f, &v->par) || (glibc_par_read(v, &after) == 0 && agrees(&f, &after));
	return 0;
}

void glibc_mmapped_free(struct glibc_mmapped *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}
