// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_walk.h"

#include <errno.h>

#include "../inject/clock.h"

#define CLOCK_EVERY 256U /* chunks */
#define FD	    16U	 /* offset of fd in a chunk */
#define FENCE	    16U	 /* size of the chunks that close a part of a heap */

/* One walk: what all of its steps need. */
struct walk {
	const struct glibc_view *v;
	const struct glibc_arena *a;
	struct glibc_budget *b;
	enum glibc_place place;
	unsigned index;
	struct glibc_fault *f;
};

static int fault(const struct walk *w, enum glibc_fault_kind kind, uint64_t at, uint64_t value,
		 uint64_t want)
{
	int rc = glibc_fault_at(w->a, kind, w->place, w->index, at, value, w->f);

	w->f->want = want;
	return rc;
}

static int spend(const struct walk *w)
{
	struct glibc_budget *b = w->b;

	if (b->chunks == 0)
		return -E2BIG;
	if (b->visited % CLOCK_EVERY == 0 &&
	    ((b->until && clock_now() > b->until) || (b->until_cpu && clock_cpu() > b->until_cpu)))
		return -E2BIG;
	b->chunks--;
	b->visited++;
	return 0;
}

/* -EFAULT stays: who points there is to blame. */
static int read_header(const struct walk *w, uint64_t at, struct glibc_chunk *c, size_t len)
{
	return w->v->r->read(w->v->r->ctx, at, c, len);
}

static uint64_t size_of(const struct glibc_chunk *c)
{
	return c->size & ~(uint64_t)CHUNK_BITS;
}

static bool may_be_chunk(const struct walk *w, uint64_t at)
{
	return at % GLIBC_ALIGN == 0 && glibc_arena_holds(w->v, w->a, at, GLIBC_MINSIZE);
}

/* A size that a chunk at that place can have: the header behind it is in the same heap. */
static bool size_fits(const struct walk *w, uint64_t at, const struct glibc_chunk *c)
{
	uint64_t size = size_of(c);

	return size >= GLIBC_MINSIZE && size % GLIBC_ALIGN == 0 && !(c->size & CHUNK_MMAPPED) &&
	       (w->a->index || !(c->size & CHUNK_NON_MAIN)) && size <= w->a->system_mem &&
	       glibc_arena_holds(w->v, w->a, at, size + GLIBC_CHUNK_HEADER);
}

/* ---- bins */

/* The chunk behind a free one repeats its size and says that it is not in use. */
static int check_next(const struct walk *w, uint64_t at, uint64_t size)
{
	struct glibc_chunk next;
	int rc = read_header(w, at + size, &next, GLIBC_CHUNK_HEADER);

	if (rc == -EFAULT)
		return fault(w, FAULT_SIZE, at, size, 0);
	if (rc)
		return rc;
	if (next.prev_size != size)
		return fault(w, FAULT_PREV_SIZE, at + size, next.prev_size, size);
	if (next.size & CHUNK_PREV_INUSE)
		return fault(w, FAULT_PREV_SIZE, at + size, 0, size);
	return 0;
}

/* Does the word at offset off of the chunk at p hold want? p comes from a chunk that is good. */
static int points_to(const struct walk *w, uint64_t at, uint64_t p, size_t off, uint64_t want)
{
	uint64_t got;
	int rc;

	if (!may_be_chunk(w, p))
		return fault(w, FAULT_NEXTSIZE, at, p, 0);
	rc = w->v->r->read(w->v->r->ctx, p + off, &got, sizeof(got));
	if (rc == -EFAULT || (!rc && got != want))
		return fault(w, FAULT_NEXTSIZE, at, p, 0);
	return rc;
}

/* The first chunk of each size in a list of large chunks is in a ring of its own; a chunk without
 * fd_nextsize is in none. */
static int check_nextsize(const struct walk *w, uint64_t at, const struct glibc_chunk *c)
{
	int rc;

	if (w->index < GLIBC_SMALL || !c->fd_nextsize)
		return 0;
	rc = points_to(w, at, c->fd_nextsize, offsetof(struct glibc_chunk, bk_nextsize), at);
	return rc ? rc
		  : points_to(w, at, c->bk_nextsize, offsetof(struct glibc_chunk, fd_nextsize), at);
}

/* The chunk at p, to which `from` (a chunk, or the list itself) is linked. */
static int check_free(const struct walk *w, uint64_t from, uint64_t p, struct glibc_chunk *c)
{
	int rc;

	if (!may_be_chunk(w, p))
		return fault(w, FAULT_LINK, from, p, 0);
	rc = read_header(w, p, c, w->index < GLIBC_SMALL ? GLIBC_MINSIZE : sizeof(*c));
	if (rc == -EFAULT)
		return fault(w, FAULT_LINK, from, p, 0);
	if (rc)
		return rc;
	if (c->bk != from)
		return fault(w, FAULT_LIST, p, c->bk, from);
	if (!size_fits(w, p, c))
		return fault(w, FAULT_SIZE, p, c->size, 0);
	if (w->index > 1 && glibc_bin_index(size_of(c)) != w->index)
		return fault(w, FAULT_BIN, p, size_of(c), 0);
	rc = check_next(w, p, size_of(c));
	return rc ? rc : check_nextsize(w, p, c);
}

/*
 * No list can loop unnoticed: each chunk was found to be linked back to where the walk came from,
 * and that is one place.
 */
int glibc_walk_bin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i,
		   struct glibc_budget *b, glibc_visit_fn fn, void *arg, struct glibc_fault *f)
{
	const struct walk w = { v, a, b, PLACE_BIN, i, f };
	uint64_t head = glibc_arena_bin_at(v, a, i), from = head, p, last;
	struct glibc_chunk c = { 0 };

	glibc_arena_bin(v, a, i, &p, &last);
	/* nobody has allocated from this arena yet */
	if (!p && !last && !a->top)
		return 0;
	while (p != head) {
		struct glibc_visit visit = { .place = PLACE_BIN, .index = i, .at = p };
		int rc = spend(&w);

		if (!rc)
			rc = check_free(&w, from, p, &c);
		if (rc)
			return rc;
		visit.size = size_of(&c);
		if (fn)
			fn(arg, &visit);
		from = p;
		p = c.fd;
	}
	return last == from ? 0 : fault(&w, FAULT_LIST, head, last, from);
}

/* ---- fastbins */

uint64_t glibc_link_decode(enum glibc_links links, uint64_t field, uint64_t stored)
{
	return links == LINKS_SAFE ? (field >> 12) ^ stored : stored;
}

/* Is the chunk that a free neighbour of a fastbin's chunk begins at linked as one? */
static bool linked(const struct walk *w, uint64_t at, const struct glibc_chunk *c)
{
	uint64_t fd_bk = 0, bk_fd = 0;
	const struct reader *r = w->v->r;

	return !r->read(r->ctx, c->fd + 24, &fd_bk, 8) && !r->read(r->ctx, c->bk + 16, &bk_fd, 8) &&
	       fd_bk == at && bk_fd == at;
}

/* malloc_consolidate takes the chunk before it out of its list where that is free. */
static int check_before(const struct walk *w, uint64_t at, const struct glibc_chunk *c)
{
	struct glibc_chunk prev;
	uint64_t p = at - c->prev_size;
	int rc;

	if (c->size & CHUNK_PREV_INUSE)
		return 0;
	if (c->prev_size > at || !may_be_chunk(w, p))
		return fault(w, FAULT_PREV_SIZE, at, c->prev_size, 0);
	rc = read_header(w, p, &prev, GLIBC_MINSIZE);
	if (rc && rc != -EFAULT)
		return rc;
	if (rc || size_of(&prev) != c->prev_size || !linked(w, p, &prev))
		return fault(w, FAULT_PREV_SIZE, at, c->prev_size, rc ? 0 : size_of(&prev));
	return 0;
}

/* And the one behind it likewise. */
static int check_behind(const struct walk *w, uint64_t at, uint64_t size)
{
	struct glibc_chunk next, after;
	uint64_t p = at + size;
	int rc = read_header(w, p, &next, GLIBC_CHUNK_HEADER);

	if (rc == -EFAULT)
		return fault(w, FAULT_SIZE, at, size, 0);
	if (rc || p == w->a->top)
		return rc;
	/* a fence is smaller than a chunk */
	if (size_of(&next) % GLIBC_ALIGN || size_of(&next) < FENCE ||
	    size_of(&next) > w->a->system_mem ||
	    !glibc_arena_holds(w->v, w->a, p, size_of(&next) + GLIBC_CHUNK_HEADER))
		return fault(w, FAULT_SIZE, p, next.size, 0);
	rc = read_header(w, p + size_of(&next), &after, GLIBC_CHUNK_HEADER);
	if (rc && rc != -EFAULT)
		return rc;
	if (rc)
		return fault(w, FAULT_SIZE, p, next.size, 0);
	if (after.size & CHUNK_PREV_INUSE)
		return 0;
	if (size_of(&next) >= GLIBC_MINSIZE)
		rc = read_header(w, p, &next, GLIBC_MINSIZE);
	if (rc)
		return rc;
	return linked(w, p, &next) ? 0 : fault(w, FAULT_LIST, p, next.bk, 0);
}

static int check_fast(const struct walk *w, uint64_t from, uint64_t p, struct glibc_chunk *c)
{
	int rc = -EFAULT;

	if (may_be_chunk(w, p))
		rc = read_header(w, p, c, GLIBC_MINSIZE);
	if (rc == -EFAULT || (!rc && size_of(c) != glibc_fastbin_size(w->index)))
		return fault(w, FAULT_FASTBIN, from, p, 0);
	if (rc)
		return rc;
	rc = check_before(w, p, c);
	return rc ? rc : check_behind(w, p, size_of(c));
}

/*
 * Where the version does not tell how links are stored, the first one of a chunk does: read in the
 * wrong way it leads out of the heap as good as always.
 */
static uint64_t follow(const struct walk *w, uint64_t p, uint64_t stored)
{
	uint64_t plain = glibc_link_decode(LINKS_PLAIN, p + FD, stored);
	uint64_t safe = glibc_link_decode(LINKS_SAFE, p + FD, stored);

	if (w->v->links != LINKS_UNKNOWN)
		return glibc_link_decode(w->v->links, p + FD, stored);
	if (safe == 0 || may_be_chunk(w, safe))
		return safe;
	return plain;
}

int glibc_walk_fastbin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i,
		       struct glibc_budget *b, glibc_visit_fn fn, void *arg, struct glibc_fault *f)
{
	const struct walk w = { v, a, b, PLACE_FASTBIN, i, f };
	uint64_t p = glibc_arena_fastbin(v, a, i), from = a->at, mark = 0;
	uint64_t most = a->system_mem / GLIBC_MINSIZE;
	struct glibc_chunk c = { 0 };

	for (uint64_t n = 0; p; n++) {
		struct glibc_visit visit = { .place = PLACE_FASTBIN, .index = i, .at = p };
		int rc = spend(&w);

		if (!rc)
			rc = check_fast(&w, from, p, &c);
		if (rc)
			return rc;
		/* the mark moves on at powers of two: a loop meets it again (Brent) */
		if (p == mark || n > most)
			return fault(&w, FAULT_LOOP, p, p, 0);
		if ((n & (n - 1)) == 0)
			mark = p;
		visit.size = size_of(&c);
		if (fn)
			fn(arg, &visit);
		from = p;
		p = follow(&w, p, c.fd);
	}
	return 0;
}

/* ---- all chunks of a heap */

static bool is_last(const struct walk *w, size_t i, uint64_t at)
{
	return at == w->a->top ||
	       (w->a->index && i < w->a->heaps && at + FENCE >= w->a->heap[i].end);
}

/* The size of the chunk at `at`, 0 for one that ends this part of the heap. */
static int step(const struct walk *w, uint64_t at, uint64_t before, struct glibc_chunk *c)
{
	int rc = read_header(w, at, c, GLIBC_CHUNK_HEADER);

	if (rc == -EFAULT)
		return fault(w, FAULT_SIZE, at, 0, 0);
	if (rc)
		return rc;
	if (!(c->size & CHUNK_PREV_INUSE) && before && c->prev_size != before)
		return fault(w, FAULT_PREV_SIZE, at, c->prev_size, before);
	/* two of them close what a heap was left at */
	if (size_of(c) == FENCE && (!w->a->index || at + 3U * FENCE >= w->a->heap[w->index].end))
		return 0;
	return size_fits(w, at, c) ? 0 : fault(w, FAULT_SIZE, at, c->size, 0);
}

int glibc_walk_chunks(const struct glibc_view *v, const struct glibc_arena *a, size_t i,
		      struct glibc_budget *b, glibc_visit_fn fn, void *arg, bool *whole,
		      struct glibc_fault *f)
{
	const struct walk w = { v, a, b, PLACE_CHUNKS, (unsigned)i, f };
	struct glibc_visit visit = { .place = PLACE_CHUNKS, .index = (unsigned)i };
	uint64_t at, before = 0;

	*whole = i < a->heaps;
	if (!*whole)
		return 0;
	for (at = a->heap[i].first; !is_last(&w, i, at); at += before) {
		struct glibc_chunk c;
		int rc = spend(&w);

		if (!rc)
			rc = step(&w, at, before, &c);
		if (rc)
			return rc;
		/* what the chunk before was is written here */
		visit.used = (c.size & CHUNK_PREV_INUSE) != 0;
		if (before && fn)
			fn(arg, &visit);
		visit.at = at;
		visit.size = before = size_of(&c);
		if (before == FENCE)
			break;
	}
	*whole = is_last(&w, i, at) || a->index;
	if (at == a->top && before && fn) {
		struct glibc_chunk top;

		/* a free chunk at top is a part of it, so this one is used */
		visit.used = read_header(&w, at, &top, GLIBC_CHUNK_HEADER) ||
			     (top.size & CHUNK_PREV_INUSE);
		fn(arg, &visit);
	}
	return 0;
}

int glibc_walk_lists(const struct glibc_view *v, const struct glibc_arena *a,
		     struct glibc_budget *b, glibc_visit_fn fn, void *arg, struct glibc_fault *f)
{
	int rc = 0;

	for (unsigned i = 0; i < glibc_fastbins(v) && !rc; i++)
		rc = glibc_walk_fastbin(v, a, i, b, fn, arg, f);
	for (unsigned i = 1; i < GLIBC_BINS && !rc; i++)
		rc = glibc_walk_bin(v, a, i, b, fn, arg, f);
	return rc;
}
