// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * mp_ has no list to be recognised by. It is the place where all of its numbers are possible at
 * once: limits that nobody sets to millions, byte counts in whole pages below their own peak, and
 * the start of the main heap, which ends at top.
 */
#include "glibc_par.h"

#include <string.h>

#define COUNT_MAX (1 << 24)
#define PAR_MAX	  144U
#define STEP_MAX  ((uint64_t)16 << 30)

static uint64_t u64(const unsigned char *b, size_t off)
{
	uint64_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

static int i32(const unsigned char *b, size_t off)
{
	int v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

static void decode(const unsigned char *b, uint64_t at, const struct glibc_par_row *row,
		   struct glibc_par *out)
{
	*out = (struct glibc_par){
		.at = at,
		.row = row,
		.trim_threshold = u64(b, 0),
		.top_pad = u64(b, 8),
		.mmap_threshold = u64(b, 16),
		.arena_test = u64(b, 24),
		.arena_max = u64(b, 32),
		.n_mmaps = i32(b, row->n_mmaps),
		.n_mmaps_max = i32(b, row->n_mmaps + 4U),
		.max_n_mmaps = i32(b, row->n_mmaps + 8U),
		.no_dyn_threshold = i32(b, row->n_mmaps + 12U) != 0,
		.mmapped_mem = u64(b, row->mmapped_mem),
		.max_mmapped_mem = u64(b, row->mmapped_mem + 8U),
		.sbrk_base = u64(b, row->sbrk_base),
	};
	if (row->thp_pagesize != GLIBC_NONE)
		out->thp_pagesize = u64(b, row->thp_pagesize);
	if (row->tcache_bins != GLIBC_NONE) {
		out->tcache_max_bytes = u64(b, row->tcache_bins + 8U);
		out->tcache_count = u64(b, row->tcache_bins + 16U);
	}
}

/* The main heap as its arena tells: where top ends, how much there is, and whether it is one piece.
 */
struct main_heap {
	bool contiguous;
	uint64_t end, system_mem;
};

/* The size of a huge page, as the kernel says: 2 MiB as a rule. */
static bool step_fits(uint64_t thp_pagesize)
{
	return (thp_pagesize & (thp_pagesize - 1)) == 0 &&
	       (!thp_pagesize || (thp_pagesize >= 4096 && thp_pagesize <= STEP_MAX));
}

/*
 * Whole pages. But since 2.43 the size of a block is without the 16 bytes of a header behind, and
 * each mremap(2) adds them once more: nothing takes them away again.
 */
static bool mmapped_fits(const struct glibc_par *p)
{
	const bool drifts = p->row->first >= 43;
	const uint64_t unit = drifts ? GLIBC_CHUNK_HEADER : 4096;

	if (p->mmapped_mem % unit || p->max_mmapped_mem % unit ||
	    p->mmapped_mem > p->max_mmapped_mem)
		return false;
	return p->n_mmaps ? p->mmapped_mem != 0 : drifts || p->mmapped_mem == 0;
}

static bool counts_fit(const struct glibc_par *p, int no_dyn)
{
	return p->n_mmaps >= 0 && p->n_mmaps <= p->max_n_mmaps && p->max_n_mmaps <= COUNT_MAX &&
	       p->n_mmaps_max >= 0 && p->n_mmaps_max <= COUNT_MAX && (no_dyn == 0 || no_dyn == 1) &&
	       mmapped_fits(p) && p->arena_test < 1U << 20 && p->arena_max < 1U << 20 &&
	       step_fits(p->thp_pagesize);
}

/* Points for how surely this is mp_; 0 it is not. */
static unsigned score(const struct glibc_par *p, const unsigned char *b, const struct main_heap *h)
{
	unsigned points = 1;

	if (!counts_fit(p, i32(b, p->row->n_mmaps + 12U)) || p->trim_threshold == 0)
		return 0;
	if (p->row->tcache_bins != GLIBC_NONE) {
		uint64_t bins = u64(b, p->row->tcache_bins);

		if (bins == 0 || bins > 128 || p->tcache_count > UINT16_MAX ||
		    p->tcache_max_bytes > (uint64_t)1 << 40)
			return 0;
		points += bins >= 64;
	}
	points += p->n_mmaps_max == 65536;
	points += p->arena_test == 8;
	points += p->mmap_threshold >= 128U * 1024 && p->trim_threshold >= 128U * 1024;
	/* else it is where the first piece begins, which may lie above all others */
	if (p->sbrk_base && h->contiguous) {
		if (p->sbrk_base >= h->end)
			return 0;
		/* in one piece from here to the end of top */
		if (h->end - p->sbrk_base == h->system_mem)
			points += 4;
	}
	return points;
}

static bool read_main(const struct glibc_view *v, struct main_heap *h)
{
	uint64_t top, size;
	uint32_t flags;
	const struct reader *r = v->r;

	if (r->read(r->ctx, v->main_arena + GLIBC_FLAGS, &flags, sizeof(flags)) ||
	    r->read(r->ctx, v->main_arena + v->state->top, &top, sizeof(top)) ||
	    r->read(r->ctx, v->main_arena + v->state->system_mem, &h->system_mem, 8) ||
	    r->read(r->ctx, top + 8, &size, sizeof(size)))
		return false;
	h->contiguous = !(flags & GLIBC_NONCONTIGUOUS);
	h->end = top + (size & ~(uint64_t)CHUNK_BITS);
	return true;
}

void glibc_par_find(struct glibc_view *v, const unsigned char *bytes, size_t len, uint64_t start)
{
	const struct glibc_par_row *rows;
	size_t n = glibc_par_rows(&rows);
	struct main_heap h;
	unsigned best = 3; /* less is chance */

	v->par = (struct glibc_par){ 0 };
	if (!read_main(v, &h))
		return;
	for (size_t at = 0; at + PAR_MAX <= len; at += 8) {
		uint64_t threshold = u64(bytes, at);

		/* -1 as mallopt(3) may set it; else a size: most words are pointers or zero */
		if (threshold == 0 || (threshold > (uint64_t)1 << 40 && threshold != UINT64_MAX))
			continue;
		for (size_t i = 0; i < n; i++) {
			struct glibc_par p;
			unsigned s;

			decode(bytes + at, start + at, &rows[i], &p);
			s = score(&p, bytes + at, &h);
			s += s && v->version >= rows[i].first && v->version <= rows[i].last;
			if (s > best) {
				best = s;
				v->par = p;
			}
		}
	}
}

int glibc_par_read(const struct glibc_view *v, struct glibc_par *out)
{
	unsigned char b[PAR_MAX];
	int rc;

	*out = v->par;
	if (!v->par.at)
		return 0;
	rc = v->r->read(v->r->ctx, v->par.at, b, v->par.row->size);
	if (!rc)
		decode(b, v->par.at, v->par.row, out);
	return rc;
}
