// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Counters are never trusted: the lists are walked. In 2.42 and later a counter tells how many
 * more blocks a list would take, before it is how many it holds.
 */
#include "glibc_tcache.h"

#include <errno.h>
#include <string.h>

#include "glibc_walk.h"

#define TCACHE_MAX 760U
#define LIST_MAX   65536U
#define LISTS_MIN  3U
#define PLAUSIBLE  4096U /* nothing is mapped below */
#define SLOTS_MAX  127U	 /* as many as a tunable allows */

struct cache {
	const struct glibc_view *v;
	const struct glibc_arena *a;
	const struct glibc_tcache_row *row;
	uint64_t at;
	uint64_t *left; /* blocks that may still be walked over; NULL: no limit */
	unsigned char raw[TCACHE_MAX];
};

static unsigned counter(const struct cache *c, unsigned i)
{
	uint16_t v = c->raw[i];

	if (c->row->count_size == 2)
		memcpy(&v, c->raw + (size_t)2 * i, sizeof(v));
	return v;
}

static uint64_t head(const struct cache *c, unsigned i)
{
	uint64_t v;

	memcpy(&v, c->raw + c->row->entries + (size_t)8 * i, sizeof(v));
	return v;
}

static int fault(const struct cache *c, enum glibc_fault_kind kind, unsigned i, uint64_t at,
		 uint64_t value, struct glibc_fault *f)
{
	return glibc_fault_at(c->a, kind, PLACE_TCACHE, i, at, value, f);
}

/* How links are stored, as far as the version tells, or the layout of the cache. */
static enum glibc_links links_of(const struct cache *c)
{
	if (c->v->links != LINKS_UNKNOWN)
		return c->v->links;
	if (c->row->first >= GLIBC_SAFE_LINKING)
		return LINKS_SAFE;
	return c->row->last < GLIBC_SAFE_LINKING ? LINKS_PLAIN : LINKS_UNKNOWN;
}

/* The size of the block's chunk. -EFAULT where it cannot be one of list i. */
static int size_of(const struct cache *c, unsigned i, uint64_t block, uint64_t *size)
{
	const struct reader *r = c->v->r;
	uint64_t word;
	int rc;

	if (block % GLIBC_ALIGN || block < PLAUSIBLE)
		return -EFAULT;
	rc = r->read(r->ctx, block - 8, &word, sizeof(word));
	if (rc)
		return rc;
	*size = word & ~(uint64_t)CHUNK_BITS;
	if ((word & CHUNK_MMAPPED) || *size < GLIBC_MINSIZE ||
	    (i < c->row->small && *size != GLIBC_MINSIZE + (uint64_t)16 * i))
		return i < c->row->small ? -EFAULT : -ENOENT;
	return 0;
}

/* Where nobody knows how it is stored, the way counts in which it leads to a block of the list. */
static uint64_t link_of(const struct cache *c, unsigned i, uint64_t block, uint64_t stored)
{
	uint64_t safe = glibc_link_decode(LINKS_SAFE, block, stored), size;
	enum glibc_links links = links_of(c);
	int rc;

	if (links != LINKS_UNKNOWN)
		return glibc_link_decode(links, block, stored);
	rc = safe ? size_of(c, i, safe, &size) : 0;
	return rc == -EFAULT || rc == -ENOENT ? stored : safe;
}

/* A block (not its chunk) of list i; *next is the one it leads to. */
static int take_block(const struct cache *c, unsigned i, uint64_t block, uint64_t *next,
		      uint64_t *size)
{
	const struct reader *r = c->v->r;
	uint64_t stored;
	int rc = size_of(c, i, block, size);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = r->read(r->ctx, block, &stored, sizeof(stored));
	if (!rc)
		*next = link_of(c, i, block, stored);
	return rc;
}

static int walk_list(const struct cache *c, unsigned i, struct glibc_tcache *out,
		     struct glibc_fault *f)
{
	uint64_t block = head(c, i), from = c->at, mark = 0;

	for (unsigned n = 0; block; n++) {
		uint64_t next = 0, size = 0;
		int rc = c->left && *c->left == 0 ? -E2BIG : take_block(c, i, block, &next, &size);

		if (c->left && *c->left)
			--*c->left;
		if (rc == -EFAULT)
			return fault(c, FAULT_TCACHE, i, from, block, f);
		if (rc)
			return rc;
		if (block == mark || n > LIST_MAX)
			return fault(c, FAULT_LOOP, i, block, block, f);
		if ((n & (n - 1)) == 0)
			mark = block;
		out->blocks++;
		out->bytes += size;
		from = block;
		block = next;
	}
	return 0;
}

/*
 * Do the counters and heads tell one story? A block of the program's own, in the place of a cache
 * that is gone, does not: all lists agree (one may be changing), and at least min are in use. Of
 * free slots an empty list has as many as mp_ says, a full one none.
 */
static bool looks_like_one(const struct cache *c, unsigned min)
{
	bool slots = c->row->first >= 42;
	uint64_t most = slots && c->v->par.at ? c->v->par.tcache_count : 0; /* 0: not known */
	unsigned good = 0, lists = 0, odd = 0;

	for (unsigned i = 0; i < c->row->bins; i++) {
		uint64_t h = head(c, i);
		unsigned n = counter(c, i);

		lists += h && (most ? n < most : n);
		good += slots ? n <= SLOTS_MAX : (h == 0) == (n == 0);
		odd += most && !h && n != most;
	}
	return lists >= min && good + 1 >= c->row->bins && (!lists || odd <= 1);
}

static const struct glibc_tcache_row *row_of(const struct glibc_view *v, uint64_t chunk_size)
{
	const struct glibc_tcache_row *rows;
	size_t n = glibc_tcache_rows(&rows);

	for (size_t i = 0; i < n; i++) {
		/* the chunk of a block has a header of 8 bytes and is a multiple of 16 */
		uint64_t want = ((uint64_t)rows[i].size + 8 + 15) & ~(uint64_t)15;

		if (want == chunk_size && v->version >= 26)
			return &rows[i];
	}
	return NULL;
}

/* Reads the struct itself. min: so many lists must be in use. -ENOENT where it is none. */
static int load(struct cache *c, unsigned min)
{
	const struct reader *r = c->v->r;
	uint64_t size;
	int rc = c->at % GLIBC_ALIGN || c->at < PLAUSIBLE ? -EFAULT : 0;

	if (!rc)
		rc = r->read(r->ctx, c->at - 8, &size, sizeof(size));
	if (rc)
		return rc == -EFAULT ? -ENOENT : rc;
	c->row = size & CHUNK_MMAPPED ? NULL : row_of(c->v, size & ~(uint64_t)CHUNK_BITS);
	if (!c->row)
		return -ENOENT;
	rc = r->read(r->ctx, c->at, c->raw, c->row->size);
	if (!rc && !looks_like_one(c, min))
		rc = -ENOENT;
	return rc == -EFAULT ? -ENOENT : rc;
}

static int read_cache(const struct glibc_view *v, const struct glibc_arena *a, uint64_t at,
		      unsigned min, uint64_t *left, struct glibc_tcache *out, struct glibc_fault *f)
{
	struct cache c = { .v = v, .a = a, .at = at, .left = left };
	int rc = load(&c, min);

	*out = (struct glibc_tcache){ .at = at };
	if (rc)
		return rc;
	out->row = c.row;
	for (unsigned i = 0; i < c.row->bins && !rc; i++)
		rc = walk_list(&c, i, out, f);
	return rc;
}

int glibc_tcache_of(const struct glibc_view *v, uint64_t at, uint64_t *left,
		    struct glibc_tcache *out)
{
	const struct glibc_arena none = { 0 };
	struct glibc_fault f;

	return read_cache(v, &none, at, 0, left, out, &f);
}

int glibc_tcache_probe(const struct glibc_view *v, uint64_t at)
{
	struct cache c = { .v = v, .at = at };

	return load(&c, 0);
}

bool glibc_tcache_is(const struct glibc_view *v, uint64_t at, bool in_use)
{
	struct cache c = { .v = v, .at = at };
	uint64_t size;

	if (load(&c, in_use))
		return false;
	for (unsigned i = 0; in_use && i < c.row->bins; i++)
		if (head(&c, i) && size_of(&c, i, head(&c, i), &size) == -EFAULT)
			return false;
	return true;
}

int glibc_tcache_check(const struct glibc_view *v, const struct glibc_arena *a,
		       struct glibc_fault *f)
{
	struct glibc_tcache t;
	uint64_t first = 0;
	int rc;

	for (size_t i = 0; i < a->heaps; i++)
		if (a->index == 0 || glibc_heap_of(v, a->at) == a->heap[i].at)
			first = a->heap[i].first;
	if (!first)
		return 0;
	rc = read_cache(v, a, first + GLIBC_CHUNK_HEADER, LISTS_MIN, NULL, &t, f);
	return rc == -ENOENT ? 0 : rc;
}
