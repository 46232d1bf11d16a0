// SPDX-License-Identifier: GPL-3.0-or-later
#include "owners_claim.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../inject/pages.h"
#include "../inject/peek.h"
#include "../inject/stacks.h"
#include "glibc_arena.h"
#include "glibc_mmapped.h"
#include "golang.h"
#include "hotspot.h"
#include "jemalloc_extents.h"
#include "owners_glibc.h"

#define SMALL	    ((uint64_t)256 << 10) /* the loader's own allocations are not larger */
#define PLACES_MAX  32	  /* mappings whose place in a tree is looked up for each other one */
#define PTHREAD_LEN 2304U /* struct pthread */

int claim_range(struct claimer *b, enum claim_class class, const struct claim *c)
{
	int err = owner_claim(&b->m->facts, class, c);

	return err == -EINVAL ? 0 : err;
}

/* ---- libraries and their memory */

static int claim_bss(struct claimer *b, const struct module *mod)
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
		c.start = pages_ceil(mod->bias + seg[i].vaddr + seg[i].filesz);
		c.end = mod->bias + seg[i].vaddr + seg[i].memsz;
		if (c.start < c.end)
			err = claim_range(b, CLAIM_MODULE, &c);
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
static int claim_loader(struct claimer *b, uint64_t addr, uint64_t len)
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
	return claim_range(b, CLAIM_MODULE, &c);
}

int claim_modules(struct claimer *b)
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

int claim_stacks(struct claimer *b, struct diag *d)
{
	struct stacks s;
	int err = stacks_read(&b->p->t, &b->p->maps, &b->p->mods, &s, d);

	if (err)
		return err;
	for (size_t i = 0; !err && i < s.n; i++)
		err = claim_range(b, CLAIM_STACK,
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

static const struct reader *reader_of(const struct claimer *b)
{
	return peek_reader(b->heap.peek ? b->heap.peek : b->peek);
}

int claim_arenas(struct claimer *b)
{
	const struct reader *r = reader_of(b);
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

static int claim_blocks(struct claimer *b, const struct owners *o)
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

/* ---- a jemalloc beside the allocator that owns malloc */

/*
 * A mapping that begins and ends with an extent; and one that holds a part of the tree, which the
 * kernel may have merged with extents beside it. Others of jemalloc's own data stay unclaimed.
 */
static enum basis extents_basis(const struct jemalloc_extents *x, const struct span *place,
				size_t n, const struct span *s)
{
	if (jemalloc_extents_has(x, s->start) && jemalloc_extents_has(x, s->end - 1))
		return BASIS_READ;
	for (size_t i = 0; i < n && i < PLACES_MAX; i++) {
		uint64_t at = jemalloc_extents_entry(x, place[i].start);

		if (at >= s->start && at < s->end)
			return BASIS_SHAPE;
	}
	return BASIS_REST; /* not known to be its */
}

static int claim_extents(struct claimer *b, const struct jemalloc_extents *x,
			 const struct owners *o)
{
	struct span *place;
	size_t n;
	int err = free_places(o, &place, &n);

	if (err)
		return err;
	for (size_t i = 0; !err && i < n; i++) {
		struct claim c = { .start = place[i].start,
				   .end = place[i].end,
				   .owner = OWNER_JEMALLOC,
				   .basis = extents_basis(x, place, n, &place[i]),
				   .kind = "",
				   .id = -1 };

		if (c.basis != BASIS_REST)
			err = owner_claim(&b->m->facts, CLAIM_ALLOCATOR, &c);
	}
	free(place);
	return err;
}

/* Of one that owns malloc it is what is left (decide_rest). */
int claim_jemalloc(struct claimer *b)
{
	const struct allocators *all = &b->p->allocs;
	struct jemalloc_extents x;
	struct owners o;
	int err = 0;

	for (size_t i = 0; !err && i < all->n; i++) {
		const struct allocator *a = &all->v[i];

		if (a->ops != &jemalloc_ops || !a->in_use || a->owns_malloc ||
		    jemalloc_extents_find(a, reader_of(b), &x))
			continue;
		err = owners_assign(&b->m->smaps, &b->m->facts, &o);
		if (err)
			return err;
		err = claim_extents(b, &x, &o);
		owners_free(&o);
	}
	return err;
}

int claim_mmapped(struct claimer *b)
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

/* ---- runtimes */

static int claim_runtime(struct claimer *b, uint64_t lo, uint64_t hi, enum owner owner,
			 const char *kind)
{
	if (lo >= hi)
		return 0;
	return claim_range(b, CLAIM_RUNTIME,
			   &(struct claim){ .start = lo,
					    .end = hi,
					    .owner = owner,
					    .basis = BASIS_READ,
					    .kind = kind,
					    .id = -1 });
}

static int claim_java(struct claimer *b, const struct module *mod)
{
	struct hotspot h;
	int err = hotspot_read(b->p->t.pid, reader_of(b), mod, &h);

	if (err == -ENOENT)
		return 0;
	b->jvm = true;
	/* what cannot be read (the process has ended) claims nothing */
	if (err)
		return 0;
	err = claim_runtime(b, h.heap_lo, h.heap_hi, OWNER_JVM, "java heap");
	return err ? err : claim_runtime(b, h.code_lo, h.code_hi, OWNER_JVM, "code cache");
}

static int claim_go(struct claimer *b, const struct module *mod)
{
	uint64_t chunk[CHUNKS_MAX];
	size_t n;
	int err = 0;

	if (!golang_module(mod))
		return 0;
	b->go = true;
	n = golang_chunks(reader_of(b), mod, chunk, b->chunks);
	b->chunks -= n;
	for (size_t i = 0; !err && i < n; i++)
		err = claim_runtime(b, chunk[i], chunk[i] + GOLANG_CHUNK, OWNER_GO_RUNTIME,
				    "other");
	return err;
}

int claim_runtimes(struct claimer *b)
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
