// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An arena is recognised by 127 list heads in a row: the head of an empty list points to itself
 * (to 16 bytes before, as if it were a chunk), one that is not empty points elsewhere with both
 * pointers. Rows of heads look alike when shifted by one, so they are anchored by `next`, which
 * always stands 2048 bytes behind the first of them and leads back to the arena.
 */
#include "glibc_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_par.h"

#define DATA_MAX  ((uint64_t)64 << 20) /* of a static program with large tables */
#define RING_MAX  65536U
#define HEADS	  (GLIBC_BINS - 1)
#define SIZE_MIN  1024U /* of a heap that begins in the middle of a page, and ends with it */
#define HEADS_MIN 120U	/* a few may be in flux, or damaged */

/* heap_max_size: 64 MiB; 4 huge pages of 1 GiB or 2 MiB with glibc.malloc.hugetlb (2.35 to 2.41) */
static const uint64_t heap_sizes[] = { (uint64_t)64 << 20, (uint64_t)4 << 30, (uint64_t)8 << 20 };
static const unsigned info_sizes[] = { 48, 32 };

/* One piece of libc's data and its content. */
struct piece {
	uint64_t start;
	size_t len;
	unsigned char *bytes;
};

static uint64_t word(const struct piece *p, uint64_t addr)
{
	uint64_t v = 0;

	if (addr >= p->start && addr - p->start + sizeof(v) <= p->len)
		memcpy(&v, p->bytes + (addr - p->start), sizeof(v));
	return v;
}

static int read_word(const struct reader *r, uint64_t addr, uint64_t *out)
{
	return r->read(r->ctx, addr, out, sizeof(*out));
}

/* List heads from bins on that look like ones; *empty is how many are zero. */
static unsigned count_heads(const struct piece *p, uint64_t bins, unsigned *empty)
{
	unsigned good = 0;

	*empty = 0;
	for (unsigned i = 0; i < HEADS; i++) {
		uint64_t me = bins + (uint64_t)16 * i - 16;
		uint64_t fd = word(p, me + 16), bk = word(p, me + 24);

		*empty += fd == 0 && bk == 0;
		/* chunks are aligned to 16, the heads that stand for some need not be */
		good += fd == me ? bk == me : fd && bk && bk != me && fd % 16 == 0 && bk % 16 == 0;
	}
	return good;
}

/* Is a the arena at the start of a heap? Then *info is the size of what stands before it. */
static bool heads_heap(const struct reader *r, uint64_t a, unsigned *info)
{
	for (size_t i = 0; i < sizeof(info_sizes) / sizeof(info_sizes[0]); i++) {
		uint64_t owner;

		/* the smallest alignment is contained in the others */
		if ((a & (heap_sizes[2] - 1)) != info_sizes[i] || a < heap_sizes[2])
			continue;
		if (read_word(r, a - info_sizes[i], &owner) == 0 && owner == a) {
			*info = info_sizes[i];
			return true;
		}
	}
	return false;
}

/* Do the arenas from a on lead back to main through the field at offset next? */
static bool ring_closes(const struct reader *r, uint64_t main, uint64_t a, uint16_t next)
{
	for (unsigned i = 0; i < RING_MAX; i++) {
		unsigned info;

		if (a == main)
			return true;
		if (!heads_heap(r, a, &info) || read_word(r, a + next, &a))
			return false;
	}
	return false;
}

/*
 * Rows with the same offsets up to next differ in whether threads are counted behind it: there is a
 * size in bytes, or a small number. The size is any number where somebody else had moved the break
 * before: ld.so does up to 2.37, with GLIBC_TUNABLES in the environment.
 */
static bool tail_fits(const struct piece *p, uint64_t base, const struct glibc_state_row *row)
{
	uint64_t system_mem = word(p, base + row->system_mem);
	uint64_t max = word(p, base + row->system_mem + 8);

	if (system_mem > max || (system_mem && system_mem < SIZE_MIN))
		return false;
	return row->attached == GLIBC_NONE || word(p, base + row->attached) < 1U << 22;
}

static bool row_for(const struct glibc_state_row *row, int version)
{
	return version >= row->first &&
	       (version <= row->last || (version > GLIBC_LAST && row->last == GLIBC_LAST));
}

/* Of two candidates the one that the version names is the better. */
static bool better(const struct glibc_view *out, const struct glibc_state_row *row)
{
	return !out->state || (row_for(row, out->version) && !row_for(out->state, out->version));
}

/* Is the word at addr the field next of a main arena? */
static void try_next(const struct piece *p, uint64_t addr, struct glibc_view *out, bool *unused)
{
	const struct glibc_state_row *rows;
	size_t n = glibc_state_rows(&rows);
	uint64_t w = word(p, addr), bins = addr - GLIBC_NEXT;
	unsigned empty, info;
	bool is_self = false, heap;

	for (size_t i = 0; i < n; i++)
		is_self |= w == addr - rows[i].next;
	heap = !is_self && heads_heap(out->r, w, &info);
	if ((!is_self && !heap) || addr - p->start < GLIBC_NEXT + rows[0].bins ||
	    (count_heads(p, bins, &empty) < HEADS_MIN && empty < HEADS))
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t base = addr - rows[i].next;

		if (!ring_closes(out->r, base, w, rows[i].next) || !tail_fits(p, base, &rows[i]))
			continue;
		if (empty >= HEADS)
			*unused = true;
		else if (better(out, &rows[i])) {
			out->main_arena = base;
			out->state = &rows[i];
		}
	}
}

/*
 * Without the ring: the last head is of a list that is never used, and what follows it (binmap) is
 * no head. The version has to say how long the part before the bins is.
 */
static void try_last_head(const struct piece *p, uint64_t addr, struct glibc_view *out)
{
	const struct glibc_state_row *rows;
	size_t n = glibc_state_rows(&rows);
	uint64_t me = addr - 16, bins = addr - (uint64_t)16 * (HEADS - 1);
	unsigned empty;

	if (word(p, addr) != me || word(p, addr + 8) != me || word(p, addr + 16) == me + 16 ||
	    addr - p->start < GLIBC_STATE_MAX || count_heads(p, bins, &empty) < HEADS_MIN)
		return;
	for (size_t i = 0; i < n; i++)
		if (row_for(&rows[i], out->version) &&
		    tail_fits(p, bins - rows[i].bins, &rows[i]) && better(out, &rows[i])) {
			out->main_arena = bins - rows[i].bins;
			out->state = &rows[i];
		}
}

static void search(const struct piece *p, struct glibc_view *out, bool *unused)
{
	uint64_t end = p->start + p->len;

	for (uint64_t a = p->start + GLIBC_NEXT; a + 8 <= end; a += 8) {
		uint64_t w = word(p, a), low = w & (heap_sizes[2] - 1);

		/* itself, or a heap: few words are either */
		if (a - w < GLIBC_STATE_MAX || low == info_sizes[0] || low == info_sizes[1])
			try_next(p, a, out, unused);
	}
	for (uint64_t a = p->start + GLIBC_NEXT; !out->state && a + 24 <= end; a += 8)
		try_last_head(p, a, out);
}

static void try_hint(const struct piece *p, uint64_t hint, struct glibc_view *out)
{
	const struct glibc_state_row *rows;
	size_t n = glibc_state_rows(&rows);

	if (!hint || hint < p->start || hint - p->start + GLIBC_STATE_MAX > p->len)
		return;
	for (size_t i = 0; i < n; i++)
		if (row_for(&rows[i], out->version) && tail_fits(p, hint, &rows[i])) {
			out->main_arena = hint;
			out->state = &rows[i];
		}
}

/* ---- how the heaps of thread arenas are laid out */

/* How many heaps prove that they are aligned to max: arenas, and the heaps of their tops. */
static unsigned votes_for(const struct glibc_view *v, uint64_t max, unsigned info)
{
	uint64_t a = v->main_arena, top, owner, size;
	unsigned votes = 0;

	for (unsigned i = 0; i < RING_MAX; i++) {
		if (read_word(v->r, a + v->state->next, &a) || a == v->main_arena)
			break;
		if ((a & (max - 1)) != info)
			return 0;
		/* a damaged one ends the count, it does not decide it */
		if (read_word(v->r, a - info, &owner) || owner != a)
			break;
		votes++;
		if (read_word(v->r, a + v->state->top, &top))
			continue;
		top &= ~(max - 1);
		if (read_word(v->r, top, &owner) || owner != a ||
		    read_word(v->r, top + 16, &size) || size > max)
			continue;
		votes++;
	}
	return votes;
}

/* False where no heap of a thread arena shows how they are. */
static bool find_heaps(struct glibc_view *v)
{
	unsigned best = 0;

	for (size_t i = 0; i < sizeof(heap_sizes) / sizeof(heap_sizes[0]); i++)
		for (size_t k = 0; k < sizeof(info_sizes) / sizeof(info_sizes[0]); k++) {
			unsigned n = votes_for(v, heap_sizes[i], info_sizes[k]);

			if (n <= best)
				continue;
			best = n;
			v->heap_max = heap_sizes[i];
			v->heap_info_size = info_sizes[k];
		}
	if (!v->heap_max)
		v->heap_max = heap_sizes[0];
	return best > 0;
}

/* ---- what the version has to tell, or what it follows from */

static enum glibc_links links_of(int first, int last)
{
	if (first >= GLIBC_SAFE_LINKING)
		return LINKS_SAFE;
	return last < GLIBC_SAFE_LINKING ? LINKS_PLAIN : LINKS_UNKNOWN;
}

/* A version that no file tells (a static program has none) is the first that has all that is found.
 */
static void derive_version(struct glibc_view *v, bool heaps)
{
	int first = v->state->first, last = v->state->last;

	if (v->par.at) {
		first = v->par.row->first > first ? v->par.row->first : first;
		last = v->par.row->last < last ? v->par.row->last : last;
	}
	while (heaps && first < last && glibc_heap_info_size(first) != v->heap_info_size)
		first++;
	while (heaps && last > first && glibc_heap_info_size(last) != v->heap_info_size)
		last--;
	v->version = first;
	v->links = links_of(first, last);
}

/* Some releases fill the lists before the first allocation. */
static bool is_unused(const struct glibc_view *v, const struct piece *p)
{
	return word(p, v->main_arena + v->state->next) == v->main_arena &&
	       !word(p, v->main_arena + v->state->system_mem + 8U) && v->par.at &&
	       !v->par.max_n_mmaps;
}

static void describe(struct glibc_view *v, const struct piece *p)
{
	bool heaps = find_heaps(v);

	glibc_par_find(v, p->bytes, p->len, p->start);
	if (v->version)
		v->links = links_of(v->version, v->version);
	else
		derive_version(v, heaps);
	if (!heaps)
		v->heap_info_size = glibc_heap_info_size(v->version);
}

uint64_t glibc_heap_of(const struct glibc_view *v, uint64_t addr)
{
	return addr & ~(v->heap_max - 1);
}

/* ---- all of it */

/* What cannot be read stays zero: main_arena is never there. */
static int load(const struct reader *r, struct piece *p)
{
	size_t done = 0;

	p->bytes = calloc(1, p->len);
	if (!p->bytes)
		return -ENOMEM;
	while (done < p->len) {
		size_t n = p->len - done < 4096 ? p->len - done : 4096;
		int rc = r->read(r->ctx, p->start + done, p->bytes + done, n);

		if (rc == -ESRCH)
			return rc;
		done += n;
	}
	return 0;
}

static int search_span(const struct span *s, uint64_t hint, struct glibc_view *out, bool *unused)
{
	struct piece p = { .start = s->start };
	int rc;

	p.len = (size_t)(s->end - s->start > DATA_MAX ? DATA_MAX : s->end - s->start);
	if (s->end <= s->start || p.len < GLIBC_STATE_MAX || p.start % 8)
		return 0;
	rc = load(out->r, &p);
	if (!rc)
		search(&p, out, unused);
	if (!rc && !out->state)
		try_hint(&p, hint, out);
	if (!rc && out->state && out->main_arena >= s->start && out->main_arena < s->end) {
		describe(out, &p);
		if (is_unused(out, &p))
			rc = -ENODATA;
	}
	free(p.bytes);
	return rc;
}

int glibc_find(const struct reader *r, const struct span *data, size_t n, int version,
	       uint64_t hint, struct glibc_view *out)
{
	bool unused = false;

	*out = (struct glibc_view){ .r = r, .version = version };
	for (size_t i = 0; i < n; i++) {
		struct span s = data[i];
		int rc;

		while (i + 1 < n && data[i + 1].start == s.end)
			s.end = data[++i].end;
		rc = search_span(&s, hint, out, &unused);
		if (rc)
			return rc;
		if (out->state)
			return 0;
	}
	return unused ? -ENODATA : -ENOENT;
}
