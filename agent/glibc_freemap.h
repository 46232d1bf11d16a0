// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_FREEMAP_H
#define HM_GLIBC_FREEMAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * What of each page is free: 4 bytes a page, however many free chunks there are. That is enough to
 * know what malloc_trim does after malloc_consolidate has made one chunk of all neighbours: bytes
 * that are free and touch each other are then one chunk.
 */
#define FREEMAP_UNIT  16U /* bytes: chunks begin and end at multiples of it */
#define FREEMAP_PAGE  ((uint64_t)4096)
#define FREEMAP_PAGES 1024U /* of a block */
#define FREEMAP_BLOCK (FREEMAP_PAGES * FREEMAP_PAGE)
#define FREEMAP_FULL  (4096U / FREEMAP_UNIT)
#define FREEMAP_HEAD  3U /* units: sizeof(struct malloc_chunk), what mtrim keeps before a range */

struct freemap_page {
	unsigned free : 9; /* units; FREEMAP_FULL: all of it */
	unsigned tail : 2; /* of its last FREEMAP_HEAD units */
	unsigned near : 9; /* of its last freemap.near units */
};

struct freemap_block {
	uint64_t at;
	struct freemap_page *page; /* FREEMAP_PAGES; NULL: all of it is free */
};

struct freemap {
	struct freemap_block *block; /* by address; only those in which something is free */
	size_t blocks, cap;
	size_t last;   /* where something was added last */
	unsigned near; /* units, FREEMAP_FULL at most; set by the caller before the first chunk */
};

/*
 * [at, at + size), multiples of FREEMAP_UNIT, is free. What is added twice is counted twice, but no
 * page has more than it has room for. 0, -ENOMEM, -E2BIG where no heap can be so large. The caller
 * ends m, which begins zeroed, with freemap_free.
 */
HM_MUST_CHECK int freemap_add(struct freemap *m, uint64_t at, uint64_t size);
void freemap_free(struct freemap *m);
/*
 * The page at at; all zero where nothing of it is free. *hint is the block to look at first, 0 for
 * the first time: quick where addresses grow from call to call, right in any case.
 */
struct freemap_page freemap_page(const struct freemap *m, uint64_t at, size_t *hint);
/* Pure: of a page that is free as a whole. */
struct freemap_page freemap_full(const struct freemap *m);
#endif
