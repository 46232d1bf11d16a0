// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_arena.h"
#include "glibc_live.h"
#include "glibc_tcache.h"

#define VOTERS	   64U
#define BLOCKS_MAX 2000000U /* of all caches together: a second or less */
#define READINGS   5U	    /* of a cache, until its lists hold together */

/* What is the same for all threads of a process. */
struct storage {
	const struct glibc_view *v;
	struct tls_layout l;
	struct glibc_ring ring;
	bool arena_known, cache_known;
	bool no_cache;		       /* no thread has one */
	uint64_t arena_off, cache_off; /* below the thread pointer */
	uint64_t left;		       /* blocks of caches that may still be walked over */
};

/*
 * The storage of a static program is libc's and its own in one: a word counts there only if a cache
 * that it leads to holds something. What is all zeros looks like an empty one.
 */
int glibc_tcache_offset(const struct glibc_view *v, const struct tls_layout *l,
			const uint64_t *blocks, size_t n, uint64_t *out)
{
	size_t words = l->block_len / sizeof(uint64_t), winner = 0;
	unsigned best = 0;
	bool tie = true;

	for (size_t w = 0; w < words; w++) {
		bool proven = !l->in_program;
		unsigned votes = 0;

		for (size_t i = 0; i < n; i++) {
			uint64_t at = blocks[i * words + w];
			bool one = glibc_tcache_is(v, at, false);

			votes += one;
			proven = proven || (one && glibc_tcache_is(v, at, true));
		}
		if (!proven)
			continue;
		if (votes > best) {
			best = votes;
			winner = w;
			tie = false;
		} else if (votes == best) {
			tie = true;
		}
	}
	if (!best || tie)
		return -ENOENT;
	*out = l->block_off - winner * sizeof(uint64_t);
	return 0;
}

/*
 * Since 2.43 a thread has a cache from its first free(3) on, and none where they are off. If no
 * word of any thread leads to one, nobody has. blocks: of all threads.
 */
static bool has_no_cache(const struct glibc_view *v, const uint64_t *blocks, size_t words)
{
	if (!v->par.at || v->par.row->tcache_bins == GLIBC_NONE || v->version > GLIBC_LAST)
		return false;
	for (size_t i = 0; i < words; i++)
		if (glibc_tcache_probe(v, blocks[i]) != -ENOENT)
			return false;
	return true;
}

/* -ENOENT, -ENOMEM. */
static int find_cache(struct storage *s, const struct threads *list)
{
	const struct reader *r = s->v->r;
	size_t words = s->l.block_len / sizeof(uint64_t), n = 0;
	uint64_t *blocks;
	int rc;

	if (!s->l.block_off || !words)
		return -ENOENT;
	blocks = calloc(VOTERS, words * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	for (size_t i = 0; i < list->n && n < VOTERS; i++) {
		uint64_t tp = list->v[i].tp;

		if (tp > s->l.block_off && r->read(r->ctx, tp - s->l.block_off, blocks + n * words,
						   words * sizeof(*blocks)) == 0)
			n++;
	}
	rc = glibc_tcache_offset(s->v, &s->l, blocks, n, &s->cache_off);
	if (rc == -ENOENT && n == list->n)
		s->no_cache = has_no_cache(s->v, blocks, n * words);
	free(blocks);
	return rc;
}

static int find_slots(struct storage *s, const struct threads *list)
{
	uint64_t *tps = calloc(list->n ? list->n : 1, sizeof(*tps));
	const struct reader *r = s->v->r;
	int rc;

	if (!tps)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++)
		tps[i] = list->v[i].tp;
	s->arena_known = tls_arena_offset(&s->l, tps, list->n, r->read, r->ctx, &s->arena_off) == 0;
	free(tps);
	rc = find_cache(s, list);
	s->cache_known = rc == 0;
	return rc == -ENOENT ? 0 : rc;
}

static void read_arena(const struct storage *s, uint64_t tp, struct glibc_thread *out)
{
	const struct reader *r = s->v->r;
	uint64_t at = 0;

	if (!s->arena_known || r->read(r->ctx, tp - s->arena_off, &at, sizeof(at)))
		return;
	out->slot = at == 0;
	for (size_t i = 0; i < s->ring.n && at; i++)
		if (s->ring.at[i] == at) {
			out->slot = true;
			out->arena = (long)i;
			return;
		}
}

/* Since 2.43 a cache that is not there is a place in libc, before a null pointer. */
static bool is_no_cache(const struct tls_layout *l, uint64_t at)
{
	return at == 0 || (at >= l->lo && at < l->hi);
}

static void read_cache(struct storage *s, uint64_t tp, struct glibc_thread *out)
{
	const struct reader *r = s->v->r;

	out->cache = s->no_cache;
	if (!s->cache_known)
		return;
	for (unsigned i = 0; i < READINGS && !out->cache; i++) {
		struct glibc_tcache cache = { 0 };
		uint64_t at;
		int rc;

		if (i)
			r->refresh(r->ctx);
		if (r->read(r->ctx, tp - s->cache_off, &at, sizeof(at)))
			return;
		rc = is_no_cache(&s->l, at) ? 0 : glibc_tcache_of(s->v, at, &s->left, &cache);
		if (rc && rc != -EBADMSG && rc != -ENOENT)
			return;
		out->cache = rc == 0;
		out->bytes = cache.bytes;
		out->blocks = cache.blocks;
	}
	if (!out->cache)
		out->bytes = out->blocks = 0;
}

static int read_all(const struct process *p, const struct glibc_view *v, const struct threads *list,
		    struct glibc_thread *out)
{
	struct storage s = { .v = v, .left = BLOCKS_MAX };
	struct glibc_fault f;
	int rc;

	tls_layout_read(p->t.pid, &p->mods, &s.l);
	rc = find_slots(&s, list);
	if (rc)
		return rc;
	rc = glibc_ring_read(v, &s.ring, &f);
	/* of a ring that changes while it is read, what came before */
	if (rc != -ESRCH && rc != -ENOMEM)
		rc = 0;
	for (size_t i = 0; i < list->n && !rc; i++) {
		uint64_t tp = list->v[i].tp;

		if (tp <= s.l.block_off)
			continue;
		read_arena(&s, tp, &out[i]);
		read_cache(&s, tp, &out[i]);
	}
	glibc_ring_free(&s.ring);
	return rc;
}

int glibc_threads_read(const struct process *p, const struct allocator *a,
		       const struct threads *list, struct glibc_thread *out, struct diag *d)
{
	struct glibc_live live;
	int rc;

	for (size_t i = 0; i < list->n; i++)
		out[i] = (struct glibc_thread){ .arena = -1 };
	rc = glibc_live_open(p, a, &live, d);
	if (rc == -ENOENT || rc == -ENODATA)
		return 0;
	if (rc)
		return rc;
	rc = read_all(p, &live.view, list, out);
	glibc_live_close(&live);
	if (rc == -ESRCH)
		return glibc_live_lost(p, d);
	return rc ? diag_internal(d, rc, "the threads' caches") : 0;
}
