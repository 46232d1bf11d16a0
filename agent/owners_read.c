// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners_read.h"

#include <errno.h>
#include <string.h>

#include "../inject/pages.h"
#include "../inject/peek.h"
#include "../inject/phase.h"
#include "allocator_other.h"
#include "owners_claim.h"

/* ---- who is left */

/* The smallest piece of address space that each asks the kernel for, but for rare cases. */
static const struct {
	const char *name;
	enum owner owner;
	uint64_t least;
} mappers[] = {
	/* HUGEPAGE, for extents (grow_retained) and for its own data (base) */
	{ "jemalloc", OWNER_JEMALLOC, (uint64_t)2 << 20 },
	/* gperftools: kMinSystemAlloc, 128 pages of 8 KiB */
	{ "tcmalloc", OWNER_TCMALLOC, (uint64_t)1 << 20 },
	/* MI_SEGMENT_SIZE is 32 MiB, of which a part may have been given back */
	{ "mimalloc", OWNER_MIMALLOC, (uint64_t)4 << 20 },
	/* groups of a page or more (mallocng), large blocks have a mapping of their own */
	{ "musl", OWNER_MUSL, (uint64_t)4 << 10 },
};

static void decide_allocator(struct claimer *b, struct owner_facts *f)
{
	const struct allocators *all = &b->p->allocs;
	const struct allocator *only = NULL;
	bool alone = true;

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].in_use && all->v[i].owns_malloc)
			only = &all->v[i];
	if (!only)
		return;
	for (size_t i = 0; i < all->n; i++)
		alone &= !all->v[i].in_use || all->v[i].ops == only->ops;
	if (strcmp(only->ops->name, "glibc") == 0 ||
	    (only->ops == &unknown_ops && process_allocator(b->p, "glibc")))
		f->brk = OWNER_GLIBC_MAIN;
	for (size_t i = 0; i < sizeof(mappers) / sizeof(mappers[0]); i++) {
		if (strcmp(only->ops->name, mappers[i].name) != 0)
			continue;
		/* jemalloc (dss) and tcmalloc ask for brk too; glibc's malloc is not reached */
		f->brk = mappers[i].owner;
		if (alone && !b->jvm && !b->go) {
			b->rest = mappers[i].owner;
			b->rest_min = mappers[i].least;
		}
	}
}

/* Once all that is known is claimed. */
static void decide_rest(const struct claimer *b, struct owner_facts *f)
{
	bool libc = modules_glibc(&b->p->mods) || modules_musl(&b->p->mods);

	f->rest = b->rest;
	f->rest_min = b->rest_min;
	if (b->jvm) {
		f->reserver = OWNER_JVM;
		f->reserve_min = (uint64_t)64 << 10;
	} else if (b->go) {
		/* the summaries of its page allocator are reserved for the whole address space */
		f->reserver = OWNER_GO_RUNTIME;
		f->reserve_min = (uint64_t)1 << 20;
	}
	/* without a libc there is nobody else who maps memory */
	if (b->go && !b->jvm && !libc) {
		f->rest = OWNER_GO_RUNTIME;
		f->rest_min = 0;
	}
}

/* The kernel's page of zeros is no part of RSS. */
static int count_pages(void *ctx, uint64_t lo, uint64_t hi, uint64_t *resident, uint64_t *swapped)
{
	const struct claimer *b = ctx;
	struct page_runs runs = { 0 };
	int err = pages_runs(&b->pages, lo, hi, &runs);

	*resident = *swapped = 0;
	for (size_t i = 0; !err && i < runs.n; i++) {
		uint64_t len = runs.v[i].end - runs.v[i].start;

		if (runs.v[i].flags & PAGE_SWAPPED)
			*swapped += len;
		else if ((runs.v[i].flags & PAGE_PRESENT) && !(runs.v[i].flags & PAGE_ZERO))
			*resident += len;
	}
	pages_free_runs(&runs);
	return err;
}

/* [heap] as a whole is a claim: a thread's stack may be a block in it. */
static int claim_brk(struct claimer *b)
{
	const struct claims *modules = &b->m->facts.claims[CLAIM_MODULE];
	int err = 0;

	if (b->m->facts.brk == OWNER_NAMED)
		return 0;
	for (size_t i = 0; !err && i < b->m->smaps.n; i++) {
		const struct map *m = &b->m->smaps.v[i].map;
		struct claim c = { .start = m->start,
				   .end = m->end,
				   .owner = b->m->facts.brk,
				   .basis = BASIS_REST,
				   .kind = "",
				   .id = -1 };

		if (strcmp(m->name, "[heap]") != 0)
			continue;
		/* without address space randomisation the program's bss may be in the same one */
		for (size_t k = 0; k < modules->n; k++)
			if (modules->v[k].start <= c.start && modules->v[k].end > c.start)
				c.start = modules->v[k].end;
		if (c.start < c.end)
			err = claim_range(b, CLAIM_ALLOCATOR, &c);
	}
	return err;
}

static int claim_all(struct claimer *b, struct diag *d)
{
	int err = claim_modules(b);

	if (!err && modules_glibc(&b->p->mods))
		err = claim_arenas(b);
	if (!err)
		err = claim_runtimes(b);
	if (!err)
		err = claim_stacks(b, d);
	if (!err) {
		decide_allocator(b, &b->m->facts);
		err = claim_brk(b);
	}
	b->m->facts.go = b->go;
	if (!err)
		err = claim_jemalloc(b);
	if (!err)
		err = claim_mmapped(b);
	return err;
}

static int build(struct claimer *b, struct diag *d)
{
	struct memory *m = b->m;
	int err;

	m->facts.mounts = &m->mounts;
	m->facts.count = b->counts ? count_pages : NULL;
	m->facts.count_ctx = b;
	err = claim_all(b, d);
	if (!err) {
		decide_rest(b, &m->facts);
		err = owners_assign(&m->smaps, &m->facts, &m->owners);
	}
	m->facts.count = NULL;
	m->facts.count_ctx = NULL;
	if (!err)
		return 0;
	if (err == -ESRCH)
		return target_gone(&b->p->t, d);
	return d->exit ? err : diag_internal(d, err, "the owners of the mappings");
}

/* ---- reading */

static int open_heap(struct claimer *b, struct diag *d)
{
	const struct allocator *a = process_allocator(b->p, "glibc");
	int err = a ? glibc_live_open(b->p, a, &b->heap, d) : 0;

	if (!err && a)
		return 0;
	b->heap.peek = NULL;
	if (err && err != -ENOENT && err != -ENODATA)
		return err;
	return peek_open(&b->p->t, &b->p->maps, &b->peek, d);
}

static uint64_t resident_of(const struct smaps *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i].rss;
	return sum;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* The total before or after smaps, whichever fits it better. */
static int read_figures(const struct target *t, struct memory *m, struct diag *d)
{
	struct usage after;
	uint64_t sum;
	int err = usage_read(t, &m->usage, d);

	if (err)
		return err;
	err = smaps_read(t, &m->smaps, d);
	if (err)
		return err;
	sum = resident_of(&m->smaps);
	if (sum == m->usage.rss)
		return 0;
	err = usage_read(t, &after, d);
	if (!err && apart(after.rss, sum) <= apart(m->usage.rss, sum))
		m->usage = after;
	return err;
}

int memory_read(const struct process *p, struct memory *out, struct diag *d)
{
	struct claimer b = { .p = p, .m = out, .chunks = CHUNKS_MAX, .rest = OWNER_UNCLAIMED };
	int err;

	memset(out, 0, sizeof(*out));
	owner_facts_init(&out->facts);
	phase_begin("reading its mappings", 0);
	err = read_figures(&p->t, out, d);
	if (!err) {
		mounts_read(&p->t, &out->mounts);
		b.counts = pages_open(&p->t, &b.pages) == 0;
		err = open_heap(&b, d);
		if (!err)
			err = build(&b, d);
		if (b.heap.peek)
			glibc_live_close(&b.heap);
		peek_close(b.peek);
		if (b.counts)
			pages_close(&b.pages);
	}
	if (err) {
		memory_free(out);
		return err;
	}
	out->remainder = (int64_t)(out->usage.rss - out->owners.total.resident);
	return 0;
}

void memory_free(struct memory *m)
{
	owners_free(&m->owners);
	owner_facts_free(&m->facts);
	smaps_free(&m->smaps);
}
