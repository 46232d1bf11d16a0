// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/clock.h"
#include "../inject/phase.h"
#include "../inject/smaps.h"
#include "../inject/usage.h"

/* Of CPU time, as a busy machine gives us little: lists that take longer are read in part. */
#define LIMIT (2 * NS_PER_SEC)
#define WALL  (5 * LIMIT)
/* Free chunks that are read once more where their arena has changed since: a fifth of a second or
 * so. What a chunk more or less is worth is a page. */
#define AGAIN_CHUNKS 100000U

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

/* What a trim cannot give back, and whether a page that is here can be of nobody else. */
static int ask_kernel(const struct target *t, struct glibc_picture *pic, struct diag *d)
{
	struct usage now;
	int rc = usage_read(t, &now, d);

	if (!rc && (now.locked || now.hugetlb))
		rc = find_pinned(t, &pic->pinned, &pic->o.pinned_n, d);
	if (rc)
		return rc;
	pic->o.pinned = pic->pinned;
	rc = pages_open(t, &pic->pages);
	if (rc)
		return rc == -ESRCH ? target_gone(t, d) : -ENXIO;
	/* no anonymous page has another user */
	pic->pages.own = now.anon && now.pss_anon == now.anon;
	return 0;
}

static void wait_for(void *ctx, uint64_t ns)
{
	(void)ctx;
	clock_sleep(ns);
}

static int failed(const struct process *p, int rc, struct diag *d)
{
	if (rc == -ESRCH)
		return glibc_live_lost(p, d);
	return rc == -ENOMEM ? diag_internal(d, rc, "planning the trim") : rc;
}

static int plan(struct process *p, const struct allocator *a, struct glibc_picture *pic,
		struct diag *d)
{
	const struct glibc_budget budget = { .chunks = UINT64_MAX,
					     .until = clock_now() + WALL,
					     .until_cpu = clock_cpu() + LIMIT };
	int rc = ask_kernel(&p->t, pic, d);

	if (rc)
		return rc;
	pic->o.brk = find_brk(&p->maps, &pic->live.view, a->mod);
	pic->o.step = pic->live.view.par.thp_pagesize;
	rc = glibc_plan_read(&pic->live.view, &pic->pages, &pic->o, &budget, &pic->plan);
	return failed(p, rc, d);
}

int glibc_picture_take(struct process *p, const struct allocator *a, uint64_t pad,
		       struct glibc_picture **out, struct diag *d)
{
	struct glibc_picture *pic = calloc(1, sizeof(*pic));
	uint64_t begun = clock_now();
	int rc;

	*out = NULL;
	if (!pic)
		return diag_internal(d, -ENOMEM, "looking at the heap");
	phase_begin("reading glibc's heap", 0);
	pic->pages.fd = -1;
	pic->o.pad = pad;
	pic->o.wait = wait_for;
	rc = glibc_live_open(p, a, &pic->live, d);
	if (!rc)
		rc = plan(p, a, pic, d);
	if (rc) {
		glibc_picture_free(pic);
		return rc;
	}
	pic->ns = clock_now() - begun;
	*out = pic;
	return 0;
}

int glibc_picture_again(struct process *p, const struct allocator *a, struct glibc_picture *pic,
			struct diag *d)
{
	int rc;

	pic->o.brk = find_brk(&p->maps, &pic->live.view, a->mod);
	rc = glibc_plan_again(&pic->live.view, &pic->pages, &pic->o, AGAIN_CHUNKS, &pic->plan);
	return failed(p, rc, d);
}

void glibc_picture_free(struct glibc_picture *pic)
{
	if (!pic)
		return;
	glibc_plan_free(&pic->plan);
	pages_close(&pic->pages);
	glibc_live_close(&pic->live);
	free(pic->pinned);
	free(pic);
}

int glibc_picture_keep(struct process *p, uint64_t pad, struct diag *d)
{
	const struct allocator *a = process_allocator(p, "glibc");
	int rc;

	glibc_picture_drop(p);
	if (!a)
		return 0;
	rc = glibc_picture_take(p, a, pad, &p->picture, d);
	return rc == -ENOENT || rc == -ENODATA || rc == -ENXIO ? 0 : rc;
}

void glibc_picture_drop(struct process *p)
{
	glibc_picture_free(p->picture);
	p->picture = NULL;
}
