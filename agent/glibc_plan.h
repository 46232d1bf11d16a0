// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PLAN_H
#define HM_GLIBC_PLAN_H
#include "../inject/pages.h"
#include "glibc_freemap.h"
#include "glibc_walk.h"

/*
 * What malloc_trim(pad) would give back, and what is on the pages that it would not: the free
 * chunks of all lists, merged as malloc_consolidate merges them, the formulas of mtrim and systrim
 * (malloc/malloc.c, the same from 2.17 to 2.43), and which pages are in memory.
 */

/*
 * Memory that a trim cannot give back: madvise(2) refuses locked and hugetlb mappings, and ends
 * there: what of the same range lies behind is not given back either.
 */
struct glibc_pinned {
	uint64_t start, end; /* of the mapping */
	bool hugetlb;	     /* else it is locked */
};

struct glibc_plan_opts {
	uint64_t pad;
	uint64_t brk;			   /* the program's break; 0: it has none */
	uint64_t step;			   /* mp_.thp_pagesize; 0: the break moves by pages */
	const struct glibc_pinned *pinned; /* by address */
	size_t pinned_n;
	uint64_t many; /* glibc_found.h; 0: what is quicker */
	/* Waits a little before an arena that looked wrong is read again; NULL: at once. */
	void (*wait)(void *ctx, uint64_t ns);
	void *ctx;
};

/* Bytes; each resident page of a heap is of one class. */
struct glibc_classes {
	uint64_t live;	    /* holds nothing that is free */
	uint64_t stranded;  /* holds free and used bytes, or less than what a trim returns */
	uint64_t trimmable; /* what a trim returns */
	uint64_t pinned;    /* it would, were none of the range locked or of huge pages */
	uint64_t top;	    /* of the chunk at the end that a trim leaves alone */
};

struct glibc_arena_plan {
	unsigned index;
	uint64_t at;
	uint64_t attached; /* threads */
	/* As malloc_info(3) counts: in_use = system_mem - free, thread caches are in use. Of the
	 * same reading as the pages. */
	uint64_t system_mem, in_use, free, top_bytes;
	struct glibc_classes pages;
	uint64_t resident;	  /* the sum of the classes */
	uint64_t chunks;	  /* free ones, as they are in the lists */
	uint64_t look_ns;	  /* that a trim needs for looking at them */
	uint64_t ranges;	  /* that a trim gives back one by one, resident or not */
	uint64_t from_top;	  /* the part of trimmable that lowers the break */
	uint64_t huge;		  /* the part of trimmable that is mapped as huge pages */
	uint64_t swapped;	  /* bytes in swap that a trim drops as well */
	uint64_t locked, hugetlb; /* the two parts of pinned */
	uint64_t free_resident;	  /* bytes of free chunks and top that are in memory */
	uint64_t stranded_bytes;  /* those of them that are on stranded pages */
	bool partial;		  /* the arena is not one piece: pages in use are not all known */
	bool moving;	  /* it was being changed during every reading: the numbers are near */
	bool swapped_out; /* a part of it is swapped out and was not read: they are too small */
	bool cut;	  /* the budget did not last, or something could not be read: the same */
	uint64_t stamp;	  /* of its header: another one, and it was changed since */
	struct glibc_fault fault; /* what stopped the reading; a suspicion, see glibc_check.h */
};

struct glibc_plan {
	struct glibc_arena_plan *arena; /* in the order of the ring */
	size_t arenas;
	struct glibc_arena_plan total; /* index, at, stamp and fault are not used */
	struct glibc_fault ring_fault; /* the ring ends here; kind 0: it is whole */
	bool ring_unread;	       /* a part of it is swapped out */
	struct glibc_par par;	       /* mmapped chunks and thresholds; at 0: not found */
	uint64_t estimate_ns;	       /* how long malloc_trim would take */
};

/* ---- of one arena whose heaps are read */
/* Ranges that are given back, by address. */
struct glibc_cuts {
	struct span *v;
	size_t n;
	uint64_t top;	   /* from this page on all is top, once everything is merged; 0: no page */
	uint64_t brk_from; /* from here on the break is lowered; 0: it is not */
};
/* How far in front of a page top has to begin for it to be given back: freemap.near. */
unsigned glibc_plan_near(uint64_t pad);
/* The ranges, where the free chunks of the lists and top are in m. *out is the caller's (free its
 * v). -ENOMEM. */
HM_MUST_CHECK int glibc_plan_cuts(const struct glibc_arena *a, const struct glibc_plan_opts *o,
				  const struct freemap *m, struct glibc_cuts *out);
/* Where a count of pages has got to; begins zeroed. Runs come by address. */
struct glibc_sweep {
	const struct glibc_arena *a;
	const struct glibc_plan_opts *o;
	const struct freemap *m;
	const struct glibc_cuts *cuts;
	size_t at_cut, at_pin, at_block;
	struct glibc_arena_plan *out;
};
/* Adds the pages [start, end), which have the same flags and are all inside of one heap, to out.
 * Returns 0. */
int glibc_sweep_run(struct glibc_sweep *s, uint64_t start, uint64_t end, unsigned flags);
#endif
