// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_WALK_H
#define HM_GLIBC_WALK_H
#include "glibc_arena.h"

/* What a walk may cost; counts down. */
struct glibc_budget {
	uint64_t chunks;    /* that may still be visited */
	uint64_t until;	    /* CLOCK_MONOTONIC ns, 0: no limit */
	uint64_t until_cpu; /* clock_cpu ns, 0: no limit */
	uint64_t visited;
};

/* One chunk of a list, or of a heap. */
struct glibc_visit {
	enum glibc_place place;
	unsigned index; /* of the list, or heap */
	uint64_t at, size;
	bool used; /* PLACE_CHUNKS: not free; what a fastbin or thread cache holds counts as used */
};
typedef void (*glibc_visit_fn)(void *arg, const struct glibc_visit *c);

/*
 * Each walks one list or heap of a (with its heaps read) and looks at all that it passes. fn may be
 * NULL. 0; -EBADMSG when something cannot be as it is: f is filled, what came before was visited;
 * -E2BIG when the budget is used up; -ENODATA when something is swapped out; -ESRCH.
 */
/* A bin's chunks: links, sizes, what the next chunk says, the ring of sizes. i is 1 to 127. */
HM_MUST_CHECK int glibc_walk_bin(const struct glibc_view *v, const struct glibc_arena *a,
				 unsigned i, struct glibc_budget *b, glibc_visit_fn fn, void *arg,
				 struct glibc_fault *f);
/* A fastbin's, and the free neighbours that they will be merged with. */
HM_MUST_CHECK int glibc_walk_fastbin(const struct glibc_view *v, const struct glibc_arena *a,
				     unsigned i, struct glibc_budget *b, glibc_visit_fn fn,
				     void *arg, struct glibc_fault *f);
/* All fastbins, then all bins; the first error ends it. */
HM_MUST_CHECK int glibc_walk_lists(const struct glibc_view *v, const struct glibc_arena *a,
				   struct glibc_budget *b, glibc_visit_fn fn, void *arg,
				   struct glibc_fault *f);
/*
 * Every chunk of heap i, from its first to top or to its end. *whole is false where foreign memory
 * in the main heap (sbrk(2) by others) ended the walk early.
 */
HM_MUST_CHECK int glibc_walk_chunks(const struct glibc_view *v, const struct glibc_arena *a,
				    size_t i, struct glibc_budget *b, glibc_visit_fn fn, void *arg,
				    bool *whole, struct glibc_fault *f);
/* Pure: the pointer that a link at address field stands for. */
uint64_t glibc_link_decode(enum glibc_links links, uint64_t field, uint64_t stored);
#endif
