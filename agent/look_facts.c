// SPDX-License-Identifier: GPL-3.0-or-later
#include "look_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../inject/status.h"
#include "../inject/threads.h"
#include "glibc_threads.h"
#include "allocator_choice.h"
#include "jemalloc.h"

/* ---- the kernel's */

/* Ticks since boot, suspended time included (proc_pid_stat(5): starttime is CLOCK_BOOTTIME). */
static void age(const struct process *p, struct facts *f)
{
	struct timespec now;
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t start;

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &now))
		return;
	start = p->t.start_time / (uint64_t)hz;
	facts_set(f, FACT_UPTIME, FROM_KERNEL,
		  (uint64_t)now.tv_sec > start ? (uint64_t)now.tv_sec - start : 0);
}

static void faults(const struct process *p, struct facts *f)
{
	uint64_t minflt;

	if (minflt_read(p->t.procfd, &minflt) == 0)
		facts_set(f, FACT_MINFLT, FROM_KERNEL, minflt);
}

static void cgroup(const struct memory_cgroup *g, struct facts *f)
{
	if (!g->version)
		return;
	facts_set(f, FACT_CGROUP_USED, FROM_KERNEL, g->tightest.usage);
	if (g->tightest.limit == CGROUP_NO_LIMIT)
		return;
	facts_set(f, FACT_CGROUP_LIMIT, FROM_KERNEL, g->tightest.limit);
	facts_set_share(f, FACT_CGROUP_FRACTION, FROM_KERNEL, g->tightest.usage, g->tightest.limit);
}

static void go_heap(const struct memory *m, struct facts *f)
{
	uint64_t mapped = 0, resident = 0;

	if (!m->facts.go)
		return;
	for (size_t i = 0; i < m->owners.n; i++) {
		const struct piece *p = &m->owners.v[i];

		if (p->owner != OWNER_GO_HEAP)
			continue;
		/* what is only reserved is no memory of the heap yet */
		mapped += p->row->map.prot ? p->a.mapped : 0;
		resident += p->a.resident;
	}
	facts_set(f, FACT_GO_HEAP_MAPPED, FROM_PASSIVE, mapped);
	facts_set(f, FACT_GO_HEAP_RESIDENT, FROM_PASSIVE, resident);
}

static void usage(const struct process *p, const struct usage *u, struct facts *f)
{
	facts_set(f, FACT_RSS, FROM_KERNEL, u->rss);
	facts_set(f, FACT_ANON, FROM_KERNEL, u->anon);
	facts_set(f, FACT_SWAP, FROM_KERNEL, u->swap);
	facts_set(f, FACT_PSS, FROM_KERNEL, u->pss);
	if (p->pre.status.threads > 0)
		facts_set(f, FACT_THREADS, FROM_KERNEL, (uint64_t)p->pre.status.threads);
	faults(p, f);
	age(p, f);
}

int look_facts_quick(const struct process *p, struct facts *f, struct diag *d)
{
	struct memory_cgroup g;
	struct usage u;
	int err = usage_read(&p->t, &u, d);

	if (err)
		return err;
	memory_cgroup_read(&p->t, &g);
	usage(p, &u, f);
	cgroup(&g, f);
	return 0;
}

void look_facts_kernel(const struct process *p, struct look *l)
{
	struct facts *f = &l->facts;
	uint64_t r[OWNERS];

	makeup_count(&l->memory.owners, r);
	usage(p, &l->memory.usage, f);
	cgroup(&l->cgroup, f);
	facts_set(f, FACT_STACKS_RESIDENT, FROM_PASSIVE,
		  r[OWNER_THREAD_STACK] + r[OWNER_MAIN_STACK]);
	facts_set(f, FACT_FILES_RESIDENT, FROM_KERNEL, r[OWNER_FILE_TEXT] + r[OWNER_FILE_DATA]);
	facts_set(f, FACT_SHM_RESIDENT, FROM_KERNEL, r[OWNER_SHM]);
	facts_set(f, FACT_OTHER_RESIDENT, FROM_PASSIVE, r[OWNER_UNCLAIMED]);
	go_heap(&l->memory, f);
}

/* ---- glibc's */

/* Known only if each thread's cache is. */
static int caches(const struct process *p, const struct allocator *a, struct facts *f,
		  struct diag *d)
{
	struct glibc_thread *heap;
	struct threads list;
	uint64_t sum = 0;
	bool known = true;
	int err = threads_read(&p->t, &list, d);

	if (err)
		return err;
	heap = calloc(list.n ? list.n : 1, sizeof(*heap));
	err = heap ? threads_rank(&p->t, &p->maps, &p->mods, &list) : -ENOMEM;
	if (!err)
		err = threads_locate(&p->t, &p->mods, &list);
	if (err)
		diag_internal(d, err, "looking for thread caches");
	else
		err = glibc_threads_read(p, a, &list, heap, d);
	for (size_t i = 0; !err && i < list.n; i++) {
		known &= heap[i].cache;
		sum += heap[i].bytes;
	}
	if (!err && known && list.n)
		facts_set(f, FACT_GLIBC_TCACHE, FROM_PASSIVE, sum);
	free(heap);
	threads_free(&list);
	return err;
}

static void parameters(const struct glibc_arenas *a, struct facts *f)
{
	const struct glibc_par *par = &a->plan.par;

	if (a->limit)
		facts_set(f, FACT_GLIBC_ARENA_LIMIT, FROM_PASSIVE, a->limit);
	if (!par->at)
		return;
	facts_set(f, FACT_GLIBC_MMAPPED, FROM_PASSIVE, par->mmapped_mem);
	facts_set(f, FACT_GLIBC_TRIM_THRESHOLD, FROM_PASSIVE, par->trim_threshold);
	facts_set(f, FACT_GLIBC_MMAP_THRESHOLD, FROM_PASSIVE, par->mmap_threshold);
}

int look_facts_glibc(const struct process *p, const struct allocator *a, struct look *l,
		     struct diag *d)
{
	const struct glibc_arena_plan *t = &l->arenas.plan.total;
	struct facts *f = &l->facts;

	facts_set(f, FACT_GLIBC_ARENAS, FROM_PASSIVE, l->arenas.plan.arenas);
	facts_set(f, FACT_GLIBC_SYSTEM, FROM_PASSIVE, t->system_mem);
	facts_set(f, FACT_GLIBC_IN_USE, FROM_PASSIVE, t->in_use);
	facts_set(f, FACT_GLIBC_FREE, FROM_PASSIVE, t->free);
	facts_set(f, FACT_GLIBC_FREE_RESIDENT, FROM_PASSIVE, t->free_resident);
	facts_set(f, FACT_GLIBC_STRANDED, FROM_PASSIVE, t->stranded_bytes);
	facts_set(f, FACT_GLIBC_TRIMMABLE, FROM_PREDICTION, t->pages.trimmable + t->swapped);
	parameters(&l->arenas, f);
	return l->arenas.plan.arenas ? caches(p, a, f, d) : 0;
}

/* ---- jemalloc's */

/* All in one batch, so that they are of one epoch, and a thread is held once for them. */
static const struct {
	const char *name;
	enum fact_id id;
	bool pages; /* it counts pages: of arenas.page bytes */
} asked[] = {
	{ "stats.allocated", FACT_JEMALLOC_ALLOCATED, false },
	{ "stats.active", FACT_JEMALLOC_ACTIVE, false },
	{ "stats.metadata", FACT_JEMALLOC_METADATA, false },
	{ "stats.resident", FACT_JEMALLOC_RESIDENT, false },
	{ "stats.mapped", FACT_JEMALLOC_MAPPED, false },
	{ "stats.retained", FACT_JEMALLOC_RETAINED, false },
	{ "background_thread", FACT_JEMALLOC_BACKGROUND_THREAD, false },
	{ "prof.active", FACT_JEMALLOC_PROF_ACTIVE, false },
	/* of all arenas: that index is a number of jemalloc's own, since 5.0 */
	{ "stats.arenas.4096.pmuzzy", FACT_JEMALLOC_MUZZY, true },
	{ "stats.arenas.4096.pdirty", FACT_JEMALLOC_DIRTY, true },
	{ "arenas.narenas", FACT_JEMALLOC_NARENAS, false },
};
#define ASKED	(sizeof(asked) / sizeof(asked[0]))
#define DIRTY	(ASKED - 2)
#define NARENAS (ASKED - 1)

static void derive(struct facts *f)
{
	uint64_t allocated = facts_get(f, FACT_JEMALLOC_ALLOCATED);
	uint64_t active = facts_get(f, FACT_JEMALLOC_ACTIVE);

	/* muzzy pages came with 5.0: before, dirty ones are all that there are */
	if (facts_known(f, FACT_JEMALLOC_DIRTY) && facts_known(f, FACT_JEMALLOC_MUZZY))
		facts_set(f, FACT_JEMALLOC_PURGEABLE, FROM_CALL,
			  facts_get(f, FACT_JEMALLOC_DIRTY) + facts_get(f, FACT_JEMALLOC_MUZZY));
	if (facts_known(f, FACT_JEMALLOC_ALLOCATED) && facts_known(f, FACT_JEMALLOC_ACTIVE))
		facts_set_share(f, FACT_JEMALLOC_FRAGMENTATION, FROM_CALL,
				active > allocated ? active - allocated : 0, active);
}

/* Of several jemallocs: sums, and of a switch whether it is on in one of them. */
struct sums {
	uint64_t n[ASKED];
	unsigned known[ASKED]; /* in how many */
	unsigned of;
};

/* What this jemalloc does not have (a version, a build) is one fact less. */
static void add_up(struct sums *s, const struct ctl_ask *ask)
{
	uint64_t page = ask[ASKED].rc ? 0 : ask[ASKED].value.u;

	s->of++;
	for (size_t i = 0; i < ASKED; i++) {
		bool is_bool = ask[i].value.type == CTL_BOOL;
		uint64_t n = is_bool ? ask[i].value.b : ask[i].value.u;

		if (ask[i].rc || (asked[i].pages && !page) ||
		    __builtin_mul_overflow(n, asked[i].pages ? page : 1, &n) ||
		    __builtin_add_overflow(s->n[i], n, &n))
			continue;
		s->n[i] = is_bool ? n != 0 : n;
		s->known[i]++;
	}
}

/* Before 5.0 the number of arenas, as an index, is the sum of all. */
static int ask_old(struct process *p, const struct allocator *a, struct ctl_ask *ask,
		   struct diag *d)
{
	char name[64];
	int rc;

	if (!ask[DIRTY].rc || ask[NARENAS].rc || ask[NARENAS].value.u > UINT16_MAX)
		return 0;
	snprintf(name, sizeof(name), "stats.arenas.%u.pdirty", (unsigned)ask[NARENAS].value.u);
	ask[DIRTY].name = name;
	rc = jemalloc_ask(p, a, &ask[DIRTY], 1, NULL, d);
	ask[DIRTY].name = "";
	return rc;
}

static int add_one(struct process *p, const struct allocator *a, struct sums *s, struct diag *d)
{
	struct ctl_ask *ask = calloc(ASKED + 1, sizeof(*ask));
	struct ctl_fresh fresh;
	int rc;

	if (!ask)
		return diag_internal(d, -ENOMEM, "mallctl");
	for (size_t i = 0; i <= ASKED; i++) {
		ask[i].name = i < ASKED ? asked[i].name : "arenas.page";
		ask[i].row = ctl_find(ask[i].name);
	}
	rc = jemalloc_ask(p, a, ask, ASKED + 1, &fresh, d);
	if (!rc)
		rc = ask_old(p, a, ask, d);
	if (!rc)
		add_up(s, ask);
	free(ask);
	return rc;
}

int look_facts_jemalloc(struct process *p, struct look *l, struct diag *d)
{
	bool chosen = allocator_asked(p, l->jemalloc);
	struct sums s = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (a->ops == l->jemalloc->ops && allocator_callable(a) &&
		    (!chosen || allocator_asked(p, a)))
			rc = add_one(p, a, &s, d);
	}
	for (size_t i = 0; i < ASKED; i++)
		if (s.of && s.known[i] == s.of)
			facts_set(&l->facts, asked[i].id, FROM_CALL, s.n[i]);
	derive(&l->facts);
	return rc;
}
