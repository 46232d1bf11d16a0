// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_arenas.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "glibc_picture.h"
#include "guard.h"

#define MAPS_HINT "`maps` shows who owns its memory"
#define PER_CPU	  8U	/* NARENAS_FROM_NCORES of 64-bit machines */
#define CPUS_MAX  8192U /* more than any kernel is built for */

uint64_t glibc_arena_limit(const struct glibc_par *par, size_t arenas, unsigned online,
			   unsigned allowed)
{
	uint64_t limit = par->arena_max;

	if (!par->at)
		return 0;
	if (!limit && online == allowed)
		limit = (uint64_t)PER_CPU * online;
	return arenas <= limit ? limit : 0;
}

/* 0 where it cannot be told. Needs no right to anything. */
static unsigned allowed_cpus(pid_t pid)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	int n = 0;

	if (!set)
		return 0;
	CPU_ZERO_S(size, set);
	if (sched_getaffinity(pid, size, set) == 0)
		n = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return n > 0 ? (unsigned)n : 0;
}

static void find_limit(const struct process *p, struct glibc_arenas *out)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	out->allowed = allowed_cpus(p->t.pid);
	out->limit = glibc_arena_limit(&out->plan.par, out->plan.arenas,
				       online > 0 ? (unsigned)online : 0, out->allowed);
	if (out->limit && !out->plan.par.arena_max)
		out->cpus = (unsigned)online;
}

/* Where in the order of a check an arena comes: it ends at the first damage that it finds. */
static bool was_looked_at(const struct glibc_arena_plan *a, const struct glibc_check *check)
{
	if (check->fault.kind == FAULT_NONE)
		return a->index < check->arenas;
	return check->fault.place != PLACE_RING && a->index < check->fault.arena;
}

static void judge_arena(struct glibc_plan *plan, struct glibc_arena_plan *a,
			const struct glibc_check *check)
{
	if (check->fault.kind && check->fault.place != PLACE_RING &&
	    check->fault.arena_at == a->at) {
		a->fault = check->fault;
		plan->total.cut = true;
		return;
	}
	if (a->fault.kind == FAULT_NONE)
		return;
	/* its reading ended there all the same */
	a->cut = true;
	a->moving |= was_looked_at(a, check);
	plan->total.moving |= a->moving;
	plan->total.cut |= a->cut;
	a->fault = (struct glibc_fault){ 0 };
}

void glibc_arenas_judge(struct glibc_plan *plan, const struct glibc_check *check)
{
	for (size_t i = 0; i < plan->arenas; i++)
		judge_arena(plan, &plan->arena[i], check);
	if (check->fault.kind && check->fault.place == PLACE_RING) {
		plan->ring_fault = check->fault;
		plan->total.cut = true;
	} else if (plan->ring_fault.kind) {
		plan->ring_fault = (struct glibc_fault){ 0 };
		plan->total.moving = plan->total.cut = true;
	}
}

/* What looks damaged is looked at again; what was only left out stays so. */
static int judge(struct process *p, struct glibc_picture *pic, struct diag *d)
{
	bool found = pic->plan.ring_fault.kind != FAULT_NONE;
	struct guard g;
	int rc;

	for (size_t i = 0; i < pic->plan.arenas; i++)
		found |= pic->plan.arena[i].fault.kind != FAULT_NONE;
	if (!found)
		return 0;
	rc = guard_judge(p, pic, &g, d);
	if (!rc)
		glibc_arenas_judge(&pic->plan, &g.check);
	return rc;
}

static int by_size(const void *x, const void *y)
{
	const struct glibc_arena_plan *a = x, *b = y;

	if (a->system_mem != b->system_mem)
		return a->system_mem < b->system_mem ? 1 : -1;
	return (a->index > b->index) - (a->index < b->index);
}

int glibc_arenas_read(struct process *p, const struct allocator *a, struct glibc_arenas *out,
		      struct diag *d)
{
	struct glibc_picture *pic;
	int rc;

	*out = (struct glibc_arenas){ 0 };
	rc = glibc_picture_take(p, a, 0, &pic, d);
	if (rc == -ENOENT)
		return diag_fail(d, rc, HM_UNSUPPORTED, "heap-not-found",
				 "`info` asks glibc itself, by a call",
				 "the heap of process %d was not found: its glibc (%s) keeps it in "
				 "a layout that is not known",
				 (int)p->t.pid, *a->version ? a->version : "version unknown");
	if (rc == -ENXIO)
		return diag_fail(d, rc, HM_NOT_PERMITTED, "no-pagemap",
				 "`info` asks glibc itself, by a call",
				 "/proc/%d/pagemap cannot be opened: which pages are in memory is "
				 "not known",
				 (int)p->t.pid);
	if (rc)
		return rc;
	rc = judge(p, pic, d);
	if (!rc) {
		out->plan = pic->plan;
		pic->plan = (struct glibc_plan){ 0 };
	}
	glibc_picture_free(pic);
	if (rc)
		return rc;
	find_limit(p, out);
	if (out->plan.arenas)
		qsort(out->plan.arena, out->plan.arenas, sizeof(*out->plan.arena), by_size);
	return 0;
}

int glibc_arenas_none(const struct process *p, struct diag *d)
{
	const struct allocators *v = &p->allocs;
	const char *comm = p->t.comm;

	if (allocators_get(v, "jemalloc"))
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-glibc-malloc",
				 "`arenas` and `stats` ask jemalloc",
				 "%s allocates with jemalloc, and has no arenas of glibc's", comm);
	if (!p->pre.attachable && p->pre.cause.exit) {
		*d = p->pre.cause;
		return -EPERM;
	}
	/* no libc, musl, static without symbols: its words name it */
	if (!p->pre.injectable && p->pre.cause.exit == HM_UNSUPPORTED)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, p->pre.cause.code, MAPS_HINT,
				 "%s has no arenas that can be shown: %s", comm, p->pre.cause.text);
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].in_use)
			return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "unsupported-allocator",
					 MAPS_HINT,
					 "%s has no arenas that can be shown: its allocator is "
					 "%s %s",
					 comm, v->v[i].ops->name, v->v[i].version);
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-allocator", MAPS_HINT,
			 "%s has no arenas that can be shown: no allocator was found in it", comm);
}

void glibc_arenas_free(struct glibc_arenas *a)
{
	glibc_plan_free(&a->plan);
}
