// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAYLOAD_ARENA_H
#define HM_PAYLOAD_ARENA_H
#include "abi.h"

/* The borrowed thread says which arena it has; again after pthread_create, which gives it one. */
void arena_note(struct hm_block *b);
/*
 * A proxy gets a thread cache, from the noted arena. Before its calls, so that it touches no page
 * that a trim has just returned; and at its end, should the arena not have been known before. Takes
 * that arena's lock, as pthread_create has done to allocate the dtv there.
 */
void arena_make_cache(const struct hm_block *b);
#endif
