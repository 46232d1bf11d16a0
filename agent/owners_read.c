// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners_read.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../inject/pages.h"
#include "../inject/peek.h"
#include "../inject/stacks.h"
#include "glibc_arena.h"
#include "glibc_live.h"
#include "glibc_mmapped.h"
#include "golang.h"
#include "hotspot.h"
#include "owners_glibc.h"

#define PAGE	    4096ULL
#define SMALL	    ((uint64_t)256 << 10) /* the loader's own allocations are not larger */
#define CHUNKS_MAX  4096U
#define PTHREAD_LEN 2304U /* struct pthread */

struct builder {
	const struct process *p;
	struct memory *m;
	struct pages pages;
	bool counts;		/* pages can be counted */
	struct peek *peek;	/* what is written there, where the heap was not found */
	size_t chunks;		/* of Go's that may still be claimed */
	struct glibc_live heap; /* peek is NULL without one */
	bool jvm, go;
	enum owner rest; /* as in struct owner_facts */
	uint64_t rest_min;
};

/* What a target says of itself may be a range that cannot be: that claims nothing. */
static int claim(struct builder *b, enum claim_class class, const struct claim *c)
{
	int err = owner_claim(&b->m->facts, class, c);

	return err == -EINVAL ? 0 : err;
}

/* ---- libraries and their memory */

static int claim_bss(struct builder *b, const struct module *mod)
{
	const struct elf_segment *seg;
	size_t n = mod->elf ? elf_file_segments(mod->elf, &seg) : 0;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		struct claim c = {
			.owner = OWNER_FILE_PRIVATE, .basis = BASIS_READ, .kind = "bss", .id = -1
		};

		if (seg[i].type != PT_LOAD || seg[i].memsz <= seg[i].filesz)
			continue;
		/* the rest of the file's last page is part of the file's mapping */
		c.start = (mod->bias + seg[i].vaddr + seg[i].filesz + PAGE - 1) & ~(PAGE - 1);
		c.end = mod->bias + seg[i].vaddr + seg[i].memsz;
		if (c.start < c.end)
			err = claim(b, CLAIM_MODULE, &c);
	}
	return err;
}

static const struct smaps_row *row_at(const struct smaps *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < s->v[mid].map.start)
			hi = mid;
		else if (addr >= s->v[mid].map.end)
			lo = mid + 1;
		else
			return &s->v[mid];
	}
	return NULL;
}

/*
 * The loader allocates before there is a malloc: a small mapping. Of one that has been merged with
 * others it is known only where the structure is; later ones come from malloc, and then (len 0)
 * nothing is the loader's.
 */
static int claim_loader(struct builder *b, uint64_t addr, uint64_t len)
{
	const struct smaps_row *row = addr ? row_at(&b->m->smaps, addr) : NULL;
	struct claim c = {
		.owner = OWNER_FILE_PRIVATE, .basis = BASIS_READ, .kind = "loader", .id = -1
	};

	if (!row || row->map.inode || row->map.shared || row->map.name[0])
		return 0;
	c.start = row->map.start;
	c.end = row->map.end;
	if (c.end - c.start > SMALL) {
		if (!len)
			return 0;
		c.start = addr;
		c.end = addr + len < c.end ? addr + len : c.end;
	}
	return claim(b, CLAIM_MODULE, &c);
}

static int claim_modules(struct builder *b)
{
	const struct modules *mods = &b->p->mods;
	int err = 0;

	for (size_t i = 0; !err && i < mods->n; i++)
		err = claim_bss(b, &mods->v[i]);
	for (size_t i = 0; !err && i < mods->n; i++)
		err = claim_loader(b, mods->v[i].link_map, 0);
	return err;
}

/* ---- stacks */

static int claim_stacks(struct builder *b, struct diag *d)
{
	struct stacks s;
	int err = stacks_read(&b->p->t, &b->p->maps, &b->p->mods, &s, d);

	if (err)
		return err;
	for (size_t i = 0; !err && i < s.n; i++)
		err = claim(b, CLAIM_STACK,
			    &(struct claim){ .start = s.v[i].lo,
					     .end = s.v[i].hi,
					     .owner = OWNER_THREAD_STACK,
					     .basis = s.v[i].exact ? BASIS_READ : BASIS_SHAPE,
					     .kind = s.v[i].tid ? "" : "of ended threads",
					     .id = s.v[i].tid ? s.v[i].tid : -1 });
	if (!err)
		err = claim_loader(b, s.main_tcb, PTHREAD_LEN);
	stacks_free(&s);
	return err ? diag_internal(d, err, "the owners of the mappings") : 0;
}

/* ---- glibc, as far as the maps tell */

/* An arena that changes while it is read, or that is damaged, is left to the maps. */
static int arena_ranges(const struct glibc_view *v, uint64_t at, unsigned index,
			struct glibc_ranges *out)
{
	struct glibc_arena a = { 0 };
	struct glibc_fault fault;
	int err = glibc_arena_read(v, at, index, &a);

	if (!err)
		err = glibc_arena_heaps(v, &a, &fault);
	for (size_t i = 0; !err && index > 0 && i < a.heaps; i++)
		err = glibc_ranges_add(out,
				       &(struct glibc_range){ .start = a.heap[i].at,
							      .end = a.heap[i].at + v->heap_max,
							      .owner = OWNER_GLIBC_ARENA,
							      .arena = (long)index,
							      .basis = BASIS_READ });
	glibc_arena_free(&a);
	return err == -EBADMSG || err == -ENODATA ? 0 : err;
}

static int ring_ranges(const struct glibc_view *v, struct glibc_ranges *out)
{
	struct glibc_ring ring;
	struct glibc_fault fault;
	int err = glibc_ring_read(v, &ring, &fault);

	if (err == -EBADMSG || err == -ENODATA)
		err = 0;
	for (size_t i = 0; !err && i < ring.n; i++)
		err = arena_ranges(v, ring.at[i], (unsigned)i, out);
	glibc_ring_free(&ring);
	return err;
}

/* Its own list of arenas, and what the maps show beside that: of two claims of one heap the one
 * that knows its number counts. */
static int claim_arenas(struct builder *b)
{
	const struct reader *r = peek_reader(b->heap.peek ? b->heap.peek : b->peek);
	struct glibc_ranges ranges;
	int err = glibc_ranges_from_maps(&b->m->smaps, r, &ranges);

	if (!err && b->heap.peek)
		err = ring_ranges(&b->heap.view, &ranges);
	if (!err)
		err = owner_claim_glibc(&b->m->facts, &ranges);
	glibc_ranges_free(&ranges);
	return err;
}

/* Writable anonymous memory that nobody has claimed so far. */
static int free_places(const struct owners *o, struct span **out, size_t *n)
{
	const int rw = PROT_READ | PROT_WRITE;

	*n = 0;
	*out = calloc(o->n ? o->n : 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		const struct piece *p = &o->v[i];

		if (p->owner == OWNER_UNCLAIMED && !p->row->map.shared && p->row->map.prot == rw)
			(*out)[(*n)++] = (struct span){ p->start, p->end };
	}
	return 0;
}

static int claim_blocks(struct builder *b, const struct owners *o)
{
	struct glibc_mmapped found;
	struct span *place;
	size_t n;
	int err = free_places(o, &place, &n);

	if (err)
		return err;
	err = glibc_mmapped_find(&b->heap.view, place, n, &found);
	for (size_t i = 0; !err && i < found.n; i++)
		err = owner_claim(&b->m->facts, CLAIM_ALLOCATOR,
				  &(struct claim){ .start = found.v[i].start,
						   .end = found.v[i].end,
						   .owner = OWNER_GLIBC_MMAPPED,
						   .basis = found.proven ? BASIS_READ : BASIS_SHAPE,
						   .kind = "",
						   .id = -1 });
	glibc_mmapped_free(&found);
	free(place);
	return err;
}

/* Blocks with a mapping of their own are looked for in what is nobody else's. */
static int claim_mmapped(struct builder *b)
{
	struct owners o;
	int err;

	if (!b->heap.peek || b->heap.view.par.n_mmaps <= 0)
		return 0;
	err = owners_assign(&b->m->smaps, &b->m->facts, &o);
	if (err)
		return err;
	err = claim_blocks(b, &o);
	owners_free(&o);
	return err;
}

static int open_heap(struct builder *b, struct diag *d)
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

/* ---- runtimes */

static int claim_runtime(struct builder *b, uint64_t lo, uint64_t hi, enum owner owner,
			 const char *kind)
{
	if (lo >= hi)
		return 0;
	return claim(b, CLAIM_RUNTIME,
		     &(struct claim){ .start = lo,
				      .end = hi,
				      .owner = owner,
				      .basis = BASIS_READ,
				      .kind = kind,
				      .id = -1 });
}

static int claim_java(struct builder *b, const struct module *mod)
{
	struct hotspot h;
	int err = hotspot_read(b->p->t.pid, mod, &h);

	if (err == -ENOENT)
		return 0;
	b->jvm = true;
	/* what cannot be read (the process has ended) claims nothing */
	if (err)
		return 0;
	err = claim_runtime(b, h.heap_lo, h.heap_hi, OWNER_JVM, "java heap");
	return err ? err : claim_runtime(b, h.code_lo, h.code_hi, OWNER_JVM, "code cache");
}

static int claim_go(struct builder *b, const struct module *mod)
{
	uint64_t chunk[CHUNKS_MAX];
	size_t n;
	int err = 0;

	if (!golang_module(mod))
		return 0;
	b->go = true;
	n = golang_chunks(b->p->t.pid, mod, chunk, b->chunks);
	b->chunks -= n;
	for (size_t i = 0; !err && i < n; i++)
		err = claim_runtime(b, chunk[i], chunk[i] + GOLANG_CHUNK, OWNER_GO_RUNTIME,
				    "other");
	return err;
}

static int claim_runtimes(struct builder *b)
{
	const struct modules *mods = &b->p->mods;
	int err = 0;

	for (size_t i = 0; !err && i < mods->n; i++) {
		err = claim_java(b, &mods->v[i]);
		if (!err)
			err = claim_go(b, &mods->v[i]);
	}
	return err;
}

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
};

static void decide_allocator(struct builder *b, struct owner_facts *f)
{
	const struct allocators *all = &b->p->allocs;
	const struct allocator *only = NULL;
	size_t used = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (!all->v[i].in_use)
			continue;
		used++;
		if (all->v[i].owns_malloc)
			only = &all->v[i];
	}
	if (!only)
		return;
	if (strcmp(only->ops->name, "glibc") == 0)
		f->brk = OWNER_GLIBC_MAIN;
	for (size_t i = 0; i < sizeof(mappers) / sizeof(mappers[0]); i++) {
		if (strcmp(only->ops->name, mappers[i].name) != 0)
			continue;
		/* jemalloc (dss) and tcmalloc ask for brk too; glibc's malloc is not reached */
		f->brk = mappers[i].owner;
		if (used == 1 && !b->jvm && !b->go) {
			b->rest = mappers[i].owner;
			b->rest_min = mappers[i].least;
		}
	}
}

/* Once all that is known is claimed. */
static void decide_rest(const struct builder *b, struct owner_facts *f)
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
	const struct builder *b = ctx;
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
static int claim_brk(struct builder *b)
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
			err = claim(b, CLAIM_ALLOCATOR, &c);
	}
	return err;
}

static int claim_all(struct builder *b, struct diag *d)
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
		err = claim_mmapped(b);
	return err;
}

static int build(struct builder *b, struct diag *d)
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
	struct builder b = { .p = p, .m = out, .chunks = CHUNKS_MAX, .rest = OWNER_UNCLAIMED };
	int err;

	memset(out, 0, sizeof(*out));
	owner_facts_init(&out->facts);
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
