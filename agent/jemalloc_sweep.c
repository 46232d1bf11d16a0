// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_error.h"
#include "ctl_rule.h"

/* ---- which arenas */

bool jemalloc_huge_index(uint64_t narenas_auto, uint64_t threshold, uint64_t narenas, uint32_t *out)
{
	if (narenas_auto >= JEMALLOC_ARENAS_MAX)
		narenas_auto = JEMALLOC_ARENAS_MAX - 1;
	*out = (uint32_t)narenas_auto;
	return threshold && narenas_auto && narenas_auto < narenas;
}

/* Of the path with these indices. */
static int mib_of(struct process *p, const struct allocator *a, const struct ctl_path *path,
		  const uint64_t index[CTL_INDICES], struct ctl_mib *out, struct diag *d)
{
	char name[1][CTL_NAME_SIZE];

	*out = (struct ctl_mib){ .n = path->depth };
	if (path->depth > sizeof(out->part) / sizeof(out->part[0]) ||
	    ctl_path_name(path, index, name[0], sizeof(name[0])))
		return ctl_unknown(path->row->name, d);
	return jemalloc_mibs(p, a, name, out, 1, d);
}

/* What tells of one arena whether it is initialised. */
static int probe_path(struct process *p, const struct allocator *a, struct ctl_path *path,
		      struct ctl_mib *mib, struct diag *d)
{
	static const char *const probes[] = { "arena.<i>.initialized",
					      "stats.arenas.<i>.nthreads" };
	const uint64_t first[CTL_INDICES] = { 0 };
	int rc = 0;

	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		const struct ctl_name *row = ctl_find(probes[i]);

		*path = (struct ctl_path){ .row = row, .n = 1, .depth = i ? 4 : 3 };
		path->index[0].at = i ? 2 : 1;
		rc = mib_of(p, a, path, first, mib, d);
		if (rc || !mib->rc)
			return rc;
	}
	return 0;
}

static int which_arenas(struct process *p, const struct allocator *a, struct jemalloc_which *w,
			struct mib_ask *ask, struct diag *d)
{
	uint64_t slots = w->narenas;
	struct ctl_path path;
	struct ctl_mib mib;
	int rc = probe_path(p, a, &path, &mib, d);

	w->cut = slots > JEMALLOC_ARENAS_MAX;
	if (w->cut)
		slots = JEMALLOC_ARENAS_MAX;
	/* Without even that: the first is always there. */
	if (!rc && mib.rc && slots)
		w->index[w->n++] = 0;
	if (rc || mib.rc)
		return rc;
	for (uint64_t i = 0; !rc && i < slots; i += SWEEP_BATCH) {
		size_t n = slots - i < SWEEP_BATCH ? slots - i : SWEEP_BATCH;

		for (size_t k = 0; k < n; k++) {
			ask[k] = (struct mib_ask){ .mib = mib,
						   .type = path.row->type,
						   .read = true };
			ask[k].mib.part[path.index[0].at] = i + k;
		}
		rc = jemalloc_mib_ask(p, a, ask, n, d);
		for (size_t k = 0; !rc && k < n; k++)
			if (!ask[k].rc && (ask[k].old.type != CTL_BOOL || ask[k].old.b))
				w->index[w->n++] = (uint32_t)(i + k);
	}
	return rc;
}

int jemalloc_which_read(struct process *p, const struct allocator *a, struct jemalloc_which *out,
			struct diag *d)
{
	static const char *const names[] = { "arenas.narenas", "opt.narenas",
					     "opt.oversize_threshold" };
	struct ctl_ask ask[sizeof(names) / sizeof(names[0])] = { 0 };
	struct mib_ask *many = calloc(SWEEP_BATCH, sizeof(*many));
	int rc;

	memset(out, 0, sizeof(*out));
	if (!many)
		return diag_internal(d, -ENOMEM, "mallctl");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ask[i].name = names[i];
		ask[i].row = ctl_find(names[i]);
	}
	rc = jemalloc_ask(p, a, ask, sizeof(names) / sizeof(names[0]), &out->fresh, d);
	if (!rc && !ask[0].rc)
		out->narenas = ask[0].value.u;
	if (!rc && !ask[1].rc && !ask[2].rc) {
		out->threshold = ask[2].value.u;
		out->has_huge = jemalloc_huge_index(ask[1].value.u, ask[2].value.u, out->narenas,
						    &out->huge);
	}
	if (!rc)
		rc = which_arenas(p, a, out, many, d);
	free(many);
	return rc;
}

/* ---- a sweep */

struct sweeping {
	struct process *p;
	const struct allocator *a;
	const struct ctl_path *path;
	struct ctl_sweep *s;
	ctl_cell_fn *each;
	void *arg;
	struct diag *d;
	struct ctl_mib mib;
	struct mib_ask *ask; /* SWEEP_BATCH; and as many again, after a write */
	struct ctl_cell cell[SWEEP_BATCH];
	size_t n;	/* in the batch */
	bool full;	/* no more cells */
	bool row_ended; /* a class was not there */
};

/* Is there nothing with this index? An arena that has gone answers so, too. */
static bool is_missing(int rc)
{
	return rc == ENOENT || rc == EFAULT;
}

/* What jemalloc has made of the values that were written. */
static int ask_again(struct sweeping *w)
{
	struct mib_ask *now = w->ask + SWEEP_BATCH;

	for (size_t i = 0; i < w->n; i++) {
		now[i] = (struct mib_ask){ .mib = w->mib, .type = w->ask[i].type, .read = true };
		memcpy(now[i].mib.part, w->ask[i].mib.part, sizeof(now[i].mib.part));
	}
	return jemalloc_mib_ask(w->p, w->a, now, w->n, w->d);
}

static int flush(struct sweeping *w)
{
	bool again = w->n && w->s->value && w->ask[0].read;
	const struct mib_ask *now = w->ask + SWEEP_BATCH;
	int rc = w->n ? jemalloc_mib_ask(w->p, w->a, w->ask, w->n, w->d) : 0;

	if (!rc && again)
		rc = ask_again(w);

	for (size_t i = 0; !rc && i < w->n; i++) {
		struct ctl_cell *c = &w->cell[i];

		c->rc = w->ask[i].rc;
		c->value = w->ask[i].read && !c->rc ? &w->ask[i].old : NULL;
		c->now = again && !c->rc && !now[i].rc ? &now[i].old : NULL;
		if (is_missing(c->rc) && !w->s->value) {
			w->row_ended = true;
			continue;
		}
		w->s->cells++;
		rc = w->each(w->arg, c);
	}
	w->n = 0;
	return rc;
}

static int add(struct sweeping *w, const uint64_t index[CTL_INDICES])
{
	struct mib_ask *ask = &w->ask[w->n];

	if (w->s->cells + w->n >= SWEEP_CELLS_MAX) {
		w->full = true;
		w->s->cut = true;
		return 0;
	}
	*ask = (struct mib_ask){ .mib = w->mib,
				 .type = w->path->row->type,
				 .value = w->s->value,
				 .read = (w->path->row->access & CTL_READ) != 0 };
	for (unsigned k = 0; k < w->path->n; k++)
		ask->mib.part[w->path->index[k].at] = index[k];
	w->cell[w->n] = (struct ctl_cell){ 0 };
	memcpy(w->cell[w->n].index, index, sizeof(w->cell[w->n].index));
	return ++w->n == SWEEP_BATCH ? flush(w) : 0;
}

/* How many classes an index goes over; *known false where only an ENOENT will tell. */
static int count_of(struct sweeping *w, enum ctl_range range, uint64_t *n, bool *known)
{
	struct ctl_ask ask = { .name = ctl_range_name(range) };
	int rc;

	*n = SWEEP_CLASSES_MAX;
	*known = false;
	ask.row = ask.name ? ctl_find(ask.name) : NULL;
	if (!ask.row)
		return 0;
	rc = jemalloc_ask(w->p, w->a, &ask, 1, NULL, w->d);
	if (rc || ask.rc)
		return rc;
	*known = true;
	if (ask.value.u <= *n)
		*n = ask.value.u;
	else
		w->s->cut = true;
	return 0;
}

/* The second index, or the only one, if that counts classes. */
static int sweep_classes(struct sweeping *w, unsigned k, uint64_t index[CTL_INDICES], uint64_t n,
			 bool known)
{
	int rc = 0;

	if (k >= w->path->n)
		return add(w, index);
	if (!w->path->index[k].all) {
		index[k] = w->path->index[k].value;
		return add(w, index);
	}
	w->row_ended = false;
	for (index[k] = 0; !rc && index[k] < n && !w->full; index[k]++) {
		rc = add(w, index);
		if (!known && w->row_ended)
			break;
	}
	/* Where it ends is seen in the answers: no batch goes on into the next arena. */
	if (!rc && !known)
		rc = flush(w);
	return rc;
}

static int sweep_arenas(struct sweeping *w, uint64_t n, bool known)
{
	const struct jemalloc_which *which = w->s->which;
	uint64_t index[CTL_INDICES] = { 0 };
	int rc = 0;

	if (!w->path->index[0].all) {
		index[0] = w->path->index[0].value;
		return sweep_classes(w, 1, index, n, known);
	}
	for (size_t i = 0; !rc && i < which->n && !w->full; i++) {
		index[0] = which->index[i];
		if (w->s->skip_huge && which->has_huge && index[0] == which->huge) {
			w->s->skipped = true;
			continue;
		}
		rc = sweep_classes(w, 1, index, n, known);
	}
	return rc;
}

static int start(struct sweeping *w)
{
	uint64_t first[CTL_INDICES] = { w->path->index[0].value, w->path->index[1].value };
	char name[CTL_NAME_SIZE];
	struct ctl_build b;
	int rc;

	if (w->path->index[0].all && w->path->index[0].range == RANGE_ARENAS && w->s->which->n)
		first[0] = w->s->which->index[0];
	rc = mib_of(w->p, w->a, w->path, first, &w->mib, w->d);
	if (rc || !w->mib.rc)
		return rc;
	rc = jemalloc_build(w->p, w->a, &b, w->d);
	if (rc)
		return rc;
	if (ctl_path_name(w->path, first, name, sizeof(name)))
		return ctl_unknown(w->path->row->name, w->d);
	return ctl_error(w->path->row, name, &b, w->s->value != NULL, w->mib.rc, w->d);
}

/* An index that is a number must be of something that is there. */
static int check_numbers(struct sweeping *w)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < w->path->n; i++) {
		const struct ctl_index *x = &w->path->index[i];
		bool known = x->range == RANGE_ARENAS;
		uint64_t have = known ? w->s->which->narenas : 0;

		if (x->all)
			continue;
		if (!known)
			rc = count_of(w, x->range, &have, &known);
		if (!rc && known)
			rc = ctl_path_check(w->path, i, w->path->row->name, have, w->d);
	}
	return rc;
}

int jemalloc_sweep(struct process *p, const struct allocator *a, const struct ctl_path *path,
		   struct ctl_sweep *s, ctl_cell_fn *each, void *arg, struct diag *d)
{
	struct sweeping w = {
		.p = p, .a = a, .path = path, .s = s, .each = each, .arg = arg, .d = d
	};
	bool arenas = path->index[0].range == RANGE_ARENAS;
	unsigned classes = arenas ? 1 : 0;
	uint64_t index[CTL_INDICES] = { 0 }, n = 0;
	bool known = true;
	int rc = check_numbers(&w);

	if (!rc)
		rc = start(&w);
	if (!rc && path->n > classes && path->index[classes].all)
		rc = count_of(&w, path->index[classes].range, &n, &known);
	if (rc)
		return rc;
	w.ask = calloc((size_t)2 * SWEEP_BATCH, sizeof(*w.ask));
	if (!w.ask)
		return diag_internal(d, -ENOMEM, "mallctl");
	rc = arenas ? sweep_arenas(&w, n, known) : sweep_classes(&w, 0, index, n, known);
	if (!rc)
		rc = flush(&w);
	free(w.ask);
	return rc;
}
