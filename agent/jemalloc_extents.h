// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_EXTENTS_H
#define HM_JEMALLOC_EXTENTS_H
#include <stdbool.h>

#include "../inject/reader.h"
#include "allocator.h"

/* Whose mappings are a jemalloc's, read from its own tree of extents: nothing is called. */
struct jemalloc_extents {
	const struct reader *r;
	uint64_t root; /* of the tree, in the target */
};
/*
 * Finds the tree of a jemalloc from 5.0 on, by its symbol. -ENOENT: no symbol, or not of the size
 * that it has where addresses have 48 bits.
 */
HM_MUST_CHECK int jemalloc_extents_find(const struct allocator *a, const struct reader *r,
					struct jemalloc_extents *out);
/* Does an extent begin or end in the page of addr? */
bool jemalloc_extents_has(const struct jemalloc_extents *x, uint64_t addr);
/* Where its entry of the tree's second level is, in memory of jemalloc's own; 0 where there is
 * none. */
uint64_t jemalloc_extents_entry(const struct jemalloc_extents *x, uint64_t addr);
#endif
