// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/status.h"
#include "jemalloc.h"

/* ---- what a change has done */

struct before {
	struct held held;
	uint64_t minflt;
};

/* With the session open, so that what it needs itself is in both numbers. */
static int measure_start(struct process *p, struct jemalloc_effect *e, struct before *b,
			 struct diag *d)
{
	int rc;

	e->via = session_via(p->session);
	process_held(p, &b->held);
	rc = minflt_read(p->t.procfd, &b->minflt);
	if (rc)
		return target_unreadable(&p->t, "/stat", rc, d);
	return usage_read(&p->t, &e->before, d);
}

static int measure_end(struct process *p, struct jemalloc_effect *e, const struct before *b,
		       struct diag *d)
{
	struct held now;
	uint64_t minflt;
	int rc = usage_read(&p->t, &e->after, d);

	if (rc)
		return rc;
	e->returned_bytes = (int64_t)(e->before.anon + e->before.swap) -
			    (int64_t)(e->after.anon + e->after.swap);
	if (minflt_read(p->t.procfd, &minflt) == 0 && minflt > b->minflt)
		e->minflt_delta = minflt - b->minflt;
	process_held(p, &now);
	/* one proxy is made for all of it; of a direct session's holds the longest is told */
	e->held = (struct held){ .threads = now.threads,
				 .max_ns = now.max_ns,
				 .last_ns = now.last_ns,
				 .total_ns = now.total_ns };
	return 0;
}

static const struct jemalloc_arena *arena_of(const struct jemalloc_arenas *a, long index)
{
	if (index == JEMALLOC_ALL)
		return &a->total;
	for (size_t i = 0; i < a->n; i++)
		if ((long)a->v[i].index == index)
			return &a->v[i];
	return NULL;
}

static int not_there(const struct jemalloc_arenas *a, long index, struct diag *d)
{
	return diag_fail(
		d, -ENOENT, HM_CALL_FAILED, "mallctl-no-arena", "`arenas` lists those that are",
		"arena %ld is not initialised: %zu of %" PRIu64 " are", index, a->n, a->narenas);
}

/* The books as they are now, of one arena or of all. */
static int books(struct process *p, const struct allocator *a, long index,
		 struct jemalloc_arena *out, struct diag *d)
{
	const struct jemalloc_arena *one;
	struct jemalloc_arenas all;
	int rc = jemalloc_arenas_read(p, a, &all, d);

	if (rc)
		return rc;
	one = arena_of(&all, index);
	if (one)
		*out = *one;
	else
		rc = not_there(&all, index, d);
	jemalloc_arenas_free(&all);
	return rc;
}

/* ---- purge */

int jemalloc_purge_measured(struct process *p, const struct allocator *a, long index,
			    struct jemalloc_effect *out, struct diag *d)
{
	struct before b;
	int code, rc;

	*out = (struct jemalloc_effect){ .via = "" };
	rc = books(p, a, index, &out->was, d);
	if (!rc)
		rc = measure_start(p, out, &b, d);
	if (!rc)
		rc = jemalloc_purge(p, a, index, &code, &out->duration_ns, out->call,
				    sizeof(out->call), d);
	if (!rc)
		rc = measure_end(p, out, &b, d);
	return rc ? rc : books(p, a, index, &out->now, d);
}

/* ---- decay */

static const struct {
	const char *word, *all, *one; /* the default; that of an arena */
} kinds[DECAY_KINDS] = {
	[DECAY_DIRTY] = { "dirty", "arenas.dirty_decay_ms", "arena.<i>.dirty_decay_ms" },
	[DECAY_MUZZY] = { "muzzy", "arenas.muzzy_decay_ms", "arena.<i>.muzzy_decay_ms" },
};

const char *decay_kind_name(enum decay_kind k)
{
	return (unsigned)k < DECAY_KINDS ? kinds[k].word : "";
}

int jemalloc_decay_defaults(struct process *p, const struct allocator *a, int64_t ms[DECAY_KINDS],
			    bool known[DECAY_KINDS], struct diag *d)
{
	struct ctl_ask ask[DECAY_KINDS] = { 0 };
	int rc;

	for (unsigned k = 0; k < DECAY_KINDS; k++) {
		ask[k].name = kinds[k].all;
		ask[k].row = ctl_find(kinds[k].all);
	}
	rc = jemalloc_ask(p, a, ask, DECAY_KINDS, NULL, d);
	for (unsigned k = 0; k < DECAY_KINDS; k++) {
		known[k] = !rc && !ask[k].rc;
		ms[k] = known[k] ? ask[k].value.i : 0;
	}
	return rc;
}

static int set_default(struct process *p, const struct allocator *a, struct decay_change *c,
		       struct diag *d)
{
	const char *name = kinds[c->kind].all;
	const struct ctl_value value = { .type = CTL_SSIZE, .i = c->ms };
	struct decay_row *row = &c->v[c->n];
	struct ctl_value old;
	int rc = jemalloc_ctl(p, a, name, ctl_find(name), &value, &old, d);

	if (rc)
		return rc;
	*row = (struct decay_row){ .index = -1, .known = old.type == CTL_SSIZE, .old = old.i };
	c->n++;
	return 0;
}

static int take_row(void *arg, const struct ctl_cell *cell)
{
	struct decay_change *c = arg;

	c->v[c->n++] = (struct decay_row){
		.index = (int64_t)cell->index[0],
		.rc = cell->rc,
		.known = cell->value != NULL,
		.old = cell->value ? cell->value->i : 0,
	};
	return 0;
}

static bool is_there(const struct jemalloc_which *w, uint32_t index)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->index[i] == index)
			return true;
	return false;
}

static void mark_huge(struct decay_change *c, const struct jemalloc_which *w, bool left)
{
	for (size_t i = 0; i < c->n; i++)
		c->v[i].huge = w->has_huge && c->v[i].index == (int64_t)w->huge;
	if (left)
		c->v[c->n++] =
			(struct decay_row){ .index = (int64_t)w->huge, .huge = true, .left = true };
}

static int set_arenas(struct process *p, const struct allocator *a, enum decay_place place,
		      struct jemalloc_which *w, struct decay_change *c, struct diag *d)
{
	const struct ctl_value value = { .type = CTL_SSIZE, .i = c->ms };
	struct ctl_sweep s = { .which = w, .value = &value, .skip_huge = place == DECAY_ALL };
	const struct ctl_name *row = ctl_find(kinds[c->kind].one);
	char name[64];
	struct ctl_path path;
	int rc;

	snprintf(name, sizeof(name), "arena.all%s", row->name + sizeof("arena.<i>") - 1);
	if (ctl_path_parse(row, name, &path))
		return diag_internal(d, -EINVAL, row->name);
	rc = jemalloc_sweep(p, a, &path, &s, take_row, c, d);
	if (!rc)
		mark_huge(c, w, s.skipped);
	return rc;
}

static int run(struct process *p, const struct allocator *a, enum decay_place place,
	       struct jemalloc_which *w, struct decay_change *c, struct diag *d)
{
	struct before b;
	int rc = measure_start(p, &c->effect, &b, d);

	if (!rc && place != DECAY_ONE)
		rc = set_default(p, a, c, d);
	if (!rc && place != DECAY_DEFAULT)
		rc = set_arenas(p, a, place, w, c, d);
	return rc ? rc : measure_end(p, &c->effect, &b, d);
}

/* Refused for each of them: that is a failure, and not a list of them. */
static int judge(const struct allocator *a, const struct decay_change *c, struct diag *d)
{
	const char *name = kinds[c->kind].one;
	int rc = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!c->v[i].rc && !c->v[i].left)
			return 0;
		if (c->v[i].rc)
			rc = c->v[i].rc;
	}
	return rc ? jemalloc_refused(a, name, true, rc, d) : 0;
}

int jemalloc_decay(struct process *p, const struct allocator *a, enum decay_kind kind,
		   enum decay_place place, uint32_t index, int64_t ms, struct decay_change *out,
		   struct diag *d)
{
	struct jemalloc_which *w = calloc(1, sizeof(*w));
	int rc;

	*out = (struct decay_change){ .kind = kind, .ms = ms, .effect.via = "" };
	if (!w)
		return diag_internal(d, -ENOMEM, "the arenas");
	rc = jemalloc_which_read(p, a, w, d);
	if (!rc && place == DECAY_ONE && !is_there(w, index))
		rc = diag_fail(
			d, -ENOENT, HM_CALL_FAILED, "mallctl-no-arena",
			"`arenas` lists those that are; the default is for arenas made later",
			"arena %u is not initialised: %zu of %" PRIu64 " are", index, w->n,
			w->narenas);
	if (rc)
		goto out;
	out->threshold = w->threshold;
	out->v = calloc(w->n + 2, sizeof(*out->v));
	if (!out->v) {
		rc = diag_internal(d, -ENOMEM, "the arenas");
		goto out;
	}
	if (place == DECAY_ONE) {
		w->index[0] = index;
		w->n = 1;
	}
	rc = run(p, a, place, w, out, d);
	if (!rc)
		rc = judge(a, out, d);
	if (rc)
		decay_change_free(out);
out:
	free(w);
	return rc;
}

void decay_change_free(struct decay_change *c)
{
	free(c->v);
	c->v = NULL;
	c->n = 0;
}
