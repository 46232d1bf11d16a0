// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_FAULT_H
#define HM_GLIBC_FAULT_H
#include <stddef.h>
#include <stdint.h>

/*
 * What stands in a heap where it cannot stand. While a heap is being changed its reader meets such
 * things as well: a fault is a suspicion until it has been seen again (glibc_check.h).
 */
enum glibc_fault_kind {
	FAULT_NONE,
	FAULT_RING,	 /* next of an arena leads to no arena */
	FAULT_HEAP,	 /* heap_info: not of this arena, or a size that no heap has */
	FAULT_TOP,	 /* the top chunk is in no heap of the arena */
	FAULT_TOP_SIZE,	 /* or does not end where the heap does */
	FAULT_LINK,	 /* a list leads out of the arena's heaps, or to no chunk */
	FAULT_LIST,	 /* a chunk is not linked back to where the list comes from */
	FAULT_SIZE,	 /* a size that no chunk has, or beyond the heap's end */
	FAULT_BIN,	 /* a free chunk in the list of another size */
	FAULT_PREV_SIZE, /* the chunk behind a free one tells another size of it, or calls it used
			  */
	FAULT_NEXTSIZE,	 /* the ring of sizes in a list of large chunks */
	FAULT_FASTBIN,	 /* an entry of a fastbin that is no chunk of its size */
	FAULT_LOOP,	 /* a fastbin or thread cache that never ends */
	FAULT_TCACHE,	 /* an entry of a thread cache that is no chunk of its size */
};

/* Which list or part of the arena it was met in. */
enum glibc_place { PLACE_RING, PLACE_HEAPS, PLACE_FASTBIN, PLACE_BIN, PLACE_CHUNKS, PLACE_TCACHE };

struct glibc_fault {
	enum glibc_fault_kind kind;
	enum glibc_place place;
	unsigned index;	   /* of the fastbin, bin, heap or cache list */
	unsigned arena;	   /* number in the ring, 0 is the main arena */
	uint64_t arena_at; /* its address */
	uint64_t at;	   /* the chunk, heap or arena */
	uint64_t value;	   /* what stands there */
	uint64_t want;	   /* what should; 0 where that is not one value */
};

/* What is wrong: "impossible size 0x4141414141414141". buf is returned. */
const char *glibc_fault_text(const struct glibc_fault *f, char *buf, size_t size);
/* "arena 2, bin 35, chunk 0x7f0000001230": where it is. */
const char *glibc_fault_where(const struct glibc_fault *f, char *buf, size_t size);
/* "list-broken": for scripts. */
const char *glibc_fault_name(enum glibc_fault_kind kind);
#endif
