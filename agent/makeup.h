// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MAKEUP_H
#define HM_MAKEUP_H
#include "owners.h"
#include "verdict.h"

/* What a makeup is put together from. All in bytes; what is not known stays 0 with its flag. */
struct makeup_parts {
	uint64_t rss;
	uint64_t limit, room;	   /* see struct makeup */
	uint64_t resident[OWNERS]; /* each byte in one place only */

	bool glibc; /* its heap has been read; all four are of resident pages */
	uint64_t trimmable;
	uint64_t pinned;
	uint64_t stranded; /* free bytes on pages that a trim cannot return */
	uint64_t top;	   /* chunks at the end of arenas that it leaves alone */

	bool tcmalloc; /* it is in use */
	bool tcmalloc_asked;
	uint64_t tcmalloc_free;	  /* spans */
	uint64_t tcmalloc_cached; /* free objects: on spans with live ones, for the most part */
	uint64_t tcmalloc_heap;	  /* with memory behind it; as estimate below */

	bool jemalloc;	     /* it is in use */
	bool jemalloc_asked; /* and it has answered what is allocated and active */
	uint64_t allocated, active, purgeable; /* as it counts; 0 where it was not asked */
	uint64_t estimate; /* what it takes to be resident; for where the maps do not tell its
			      memory from others' */
};

void makeup_parts_init(struct makeup_parts *p);
/* Adds up what the pieces of each owner have resident. */
void makeup_count(const struct owners *o, uint64_t resident[OWNERS]);

/*
 * Pure: one place for each resident byte. The parts of an allocator are held inside of what it owns
 * by the maps, as the two are read one after the other: what is free first, the rest is live (also
 * an allocator's own books). An allocator that was not asked is unasked as a whole, and of a
 * jemalloc without statistics all that is not purgeable; one that cannot tell (mimalloc, musl) is
 * untold. Where jemalloc or tcmalloc is one of several its mappings cannot be told from others',
 * and what nobody claims may be its.
 */
void makeup_fill(const struct makeup_parts *p, struct makeup *out);
#endif
