// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_FOUND_H
#define HM_GLIBC_FOUND_H
#include "glibc_freemap.h"
#include "glibc_walk.h"

/* The free chunks of an arena, top not among them. */
struct glibc_found {
	struct freemap map;
	uint64_t chunks, bytes;
	uint64_t look_ns; /* how long malloc_trim would take to look at those that it looks at */
};

/*
 * Finds them by the arena's lists. Lists go to and fro: where there are many chunks, each of them
 * costs a page to be read. So behind `many` chunks (0: what is quicker) it begins anew and walks
 * over all chunks of the heaps, in use or not, which reads each page once, one behind the other. It
 * then finds that the lists are whole by what all of their links add up to; only that each chunk is
 * in the list of its size is not seen. Where that walk cannot be made (a heap that is not one
 * piece, is changing or damaged, or swapped out in part) the lists are walked to their ends.
 *
 * A budget in chunks is for lists only. A walk over the heaps has a limit of its own where there is
 * one in time: a few times what it needs, and b is extended by what it took.
 *
 * The errors are those of glibc_walk_lists; the fault is one of a list. *out begins zeroed but for
 * map.near; the caller ends it with freemap_free, also after an error.
 */
HM_MUST_CHECK int glibc_found_read(const struct glibc_view *v, const struct glibc_arena *a,
				   struct glibc_budget *b, uint64_t many, struct glibc_found *out,
				   struct glibc_fault *f);
#endif
