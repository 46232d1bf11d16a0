// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_ARENAS_H
#define HM_JEMALLOC_ARENAS_H
#include "jemalloc_sweep.h"

#define JEMALLOC_BYTES_MAX ((uint64_t)1 << 47) /* an address space without five-level paging */

/* What jemalloc says of one arena: bytes, of one epoch. known says which of them it has told. */
enum jemalloc_figure {
	JEM_ALLOCATED, /* by the program, thread caches included */
	JEM_ACTIVE,    /* in pages that hold allocations */
	JEM_DIRTY,     /* unused pages that still have memory: a purge returns them */
	JEM_MUZZY,    /* unused pages lazily freed (MADV_FREE): gone once the kernel needs memory */
	JEM_RETAINED, /* address space without memory */
	JEM_MAPPED,
	JEM_RESIDENT, /* as jemalloc estimates it, an upper bound */
	JEM_METADATA, /* its books about this arena */
	JEM_TCACHE,   /* idle in thread caches, part of allocated */
	JEM_THREADS,
	JEM_DIRTY_DECAY, /* milliseconds; -1 never */
	JEM_MUZZY_DECAY,
	JEM_FIGURES
};
struct jemalloc_arena {
	uint32_t index;
	uint32_t known; /* 1 << enum jemalloc_figure */
	int64_t v[JEM_FIGURES];
	bool huge;	 /* the automatic one for large blocks */
	bool impossible; /* a number was larger than an address space: it is left out */
};
struct jemalloc_arenas {
	struct jemalloc_arena *v; /* those that are initialised, most active first */
	size_t n;
	struct jemalloc_arena total; /* of what all of them have told */
	uint64_t narenas;	     /* slots */
	uint64_t page;
	uint64_t
		threshold; /* from this size on blocks come from the huge arena; 0: there is none */
	bool cut;	   /* there are more than can be */
	struct ctl_fresh fresh;
};

/*
 * Asks jemalloc, after its epoch was renewed: only about arenas that are initialised. What it does
 * not have (a version, a build) is not known. The caller ends *out with jemalloc_arenas_free.
 */
HM_MUST_CHECK int jemalloc_arenas_read(struct process *p, const struct allocator *a,
				       struct jemalloc_arenas *out, struct diag *d);
void jemalloc_arenas_free(struct jemalloc_arenas *a);
const char *jemalloc_figure_name(enum jemalloc_figure f); /* "allocated", "dirty_decay_ms" */
/* The figure, and whether it is known; 0 if not. */
bool jemalloc_figure(const struct jemalloc_arena *a, enum jemalloc_figure f, int64_t *v);

/*
 * Pure. Sets one figure from what a name has said: pages of page bytes (0: bytes), added to what
 * is there already. Not known, and impossible, if it is more than 2^47, what a process can map.
 */
void jemalloc_arena_add(struct jemalloc_arena *a, enum jemalloc_figure f, uint64_t n,
			uint64_t page);
/* Pure. Sums up; a figure that one arena has not told is not known of all. */
void jemalloc_arenas_sum(struct jemalloc_arenas *a);
/* Pure. Why they are not shown where none was asked: exit 4. Returns -EPERM. */
int jemalloc_arenas_unasked(const char *why, struct diag *d);
#endif
