// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_SWEEP_H
#define HM_JEMALLOC_SWEEP_H
#include "ctl_path.h"
#include "jemalloc_mib.h"

/*
 * A name of many arenas or size classes: its number (mallctlnametomib) is asked for once, then each
 * of them by mallctlbymib, many to a batch. Only arenas that are initialised are asked: others have
 * no values, and are left as they are.
 */

/* Whatever a target says of itself, no sweep has more cells. */
#define SWEEP_CELLS_MAX 262144
/* Nor more classes where no name says how many there are. */
#define SWEEP_CLASSES_MAX 512

/* Which arenas there are. */
struct jemalloc_which {
	uint32_t index[JEMALLOC_ARENAS_MAX]; /* initialised, in order */
	size_t n;
	uint64_t narenas; /* slots, as jemalloc says */
	bool cut;	  /* it says more than there can be */
	bool has_huge;
	uint32_t huge; /* the automatic one for large blocks (opt.oversize_threshold), see below */
	uint64_t threshold; /* from how many bytes on */
	struct ctl_fresh fresh;
};
/*
 * Renews the epoch and reads which arenas are initialised: arena.<i>.initialized, before 5.0 those
 * that stats.arenas.<i>.nthreads answers for. The huge arena has the index behind the automatic
 * ones, opt.narenas of them, and exists where opt.oversize_threshold is not 0 (arena_init_huge,
 * since 5.2; jemalloc_sweep.c).
 */
HM_MUST_CHECK int jemalloc_which_read(struct process *p, const struct allocator *a,
				      struct jemalloc_which *out, struct diag *d);
/* Pure: which one that is. threshold is 0 where the option does not exist. */
bool jemalloc_huge_index(uint64_t narenas_auto, uint64_t threshold, uint64_t narenas,
			 uint32_t *out);

/* One answer. */
struct ctl_cell {
	uint64_t index[CTL_INDICES];
	int rc;			       /* 0, or what mallctl returned */
	const struct ctl_value *value; /* read; of a write what stood there before; NULL: nothing */
	const struct ctl_value *now;   /* what stands there after a write; NULL: not known */
};
typedef int ctl_cell_fn(void *arg, const struct ctl_cell *cell);

struct ctl_sweep {
	const struct jemalloc_which *which; /* in: the arenas, whose indices are swept over */
	const struct ctl_value *value;	    /* in: what to write; NULL: only read */
	bool skip_huge;			    /* in: leave that arena out */
	size_t cells;			    /* out: how many were answered */
	bool cut;			    /* out: there were more than the limits above */
	bool skipped;			    /* out: the huge arena was left out */
};
/*
 * name is one with `all` in at least one place. each is called for each cell, in order; what it
 * returns other than 0 ends the sweep and is returned, with d as it has filled it. Classes that are
 * not there end their row; an arena that has gone meanwhile is passed over.
 */
HM_MUST_CHECK int jemalloc_sweep(struct process *p, const struct allocator *a,
				 const struct ctl_path *path, struct ctl_sweep *s,
				 ctl_cell_fn *each, void *arg, struct diag *d);
#endif
