// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_MAX  65536U
#define HEAPS_MAX 65536U
#define PAGE	  4096U

/* struct heap_info, the part that is in every version. */
struct heap_info {
	uint64_t arena, prev, size, mprotect_size;
};

int glibc_fault_at(const struct glibc_arena *a, enum glibc_fault_kind kind, enum glibc_place place,
		   unsigned index, uint64_t at, uint64_t value, struct glibc_fault *f)
{
	*f = (struct glibc_fault){
		.kind = kind,
		.place = place,
		.index = index,
		.arena = a->index,
		.arena_at = a->at,
		.at = at,
		.value = value,
	};
	return -EBADMSG;
}

/* Memory that is not there is a fault of who points to it; other errors stay. */
static int read_at(const struct glibc_view *v, uint64_t at, void *buf, size_t len)
{
	int rc = v->r->read(v->r->ctx, at, buf, len);

	return rc == -EFAULT ? -EBADMSG : rc;
}

/* ---- the ring */

static int ring_add(struct glibc_ring *r, size_t *cap, uint64_t at)
{
	if (r->n == *cap) {
		size_t want = *cap ? *cap * 2 : 16;
		uint64_t *v = reallocarray(r->at, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		r->at = v;
		*cap = want;
	}
	r->at[r->n++] = at;
	return 0;
}

/*
 * A thread arena is the first thing in a heap, whose description points back to it. Where it stands
 * as one but is not pointed to, the description is what is wrong.
 */
static int check_arena(const struct glibc_view *v, uint64_t at, const struct glibc_arena *from,
		       struct glibc_fault *f)
{
	struct glibc_arena here = { .index = from->index + 1, .at = at };
	uint64_t heap = at - v->heap_info_size, owner;
	int rc = -EBADMSG;

	if (at > v->heap_info_size && glibc_heap_of(v, at) == heap)
		rc = read_at(v, heap, &owner, sizeof(owner));
	if (rc == -EBADMSG)
		return glibc_fault_at(from, FAULT_RING, PLACE_RING, from->index, from->at, at, f);
	if (rc || owner == at)
		return rc;
	return glibc_fault_at(&here, FAULT_HEAP, PLACE_RING, here.index, heap, owner, f);
}

int glibc_ring_read(const struct glibc_view *v, struct glibc_ring *out, struct glibc_fault *f)
{
	uint64_t at = v->main_arena;
	size_t cap = 0;

	*out = (struct glibc_ring){ 0 };
	for (unsigned i = 0; i < RING_MAX; i++) {
		struct glibc_arena here = { .index = i, .at = at };
		uint64_t next;
		int rc = ring_add(out, &cap, at);

		if (!rc)
			rc = v->r->read(v->r->ctx, at + v->state->next, &next, sizeof(next));
		/* an arena is longer than what proves it to be one; the first is libc's own memory
		 */
		if (rc == -EFAULT && i > 0)
			return glibc_fault_at(&here, FAULT_RING, PLACE_RING, i, at,
					      at + v->state->next, f);
		if (rc)
			return rc;
		if (next == v->main_arena)
			return 0;
		rc = check_arena(v, next, &here, f);
		if (rc)
			return rc;
		at = next;
	}
	return glibc_fault_at(&(struct glibc_arena){ .at = at }, FAULT_RING, PLACE_RING, 0, at,
			      out->at[1], f);
}

void glibc_ring_free(struct glibc_ring *r)
{
	free(r->at);
	*r = (struct glibc_ring){ 0 };
}

/* ---- one arena */

static uint64_t field(const struct glibc_arena *a, size_t off)
{
	uint64_t v;

	memcpy(&v, a->raw + off, sizeof(v));
	return v;
}

int glibc_arena_read(const struct glibc_view *v, uint64_t at, unsigned index,
		     struct glibc_arena *out)
{
	const struct glibc_state_row *s = v->state;
	int rc;

	free(out->heap);
	memset(out, 0, offsetof(struct glibc_arena, raw));
	out->heap = NULL;
	out->heaps = 0;
	out->open = false;
	out->index = index;
	out->at = at;
	out->len = s->size;
	rc = v->r->read(v->r->ctx, at, out->raw, out->len);
	if (rc)
		return rc;
	memcpy(&out->mutex, out->raw, sizeof(out->mutex));
	memcpy(&out->flags, out->raw + GLIBC_FLAGS, sizeof(out->flags));
	out->top = field(out, s->top);
	out->next = field(out, s->next);
	out->attached = s->attached == GLIBC_NONE ? 0 : field(out, s->attached);
	out->system_mem = field(out, s->system_mem);
	out->max_system_mem = field(out, s->system_mem + 8U);
	/* before the first allocation top is the list of unsorted chunks */
	if (out->top == glibc_arena_bin_at(v, out, 1))
		out->top = 0;
	return 0;
}

void glibc_arena_free(struct glibc_arena *a)
{
	free(a->heap);
	a->heap = NULL;
	a->heaps = 0;
}

int glibc_arena_still(const struct glibc_view *v, const struct glibc_arena *a)
{
	unsigned char now[GLIBC_STATE_MAX];
	int rc;

	v->r->refresh(v->r->ctx);
	rc = v->r->read(v->r->ctx, a->at, now, a->len);
	if (rc == -ESRCH)
		return rc;
	return !rc && a->mutex == 0 && memcmp(now, a->raw, a->len) == 0;
}

uint64_t glibc_arena_bin_at(const struct glibc_view *v, const struct glibc_arena *a, unsigned i)
{
	return a->at + v->state->bins + (uint64_t)16 * (i - 1) - 16;
}

void glibc_arena_bin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i,
		     uint64_t *fd, uint64_t *bk)
{
	size_t off = v->state->bins + (size_t)16 * (i - 1);

	*fd = field(a, off);
	*bk = field(a, off + 8);
}

uint64_t glibc_arena_fastbin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i)
{
	return field(a, v->state->fastbins + (size_t)8 * i);
}

unsigned glibc_fastbins(const struct glibc_view *v)
{
	return v->state->fastbins == GLIBC_NONE ? 0 : GLIBC_FASTBINS;
}

/* ---- heaps and top */

static int heap_add(struct glibc_arena *a, const struct glibc_heap *h)
{
	struct glibc_heap *v = a->heap;
	size_t i = a->heaps;

	/* doubles at powers of two */
	if ((i & (i - 1)) == 0) {
		v = reallocarray(a->heap, i ? i * 2 : 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		a->heap = v;
	}
	while (i > 0 && v[i - 1].at > h->at) {
		v[i] = v[i - 1];
		i--;
	}
	v[i] = *h;
	a->heaps++;
	return 0;
}

static bool info_possible(const struct glibc_view *v, const struct heap_info *i)
{
	return i->size % PAGE == 0 && i->size >= PAGE && i->size <= i->mprotect_size &&
	       i->mprotect_size % PAGE == 0 && i->mprotect_size <= v->heap_max;
}

static int heap_fault(const struct glibc_arena *a, uint64_t at, uint64_t value,
		      struct glibc_fault *f)
{
	return glibc_fault_at(a, FAULT_HEAP, PLACE_HEAPS, (unsigned)a->heaps, at, value, f);
}

/* One heap of a thread arena; *prev is the one before it. */
static int take_heap(const struct glibc_view *v, struct glibc_arena *a, uint64_t at, uint64_t *prev,
		     struct glibc_fault *f)
{
	struct heap_info info;
	struct glibc_heap h = { .at = at, .first = at + v->heap_info_size };
	int rc = read_at(v, at, &info, sizeof(info));

	if (rc == -EBADMSG)
		return heap_fault(a, at, 0, f);
	if (rc)
		return rc;
	if (info.arena != a->at)
		return heap_fault(a, at, info.arena, f);
	if (!info_possible(v, &info))
		return heap_fault(a, at,
				  info.size > info.mprotect_size || info.size % PAGE || !info.size
					  ? info.size
					  : info.mprotect_size,
				  f);
	if (info.prev && (glibc_heap_of(v, info.prev) != info.prev || info.prev == at))
		return heap_fault(a, at, info.prev, f);
	/* the arena itself is in its oldest heap, in front of the chunks */
	if ((glibc_heap_of(v, a->at) == at) != (info.prev == 0))
		return heap_fault(a, at, info.prev, f);
	if (!info.prev)
		h.first = (a->at + v->state->size + GLIBC_ALIGN - 1) & ~(uint64_t)(GLIBC_ALIGN - 1);
	h.end = at + info.size;
	h.peak = info.mprotect_size;
	*prev = info.prev;
	return heap_add(a, &h);
}

static int top_fault(const struct glibc_arena *a, enum glibc_fault_kind kind, uint64_t at,
		     uint64_t value, struct glibc_fault *f)
{
	return glibc_fault_at(a, kind, PLACE_HEAPS, 0, at, value, f);
}

/* Where top has to be before its size can be looked at. */
static bool top_placed(const struct glibc_view *v, const struct glibc_arena *a)
{
	uint64_t owner;

	if (a->top % GLIBC_ALIGN)
		return false;
	if (a->index == 0)
		return true;
	return glibc_heap_of(v, a->top) + v->heap_info_size <= a->top &&
	       v->r->read(v->r->ctx, glibc_heap_of(v, a->top), &owner, sizeof(owner)) != -EFAULT;
}

static int take_top(const struct glibc_view *v, struct glibc_arena *a, struct glibc_fault *f)
{
	struct glibc_chunk c;
	int rc;

	if (!a->top)
		return 0;
	if (!top_placed(v, a))
		return top_fault(a, FAULT_TOP, a->at, a->top, f);
	rc = read_at(v, a->top, &c, GLIBC_CHUNK_HEADER);
	if (rc == -EBADMSG)
		return top_fault(a, FAULT_TOP, a->at, a->top, f);
	if (rc)
		return rc;
	a->top_size = c.size & ~(uint64_t)CHUNK_BITS;
	/* sysmalloc asserts the same of every top */
	if (!(c.size & CHUNK_PREV_INUSE) || (c.size & CHUNK_MMAPPED) ||
	    a->top_size < GLIBC_MINSIZE || a->top_size % GLIBC_ALIGN ||
	    a->top_size > INT64_MAX - a->top || a->top_size > a->system_mem ||
	    (a->top + a->top_size) % PAGE)
		return top_fault(a, FAULT_TOP_SIZE, a->top, c.size, f);
	return 0;
}

/* The last word of top has to be memory too. */
static int main_heap(const struct glibc_view *v, struct glibc_arena *a, struct glibc_fault *f)
{
	struct glibc_heap h = { .end = a->top + a->top_size };
	uint64_t first, last;
	int rc;

	if (!a->top)
		return 0;
	rc = read_at(v, h.end - sizeof(last), &last, sizeof(last));
	if (rc == -EBADMSG)
		return top_fault(a, FAULT_TOP_SIZE, a->top, a->top_size, f);
	if (rc && rc != -ENODATA)
		return rc;
	h.at = v->par.sbrk_base;
	h.first = (h.at + GLIBC_ALIGN - 1) & ~(uint64_t)(GLIBC_ALIGN - 1);
	/* else it is somewhere, in pieces that nobody lists; where no memory is it does not begin:
	 * all pages from there on would be asked for */
	a->open = !h.at || h.at > a->top || (a->flags & GLIBC_NONCONTIGUOUS) ||
		  read_at(v, h.at, &first, sizeof(first)) == -EBADMSG;
	return a->open ? 0 : heap_add(a, &h);
}

static int thread_heaps(const struct glibc_view *v, struct glibc_arena *a, struct glibc_fault *f)
{
	uint64_t at = glibc_heap_of(v, a->top);

	for (unsigned i = 0; i < HEAPS_MAX; i++) {
		uint64_t newest = a->top + a->top_size, prev = 0;
		int rc = take_heap(v, a, at, &prev, f);

		if (rc)
			return rc;
		/* top reaches to the end of the newest heap */
		if (i == 0 && a->heap[0].end != newest)
			return top_fault(a, FAULT_TOP_SIZE, a->top, a->top_size, f);
		if (!prev)
			return 0;
		at = prev;
	}
	return heap_fault(a, at, at, f);
}

int glibc_arena_heaps(const struct glibc_view *v, struct glibc_arena *a, struct glibc_fault *f)
{
	int rc;

	glibc_arena_free(a);
	if (!a->top && a->index)
		return top_fault(a, FAULT_TOP, a->at, 0, f);
	rc = take_top(v, a, f);
	if (rc)
		return rc;
	return a->index ? thread_heaps(v, a, f) : main_heap(v, a, f);
}

bool glibc_arena_holds(const struct glibc_view *v, const struct glibc_arena *a, uint64_t at,
		       uint64_t len)
{
	size_t lo = 0, hi = a->heaps;

	(void)v;
	if (at > INT64_MAX || len > INT64_MAX - at)
		return false;
	if (a->open)
		return at >= PAGE;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (at < a->heap[mid].at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo > 0 && at >= a->heap[lo - 1].first && at + len <= a->heap[lo - 1].end;
}
