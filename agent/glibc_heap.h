// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_HEAP_H
#define HM_GLIBC_HEAP_H
#include "glibc_walk.h"

/* How many, and how large together in bytes. */
struct glibc_sum {
	uint64_t count, bytes;
};

/*
 * One arena in numbers, as malloc_info(3) counts them: what thread caches hold is in use, fastbins
 * and top are free. in_use = system - free.
 */
struct glibc_arena_report {
	unsigned index;
	uint64_t at;
	uint64_t system_mem, max_system_mem;
	uint64_t in_use, free;			    /* bytes */
	struct glibc_sum fast, unsorted, bins, top; /* the parts of free */
	struct glibc_sum bin[GLIBC_BINS];	    /* by list; unsorted is 1 */
	uint64_t largest;			    /* free chunk, without top */
	size_t heaps;	   /* of a thread arena; 0 for the main arena, as malloc_info's subheaps */
	uint64_t attached; /* threads */
	bool moving;	   /* it was being changed during every reading: the numbers are near */
	bool swapped; /* a part of it is swapped out and was not read: the numbers are too small */
	bool cut;     /* the budget did not last */
	struct glibc_fault fault; /* what stopped the reading; a suspicion, see glibc_check.h */
};

struct glibc_report {
	struct glibc_arena_report *arena; /* in the order of the ring */
	size_t arenas;
	struct glibc_par par;	       /* mmapped chunks and thresholds; at 0: not found */
	struct glibc_fault ring_fault; /* the ring ends here; kind 0: it is whole */
};

/*
 * Reads all arenas, each until its header was the same before and after, at most a few times.
 * budget may be NULL. 0, -ESRCH, -ENOMEM; *out is the caller's (glibc_report_free), also after an
 * error.
 */
HM_MUST_CHECK int glibc_report_read(const struct glibc_view *v, const struct glibc_budget *budget,
				    struct glibc_report *out);
void glibc_report_free(struct glibc_report *r);
#endif
