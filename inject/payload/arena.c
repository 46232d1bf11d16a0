// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * glibc frees a thread's dtv when everything else of the thread has ended. From 2.27 to 2.33 that
 * free(3) gives a thread that has never allocated a thread cache, and for the cache an arena, and
 * both stay for good: what forbids a new cache at the end of a thread is done only where there was
 * one (glibc bug 28028). So a proxy gets a cache before, from the arena of the thread that created
 * it, and glibc gives it back like that of any other thread.
 */
#include "arena.h"

#include <stddef.h>

#define SOME_SIZE 200 /* a cache takes it, and no fastbin */

/* This thread's thread_arena; NULL where nobody needs it, or nobody knows where it is. */
static uint64_t *arena_slot(const struct hm_block *b)
{
	uint64_t tp;

	if (!b->fn_malloc || !b->fn_free || !b->arena_off)
		return NULL;
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return (uint64_t *)(tp - b->arena_off);
}

void arena_note(struct hm_block *b)
{
	const uint64_t *slot = arena_slot(b);

	if (slot && !b->arena)
		__atomic_store_n(&b->arena, *slot, __ATOMIC_SEQ_CST);
}

void arena_make_cache(const struct hm_block *b)
{
	void *(*alloc)(size_t) = (void *(*)(size_t))b->fn_malloc;
	void (*release)(void *) = (void (*)(void *))b->fn_free;
	uint64_t arena = __atomic_load_n(&b->arena, __ATOMIC_SEQ_CST);
	uint64_t *slot = arena_slot(b);

	/* an arena of its own: a call has allocated, and all is in order */
	if (!slot || !arena || *slot)
		return;
	*slot = arena;
	release(alloc(SOME_SIZE));
	/* Its threads are counted, and this one is not among them. Another one is there where
	 * that was full: glibc has counted that. */
	if (*slot == arena)
		*slot = 0;
}
