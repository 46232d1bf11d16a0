// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"
#include "../inject/smaps.h"
#include "../inject/usage.h"
#include "glibc_live.h"

/* A heap that takes longer to read than this is read in part. */
#define LIMIT (2 * NS_PER_SEC)

/*
 * The break. The kernel's [heap] ends with it, rounded up, but goes on where it was merged with
 * other memory behind; systrim asks sbrk(0), which is libc's own variable (misc/sbrk.c). The area
 * may be several mappings, where a part of it is locked.
 */
static uint64_t find_brk(const struct maps *m, const struct glibc_view *v, const struct module *mod)
{
	uint64_t start = UINT64_MAX, end = 0, brk;
	struct symbol sym;

	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->v[i].name, "[heap]") == 0) {
			start = end ? start : m->v[i].start;
			end = m->v[i].end;
		}
	if (module_symbol(mod, "__curbrk", &sym) || v->r->read(v->r->ctx, sym.addr, &brk, 8))
		return end;
	return brk > start && brk <= end ? brk : end;
}

/* Mappings that madvise(2) refuses: only looked for where there are some. */
static int find_pinned(const struct target *t, struct glibc_pinned **out, size_t *n, struct diag *d)
{
	struct smaps s;
	int rc = smaps_read(t, &s, d);

	if (rc)
		return rc;
	*out = calloc(s.n ? s.n : 1, sizeof(**out));
	if (!*out) {
		smaps_free(&s);
		return diag_internal(d, -ENOMEM, "looking for locked memory");
	}
	for (size_t i = 0; i < s.n; i++)
		if (s.v[i].flags & (SMAPS_LOCKED | SMAPS_HUGETLB))
			(*out)[(*n)++] =
				(struct glibc_pinned){ s.v[i].map.start, s.v[i].map.end,
						       (s.v[i].flags & SMAPS_HUGETLB) != 0 };
	smaps_free(&s);
	return 0;
}

static int plan(struct process *p, const struct glibc_view *v, struct glibc_plan_opts *o,
		struct glibc_plan *out, struct diag *d)
{
	const struct glibc_budget budget = { .chunks = UINT64_MAX, .until = clock_now() + LIMIT };
	struct glibc_pinned *pinned = NULL;
	struct pages pages;
	struct usage now;
	int rc = usage_read(&p->t, &now, d);

	if (!rc && (now.locked || now.hugetlb))
		rc = find_pinned(&p->t, &pinned, &o->pinned_n, d);
	if (rc)
		return rc;
	o->pinned = pinned;
	rc = pages_open(&p->t, &pages);
	if (rc) {
		free(pinned);
		return rc == -ESRCH ? target_gone(&p->t, d) : -ENXIO;
	}
	/* no anonymous page has another user */
	pages.own = now.anon && now.pss_anon == now.anon;
	rc = glibc_plan_read(v, &pages, o, &budget, out);
	pages_close(&pages);
	free(pinned);
	if (rc)
		glibc_plan_free(out);
	if (rc == -ESRCH)
		return target_gone(&p->t, d);
	return rc == -ENOMEM ? diag_internal(d, rc, "planning the trim") : rc;
}

static void wait_for(void *ctx, uint64_t ns)
{
	(void)ctx;
	clock_sleep(ns);
}

int glibc_plan_live(struct process *p, const struct allocator *a, uint64_t pad,
		    struct glibc_plan *out, struct diag *d)
{
	struct glibc_plan_opts o = { .pad = pad, .wait = wait_for };
	struct glibc_live live;
	int rc = glibc_live_open(p, a, &live, d);

	*out = (struct glibc_plan){ 0 };
	if (rc)
		return rc;
	o.brk = find_brk(&p->maps, &live.view, a->mod);
	o.step = live.view.par.thp_pagesize;
	rc = plan(p, &live.view, &o, out, d);
	glibc_live_close(&live);
	return rc;
}

/* Something was not read: there may be more to give back. */
static bool is_partial(const struct glibc_plan *plan)
{
	bool partial = plan->total.swapped_out || plan->total.cut;

	for (size_t i = 0; i < plan->arenas; i++)
		partial |= plan->arena[i].fault.kind != FAULT_NONE;
	return partial || plan->ring_fault.kind != FAULT_NONE;
}

int glibc_predict(struct process *p, const struct allocator *a, uint64_t pad,
		  struct prediction *out, struct diag *d)
{
	struct glibc_plan plan;
	int rc = glibc_plan_live(p, a, pad, &plan, d);
	const struct glibc_arena_plan *t = &plan.total;

	*out = (struct prediction){ .known = rc == -ENODATA };
	if (rc == -ENOENT || rc == -ENODATA || rc == -ENXIO)
		return 0;
	if (rc)
		return rc;
	*out = (struct prediction){
		.known = true,
		.bytes = t->pages.trimmable + t->swapped,
		.ranges = t->ranges,
		.duration_ns = plan.estimate_ns,
		.locked = t->locked,
		.hugetlb = t->hugetlb,
		.moving = t->moving,
		.partial = is_partial(&plan),
	};
	glibc_plan_free(&plan);
	return 0;
}
