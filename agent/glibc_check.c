// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"
#include "glibc_tcache.h"

#define PAUSE	 (2 * NS_PER_MS) /* between readings of the same */
#define AT_ONCE	 2U		 /* readings without a pause */
#define SAME	 6U		 /* readings that have to agree: 8 ms at least */
#define BURST	 8U   /* of quick looks, then a pause: the next comes at another moment */
#define CHANGING 40U  /* readings of a part that looks different each time */
#define STUCK	 100U /* of one that looks the same while its lock is held */
/* A machine that gives us no CPU shall not make the look a shorter one; but there is an end to it.
 */
#define WALL 5U
/* All of them together: a target that is busy everywhere is not worth more. */
#define PATIENCE (300 * NS_PER_MS)

/* What is looked at at once, and again when it looks wrong. */
struct part {
	enum glibc_place place;
	unsigned index;
};

struct check {
	const struct glibc_view *v;
	const struct glibc_check_opts *o;
	struct glibc_check *out;
	struct glibc_budget budget;
	struct glibc_arena *a; /* the one that is looked at */
	uint64_t patience;     /* ns left for looking again */
};

static int walk_part(struct check *c, const struct part *p, struct glibc_fault *f)
{
	struct glibc_ring ring;
	bool whole;
	int rc;

	switch (p->place) {
	case PLACE_RING:
		rc = glibc_ring_read(c->v, &ring, f);
		glibc_ring_free(&ring);
		return rc;
	case PLACE_HEAPS:
		return glibc_arena_heaps(c->v, c->a, f);
	case PLACE_FASTBIN:
		return glibc_walk_fastbin(c->v, c->a, p->index, &c->budget, NULL, NULL, f);
	case PLACE_BIN:
		return glibc_walk_bin(c->v, c->a, p->index, &c->budget, NULL, NULL, f);
	case PLACE_CHUNKS:
		return glibc_walk_chunks(c->v, c->a, p->index, &c->budget, NULL, NULL, &whole, f);
	case PLACE_TCACHE:
		return glibc_tcache_check(c->v, c->a, f);
	}
	return 0;
}

/* The same from the memory as it is now. *quiet: nobody was inside the arena meanwhile. */
static int look_again(struct check *c, const struct part *p, struct glibc_fault *f, bool *quiet)
{
	const struct reader *r = c->v->r;
	int rc;

	c->out->readings_again++;
	r->refresh(r->ctx);
	*quiet = true;
	if (p->place == PLACE_RING)
		return walk_part(c, p, f);
	rc = glibc_arena_read(c->v, c->a->at, c->a->index, c->a);
	if (rc) /* its header was there before: not a place that a fault could be told of */
		return rc == -EBADMSG ? -EFAULT : rc;
	rc = glibc_arena_heaps(c->v, c->a, f);
	if (!rc && p->place != PLACE_HEAPS)
		rc = walk_part(c, p, f);
	if (rc != -EBADMSG)
		return rc;
	*quiet = glibc_arena_still(c->v, c->a) == 1;
	return rc;
}

static bool same_fault(const struct glibc_fault *x, const struct glibc_fault *y)
{
	return x->kind == y->kind && x->place == y->place && x->index == y->index &&
	       x->arena_at == y->arena_at && x->at == y->at && x->value == y->value &&
	       x->want == y->want;
}

static void pause_for(struct check *c, unsigned reading)
{
	uint64_t ns = reading < AT_ONCE ? 0 : PAUSE;

	if (ns && c->o->wait)
		c->o->wait(c->o->ctx, ns);
	c->patience -= ns < c->patience ? ns : c->patience;
}

static bool rested(struct check *c, bool begin)
{
	return !c->o->at_rest || c->o->at_rest(c->o->ctx, begin);
}

/*
 * A part has looked wrong. 0 when it does not any more; -EBADMSG when it is damaged, f says how;
 * -EAGAIN when it cannot be told, because it is in use or changes all the time; else as the
 * walks.
 */
static int confirm(struct check *c, const struct part *p, struct glibc_fault *f)
{
	unsigned agreed = 0, differed = 0, same = 0;

	(void)rested(c, true);
	for (unsigned i = 0; i < STUCK && c->patience; i++) {
		struct glibc_fault now = { 0 };
		bool quiet;
		int rc;

		/* what differs each time needs a quick look, what stays a patient one */
		pause_for(c, i % BURST == BURST - 1 ? AT_ONCE : same);
		same++;
		rc = look_again(c, p, &now, &quiet);
		if (rc != -EBADMSG)
			return rc;
		if (!same_fault(&now, f)) {
			*f = now;
			agreed = same = 0;
			(void)rested(c, true);
			if (++differed > CHANGING)
				return -EAGAIN;
		}
		agreed += quiet;
		if (agreed >= SAME && rested(c, false))
			return -EBADMSG;
	}
	return -EAGAIN;
}

/* 0: go on; 1: damage, it is in out->fault, or this part cannot be gone on from; negative: error.
 */
static int look(struct check *c, enum glibc_place place, unsigned index)
{
	const struct part p = { place, index };
	struct glibc_fault f = { 0 };
	int rc = walk_part(c, &p, &f);

	if (rc == -EBADMSG)
		rc = confirm(c, &p, &f);
	if (rc == 0)
		return 0;
	if (rc == -EBADMSG) {
		c->out->fault = f;
		return 1;
	}
	if (rc == -EAGAIN || rc == -EFAULT)
		c->out->moving++;
	else if (rc == -ENODATA)
		c->out->swapped++;
	else if (rc == -E2BIG)
		c->out->limited = true;
	else
		return rc;
	c->out->complete = false;
	/* without heaps no list can be judged */
	return place == PLACE_HEAPS || rc == -E2BIG;
}

static int look_lists(struct check *c)
{
	int rc = 0;

	for (unsigned i = 0; i < glibc_fastbins(c->v) && !rc; i++)
		rc = look(c, PLACE_FASTBIN, i);
	for (unsigned i = 1; i < GLIBC_BINS && !rc; i++)
		rc = look(c, PLACE_BIN, i);
	return rc;
}

static int look_chunks(struct check *c)
{
	int rc = look(c, PLACE_TCACHE, 0);

	for (size_t i = 0; i < c->a->heaps && !rc; i++)
		rc = look(c, PLACE_CHUNKS, (unsigned)i);
	return rc;
}

static int look_arena(struct check *c, uint64_t at, unsigned index, bool chunks)
{
	int rc = glibc_arena_read(c->v, at, index, c->a);

	if (rc == -ESRCH || rc == -ENOMEM)
		return rc;
	if (rc) {
		c->out->swapped += rc == -ENODATA;
		c->out->complete = false;
		return 0;
	}
	rc = look(c, PLACE_HEAPS, 0);
	if (!rc)
		rc = chunks ? look_chunks(c) : look_lists(c);
	return rc;
}

/* What a call would touch first, in all arenas; then the rest as far as the limit goes. */
static int look_all(struct check *c, const struct glibc_ring *ring)
{
	int rc = 0;

	for (unsigned pass = 0; pass < (c->o->every_chunk ? 2U : 1U); pass++)
		for (size_t i = 0; i < ring->n; i++) {
			rc = look_arena(c, ring->at[i], (unsigned)i, pass == 1);
			if (rc < 0 || c->out->fault.kind)
				return rc;
			c->out->arenas += pass == 0;
		}
	return 0;
}

int glibc_check_run(const struct glibc_view *v, const struct glibc_check_opts *opts,
		    struct glibc_check *out)
{
	struct check c = { .v = v, .o = opts, .out = out, .patience = PATIENCE };
	struct glibc_ring ring = { 0 };
	struct glibc_fault f = { 0 };
	int rc;

	*out = (struct glibc_check){ .complete = true };
	c.budget.chunks = opts->max_chunks ? opts->max_chunks : UINT64_MAX;
	if (opts->limit_ns) {
		c.budget.until = clock_now() + WALL * opts->limit_ns;
		c.budget.until_cpu = clock_cpu() + opts->limit_ns;
	}
	c.a = calloc(1, sizeof(*c.a));
	if (!c.a)
		return -ENOMEM;
	rc = look(&c, PLACE_RING, 0);
	if (!rc) {
		/* also the part of a ring that changes while it is read */
		rc = glibc_ring_read(v, &ring, &f);
		if (rc == -EBADMSG || rc == -ENODATA || rc == -EFAULT)
			rc = 0;
		if (!rc)
			rc = look_all(&c, &ring);
		glibc_ring_free(&ring);
	}
	out->chunks = c.budget.visited;
	glibc_arena_free(c.a);
	free(c.a);
	return rc < 0 ? rc : 0;
}
