// SPDX-License-Identifier: GPL-3.0-or-later
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator_other.h"
#include "environ.h"
#include "jemalloc_missing.h"
#include "look_facts.h"
#include "look_others.h"
#include "tcmalloc.h"

/* ---- allocators */

/* A version is known also where the allocator is not in use. */
static void versions(const struct process *p, struct facts *f)
{
	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (strcmp(a->ops->name, "glibc") == 0)
			facts_set_text(f, FACT_GLIBC_VERSION, FROM_PASSIVE, a->version);
		else if (strcmp(a->ops->name, "jemalloc") == 0 && a->in_use)
			facts_set_text(f, FACT_JEMALLOC_VERSION, FROM_PASSIVE, a->version);
		else if (strcmp(a->ops->name, "tcmalloc") == 0 && a->in_use)
			facts_set_text(f, FACT_TCMALLOC_VERSION, FROM_PASSIVE, a->version);
		else if (strcmp(a->ops->name, "mimalloc") == 0 && a->in_use)
			facts_set_text(f, FACT_MIMALLOC_VERSION, FROM_PASSIVE, a->version);
	}
}

/* Without them the picture is not whole, but there is one. */
static bool is_no_obstacle(const struct diag *d)
{
	return d->exit == HM_UNSUPPORTED || d->exit == HM_NOT_PERMITTED;
}

static int take_glibc(struct process *p, struct look *l, struct diag *d)
{
	const struct allocator *a = process_allocator(p, "glibc");
	struct diag own = { 0 };
	int err = a ? glibc_arenas_read(p, a, &l->arenas, &own) : -ENODATA;

	if (!a)
		return 0;
	if (err && err != -ENODATA) {
		if (!is_no_obstacle(&own)) {
			*d = own;
			return err;
		}
		l->glibc_unread = own;
		return 0;
	}
	/* nothing was ever allocated: a plan without arenas, all zero */
	l->glibc = true;
	return look_facts_glibc(p, a, l, d);
}

static int take_jemalloc(struct process *p, bool may_call, struct look *l, struct diag *d)
{
	struct diag own = { 0 };
	int err;

	l->jemalloc = process_allocator(p, "jemalloc");
	if (!l->jemalloc)
		return 0;
	if (!may_call) {
		snprintf(l->jemalloc_unasked, sizeof(l->jemalloc_unasked), LOOK_NOT_ASKED);
		return 0;
	}
	err = l->jemalloc->reach ? jemalloc_unreachable(l->jemalloc, &own)
				 : process_session(p, &own);
	if (!err)
		err = look_facts_jemalloc(p, l, &own);
	if (err && !look_is_refusal(&own)) {
		*d = own;
		return err;
	}
	l->jemalloc_asked = facts_known(&l->facts, FACT_JEMALLOC_ALLOCATED) &&
			    facts_known(&l->facts, FACT_JEMALLOC_ACTIVE);
	if (!l->jemalloc_asked)
		snprintf(l->jemalloc_unasked, sizeof(l->jemalloc_unasked), "%s",
			 err ? own.text : "this jemalloc was built without statistics");
	return 0;
}

/* ---- judging */

static void find_makeup(struct look *l)
{
	const struct glibc_arena_plan *t = &l->arenas.plan.total;
	const struct facts *f = &l->facts;
	struct makeup_parts parts;

	makeup_parts_init(&parts);
	parts.rss = l->memory.usage.rss;
	if (l->cgroup.version) {
		parts.limit = l->cgroup.tightest.limit;
		parts.room = cgroup_room(&l->cgroup.tightest);
	}
	makeup_count(&l->memory.owners, parts.resident);
	parts.glibc = l->glibc;
	parts.trimmable = t->pages.trimmable;
	parts.pinned = t->pages.pinned;
	parts.stranded = t->stranded_bytes;
	parts.top = t->pages.top;
	parts.jemalloc = l->jemalloc != NULL;
	parts.jemalloc_asked = l->jemalloc_asked;
	parts.allocated = facts_get(f, FACT_JEMALLOC_ALLOCATED);
	parts.active = facts_get(f, FACT_JEMALLOC_ACTIVE);
	parts.purgeable = facts_get(f, FACT_JEMALLOC_PURGEABLE);
	parts.estimate = facts_get(f, FACT_JEMALLOC_RESIDENT);
	parts.tcmalloc = l->tcmalloc.a != NULL;
	parts.tcmalloc_asked = l->tcmalloc.asked;
	parts.tcmalloc_free = facts_get(f, FACT_TCMALLOC_PAGEHEAP_FREE);
	parts.tcmalloc_cached = facts_get(f, FACT_TCMALLOC_THREAD_CACHES) +
				facts_get(f, FACT_TCMALLOC_CENTRAL_CACHE) +
				facts_get(f, FACT_TCMALLOC_TRANSFER_CACHE);
	parts.tcmalloc_heap =
		facts_get(f, FACT_TCMALLOC_HEAP) - facts_get(f, FACT_TCMALLOC_UNMAPPED);
	makeup_fill(&parts, &l->makeup);
	l->verdict = verdict_of(&l->makeup, l->summary);
}

static void read_settings(const struct process *p, const char *prefix, struct advice_settings *s)
{
	struct environ e;
	char name[64];
	const char *v;

	*s = (struct advice_settings){ .known = environ_read(&p->t, &e) == 0 };
	if (s->known) {
		s->malloc_conf =
			prefix && environ_get(&e, advice_conf_name(prefix, name, sizeof(name)));
		v = environ_get(&e, "GOGC");
		s->gogc = v && gogc_parse(v, &s->gogc_percent) == 0;
		v = environ_get(&e, "GOMEMLIMIT");
		s->gomemlimit = v && gomemlimit_parse(v, &s->memlimit) == 0;
		s->tunables = environ_get(&e, "GLIBC_TUNABLES") != NULL;
		if (arena_max_get(&e, &s->arena_max, &s->arena_max_tunable))
			s->arena_max = 0;
	}
	environ_free(&e);
}

/* Whose malloc it is, where that is none that people know the settings of. */
static const char *foreign_owner(const struct process *p)
{
	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (!a->owns_malloc || a->ops == &glibc_ops || a->ops == &jemalloc_ops)
			continue;
		/* one that hands on to glibc's */
		if (a->ops == &unknown_ops && process_allocator(p, "glibc"))
			continue;
		/* the version of an unknown one is its file */
		return strcmp(a->ops->name, "unknown") == 0 ? a->version : a->ops->name;
	}
	return NULL;
}

static void advise(const struct process *p, struct look *l)
{
	struct advice_case c = {
		.verdict = l->verdict,
		.makeup = &l->makeup,
		.facts = &l->facts,
		.glibc = l->glibc ? &l->arenas : NULL,
		.jemalloc = l->jemalloc ? l->jemalloc->prefix : NULL,
		.tcmalloc = l->tcmalloc.a != NULL,
		.google = l->tcmalloc.a && tcmalloc_is_google(l->tcmalloc.a),
		.mimalloc = l->mimalloc.a ? l->mimalloc.a->version : NULL,
		.other = foreign_owner(p),
		.go = l->memory.facts.go,
		.no_call = p->pre.injectable ? NULL : p->pre.cause.text,
	};
	uint64_t r[OWNERS];

	makeup_count(&l->memory.owners, r);
	c.mimalloc_resident = r[OWNER_MIMALLOC];
	c.musl_resident = r[OWNER_MUSL];
	c.main_resident = r[OWNER_GLIBC_MAIN];
	c.heap_resident = r[OWNER_GLIBC_MAIN] + r[OWNER_GLIBC_ARENA];
	read_settings(p, c.jemalloc, &c.set);
	advice_make(&c, &l->advice);
}

int look_take(struct process *p, bool may_call, struct look *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = memory_read(p, &out->memory, d);
	if (err)
		return err;
	memory_cgroup_read(&p->t, &out->cgroup);
	versions(p, &out->facts);
	look_facts_kernel(p, out);
	err = take_glibc(p, out, d);
	/* the calls come last: what they need themselves is in none of the numbers */
	if (!err)
		err = take_jemalloc(p, may_call, out, d);
	if (!err)
		err = look_others(p, may_call, out, d);
	if (err) {
		look_free(out);
		return err;
	}
	find_makeup(out);
	advise(p, out);
	return 0;
}

void look_free(struct look *l)
{
	if (l->glibc)
		glibc_arenas_free(&l->arenas);
	memory_free(&l->memory);
}
