// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_extents.h"

#include <errno.h>
#include <stdio.h>

/*
 * jemalloc, rtree.h: a tree of two levels, keyed by the address of a page (48 bits less 12). The
 * root is a table in its data, the leaves are made when they are needed. An extent has an entry for
 * its first and its last page; what has none has 0. The root is the last member of the structure
 * that the symbol names, behind a lock whose size depends on the build.
 */
#define LG_PAGE	   12
#define LEVEL_BITS 18
#define ENTRIES	   ((uint64_t)1 << LEVEL_BITS)
#define ROOT_SIZE  (ENTRIES * sizeof(uint64_t))
#define HEAD_MAX   4096 /* of the structure before the root */

static int find_root(const struct allocator *a, const char *prefix, const char *name,
		     uint64_t *root)
{
	char full[64];
	struct symbol s;

	snprintf(full, sizeof(full), "%sje_%s", prefix, name);
	if (module_symbol(a->mod, full, &s) || s.size < ROOT_SIZE || s.size > ROOT_SIZE + HEAD_MAX)
		return -ENOENT;
	*root = s.addr + s.size - ROOT_SIZE;
	return *root % sizeof(uint64_t) ? -ENOENT : 0;
}

int jemalloc_extents_find(const struct allocator *a, const struct reader *r,
			  struct jemalloc_extents *out)
{
	/* 5.3, and before */
	static const char *const names[] = { "arena_emap_global", "extents_rtree" };

	*out = (struct jemalloc_extents){ .r = r };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		/* objcopy may have given a prefix to what is exported alone */
		if (find_root(a, a->prefix, names[i], &out->root) == 0 ||
		    find_root(a, "", names[i], &out->root) == 0)
			return 0;
	return -ENOENT;
}

uint64_t jemalloc_extents_entry(const struct jemalloc_extents *x, uint64_t addr)
{
	uint64_t i = addr >> (LG_PAGE + LEVEL_BITS), k = addr >> LG_PAGE & (ENTRIES - 1), leaf;

	if (i >= ENTRIES || x->r->read(x->r->ctx, x->root + i * sizeof(leaf), &leaf, sizeof(leaf)))
		return 0;
	return leaf && leaf % sizeof(leaf) == 0 ? leaf + k * sizeof(leaf) : 0;
}

bool jemalloc_extents_has(const struct jemalloc_extents *x, uint64_t addr)
{
	uint64_t at = jemalloc_extents_entry(x, addr), entry;

	return at && x->r->read(x->r->ctx, at, &entry, sizeof(entry)) == 0 && entry;
}
