// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_arenas.h"
#include "../inject/phase.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const figure_names[JEM_FIGURES] = {
	[JEM_ALLOCATED] = "allocated",
	[JEM_ACTIVE] = "active",
	[JEM_DIRTY] = "dirty",
	[JEM_MUZZY] = "muzzy",
	[JEM_RETAINED] = "retained",
	[JEM_MAPPED] = "mapped",
	[JEM_RESIDENT] = "resident",
	[JEM_METADATA] = "metadata",
	[JEM_TCACHE] = "tcache",
	[JEM_THREADS] = "threads",
	[JEM_DIRTY_DECAY] = "dirty_decay_ms",
	[JEM_MUZZY_DECAY] = "muzzy_decay_ms",
};

/* Where the figures come from: some of two names, some in pages. */
static const struct source {
	const char *name;
	enum jemalloc_figure figure;
	bool pages;
} sources[] = {
	{ "stats.arenas.<i>.small.allocated", JEM_ALLOCATED, false },
	{ "stats.arenas.<i>.large.allocated", JEM_ALLOCATED, false },
	{ "stats.arenas.<i>.pactive", JEM_ACTIVE, true },
	{ "stats.arenas.<i>.pdirty", JEM_DIRTY, true },
	{ "stats.arenas.<i>.pmuzzy", JEM_MUZZY, true },
	{ "stats.arenas.<i>.retained", JEM_RETAINED, false },
	{ "stats.arenas.<i>.mapped", JEM_MAPPED, false },
	{ "stats.arenas.<i>.resident", JEM_RESIDENT, false },
	{ "stats.arenas.<i>.base", JEM_METADATA, false },
	{ "stats.arenas.<i>.internal", JEM_METADATA, false },
	{ "stats.arenas.<i>.tcache_bytes", JEM_TCACHE, false },
	{ "stats.arenas.<i>.nthreads", JEM_THREADS, false },
	{ "stats.arenas.<i>.dirty_decay_ms", JEM_DIRTY_DECAY, false },
	{ "stats.arenas.<i>.muzzy_decay_ms", JEM_MUZZY_DECAY, false },
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))
_Static_assert(SOURCES <= SWEEP_BATCH, "an arena is one batch");

const char *jemalloc_figure_name(enum jemalloc_figure f)
{
	return (unsigned)f < JEM_FIGURES ? figure_names[f] : "";
}

bool jemalloc_figure(const struct jemalloc_arena *a, enum jemalloc_figure f, int64_t *v)
{
	bool known = a->known & 1u << f;

	*v = known ? a->v[f] : 0;
	return known;
}

void jemalloc_arena_add(struct jemalloc_arena *a, enum jemalloc_figure f, uint64_t n, uint64_t page)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(n, page ? page : 1, &bytes) ||
	    __builtin_add_overflow(bytes, (uint64_t)a->v[f], &bytes) ||
	    bytes > JEMALLOC_BYTES_MAX) {
		a->impossible = true;
		a->known &= ~(1u << f);
		a->v[f] = (int64_t)JEMALLOC_BYTES_MAX; /* whatever is added, it stays impossible */
		return;
	}
	a->v[f] = (int64_t)bytes;
	a->known |= 1u << f;
}

static int by_active(const void *x, const void *y)
{
	const struct jemalloc_arena *a = x, *b = y;
	int64_t u = a->v[JEM_ACTIVE] + a->v[JEM_DIRTY] + a->v[JEM_MUZZY];
	int64_t v = b->v[JEM_ACTIVE] + b->v[JEM_DIRTY] + b->v[JEM_MUZZY];

	if (u != v)
		return u < v ? 1 : -1;
	return a->index < b->index ? -1 : a->index > b->index;
}

void jemalloc_arenas_sum(struct jemalloc_arenas *a)
{
	struct jemalloc_arena *t = &a->total;

	*t = (struct jemalloc_arena){ .known = a->n ? (1u << JEM_DIRTY_DECAY) - 1 : 0 };
	for (size_t i = 0; i < a->n; i++) {
		t->known &= a->v[i].known;
		t->impossible |= a->v[i].impossible;
		/* each is at most 2^47 and there are at most 2^12 of them */
		for (unsigned f = 0; f < JEM_DIRTY_DECAY; f++)
			if (a->v[i].known & 1u << f)
				t->v[f] += a->v[i].v[f];
	}
}

int jemalloc_arenas_unasked(const char *why, struct diag *d)
{
	return diag_fail(d, -EPERM, HM_NOT_PERMITTED, "passive",
			 "only without --passive; `maps` shows what jemalloc has from the kernel",
			 "jemalloc's arenas are not shown: %.200s", why);
}

static void take(struct jemalloc_arena *a, const struct source *s, const struct mib_ask *ask,
		 uint64_t page)
{
	if (ask->rc)
		return;
	if (s->figure == JEM_DIRTY_DECAY || s->figure == JEM_MUZZY_DECAY) {
		a->v[s->figure] = ask->old.i;
		a->known |= 1u << s->figure;
	} else if (!s->pages || page) {
		jemalloc_arena_add(a, s->figure, ask->old.u, s->pages ? page : 0);
	}
}

/* A number that is not known, or was impossible, is none. */
static void forget_unknown(struct jemalloc_arena *a)
{
	for (unsigned f = 0; f < JEM_FIGURES; f++)
		if (!(a->known & 1u << f))
			a->v[f] = 0;
}

#define PREFIX "stats.arenas.<i>"

/* The numbers of all names, of the first arena: the third part is its index. */
static int find_names(struct process *p, const struct allocator *a, uint64_t first,
		      struct ctl_mib mib[SOURCES], struct diag *d)
{
	char name[SOURCES][CTL_NAME_SIZE];

	for (size_t i = 0; i < SOURCES; i++) {
		mib[i] = (struct ctl_mib){ .n = 1 };
		for (const char *s = sources[i].name; *s; s++)
			mib[i].n += *s == '.';
		snprintf(name[i], sizeof(name[i]), "stats.arenas.%u%s", (unsigned)first,
			 sources[i].name + sizeof(PREFIX) - 1);
	}
	return jemalloc_mibs(p, a, name, mib, SOURCES, d);
}

struct asking {
	struct mib_ask ask[SWEEP_BATCH];
	const struct source *of[SWEEP_BATCH];
	struct jemalloc_arena *arena[SWEEP_BATCH];
	size_t n;
};

/* A name that this jemalloc does not have has no number, and is not asked for. */
static void add_arena(struct asking *q, const struct ctl_mib *mib, struct jemalloc_arena *arena)
{
	for (size_t i = 0; i < SOURCES; i++) {
		struct mib_ask *ask = &q->ask[q->n];

		if (mib[i].rc)
			continue;
		*ask = (struct mib_ask){ .mib = mib[i],
					 .type = ctl_find(sources[i].name)->type,
					 .read = true };
		ask->mib.part[2] = arena->index;
		q->of[q->n] = &sources[i];
		q->arena[q->n++] = arena;
	}
}

/* Of two names for one figure both must have answered. */
static void forget_refused(const struct asking *q, const struct ctl_mib *mib,
			   struct jemalloc_arena *arena)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->ask[i].rc && q->arena[i] == arena)
			arena->known &= ~(1u << q->of[i]->figure);
	for (size_t i = 0; i < SOURCES; i++)
		if (mib[i].rc)
			arena->known &= ~(1u << sources[i].figure);
	forget_unknown(arena);
}

/* The n arenas from v on, in one batch. */
static int read_some(struct process *p, const struct allocator *a, const struct ctl_mib *mib,
		     uint64_t page, struct asking *q, struct jemalloc_arena *v, size_t n,
		     struct diag *d)
{
	int rc;

	q->n = 0;
	for (size_t i = 0; i < n; i++)
		add_arena(q, mib, &v[i]);
	rc = q->n ? jemalloc_mib_ask(p, a, q->ask, q->n, d) : 0;
	if (rc)
		return rc;
	for (size_t i = 0; i < q->n; i++)
		take(q->arena[i], q->of[i], &q->ask[i], page);
	for (size_t i = 0; i < n; i++)
		forget_refused(q, mib, &v[i]);
	return 0;
}

static int read_all(struct process *p, const struct allocator *a, const struct jemalloc_which *w,
		    struct jemalloc_arenas *out, struct diag *d)
{
	struct asking *q = calloc(1, sizeof(*q));
	struct ctl_mib mib[SOURCES];
	const size_t most = SWEEP_BATCH / SOURCES;
	int rc = 0;

	if (!q)
		return diag_internal(d, -ENOMEM, "mallctl");
	if (w->n)
		rc = find_names(p, a, w->index[0], mib, d);
	for (size_t i = 0; i < w->n; i++) {
		out->v[i].index = w->index[i];
		out->v[i].huge = w->has_huge && w->huge == w->index[i];
	}
	phase_begin("asking jemalloc about its arenas", w->n);
	for (size_t i = 0; !rc && i < w->n; i += most) {
		size_t n = w->n - i < most ? w->n - i : most;

		phase_step(i);
		rc = read_some(p, a, mib, out->page, q, &out->v[i], n, d);
		out->n = i + n;
	}
	phase_end();
	free(q);
	return rc;
}

int jemalloc_arenas_read(struct process *p, const struct allocator *a, struct jemalloc_arenas *out,
			 struct diag *d)
{
	struct ctl_ask page = { .name = "arenas.page", .row = ctl_find("arenas.page") };
	struct jemalloc_which *w = calloc(1, sizeof(*w));
	int rc;

	*out = (struct jemalloc_arenas){ 0 };
	if (!w)
		return diag_internal(d, -ENOMEM, "the arenas");
	rc = jemalloc_which_read(p, a, w, d);
	if (!rc)
		rc = jemalloc_ask(p, a, &page, 1, NULL, d);
	if (!rc) {
		out->page = page.rc ? 0 : page.value.u;
		out->fresh = w->fresh;
		out->narenas = w->narenas;
		out->cut = w->cut;
		out->threshold = w->has_huge ? w->threshold : 0;
		out->v = calloc(w->n ? w->n : 1, sizeof(*out->v));
		rc = out->v ? read_all(p, a, w, out, d) : diag_internal(d, -ENOMEM, "the arenas");
	}
	free(w);
	if (rc || !out->v) {
		jemalloc_arenas_free(out);
		return rc;
	}
	jemalloc_arenas_sum(out);
	qsort(out->v, out->n, sizeof(*out->v), by_active);
	return 0;
}

void jemalloc_arenas_free(struct jemalloc_arenas *a)
{
	free(a->v);
	*a = (struct jemalloc_arenas){ 0 };
}
