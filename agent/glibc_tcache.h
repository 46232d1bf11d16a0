// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_TCACHE_H
#define HM_GLIBC_TCACHE_H
#include "glibc_arena.h"

/* A thread's cache of freed blocks (tcache_perthread_struct). */
struct glibc_tcache {
	uint64_t at; /* of the struct */
	const struct glibc_tcache_row *row;
	uint64_t blocks, bytes; /* that it holds; they count as in use everywhere else */
};

/*
 * Reads the cache whose struct begins at `at`, where a thread's own pointer leads to, and walks its
 * lists; what they hold may be of any arena. It may be empty. A list that cannot be as it is
 * (-EBADMSG) may just be changing. left counts down the blocks that may still be walked over;
 * -E2BIG when they are used up. 0; -ENOENT if there is no cache of a layout that the version
 * allows; -ENODATA; -ESRCH.
 */
HM_MUST_CHECK int glibc_tcache_of(const struct glibc_view *v, uint64_t at, uint64_t *left,
				  struct glibc_tcache *out);
/* Could a cache begin at `at`, also an empty one? 0 if so, else -ENOENT; -ENODATA where that is
 * swapped out; -ESRCH. */
HM_MUST_CHECK int glibc_tcache_probe(const struct glibc_view *v, uint64_t at);
/*
 * Could a cache begin at `at`: a chunk of its size, whose counters and list heads agree? in_use:
 * one that holds something, and whose lists begin with blocks of their sizes.
 */
bool glibc_tcache_is(const struct glibc_view *v, uint64_t at, bool in_use);
/*
 * The cache of the thread that has made the arena: its first chunk. 0 also where that is none, or
 * the thread has ended and its place was used again.
 */
HM_MUST_CHECK int glibc_tcache_check(const struct glibc_view *v, const struct glibc_arena *a,
				     struct glibc_fault *f);
#endif
