// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_OWN_H
#define LIVE_OWN_H
#include <jansson.h>

#include "victim.h"

/* What a victim's malloc says of itself (victims/numbers.h). */
#define OWN_ARENAS 1024
struct own_arena {
	unsigned long long system, fast;
	unsigned long long least, most; /* that is free; the same in the main arena */
};
struct own {
	int bits; /* how wide the numbers of mallinfo are */
	unsigned long long arena, used, free, mapped, blocks, top;
	unsigned long long cached; /* what its threads' caches have taken, if it knows: else 0 */
	struct own_arena heap[OWN_ARENAS]; /* of malloc_info, in the order of the ring */
	size_t arenas;
	unsigned long long info_mapped, info_blocks;
};

/* Asks a victim that has such numbers. */
void own_read(struct victim *v, struct own *o);
/* Requires that answers of `arenas` and `facts` are the same to the byte. */
void own_check_arenas(const struct own *own, json_t *arenas);
void own_check_facts(const struct own *own, json_t *facts);
/* All of it: asks the victim, then heapmedic for arenas, facts and maps, and compares. */
void own_check(struct victim *v);
/*
 * What `threads` and `facts` say of thread caches, against what the victim has seen itself: what
 * did not come back when it freed, of all threads together. each: of each thread, -1 as it comes.
 */
void own_check_caches(struct victim *v, long long each);
#endif
