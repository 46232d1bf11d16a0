// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_ARENAS_H
#define HM_GLIBC_ARENAS_H
#include "glibc_check.h"
#include "glibc_plan_read.h"
#include "process.h"

/* All arenas of a glibc as they are now, and what malloc works by. */
struct glibc_arenas {
	struct glibc_plan plan; /* its arenas by size, largest first */
	uint64_t limit;		/* how many arenas it makes at most, 0: not known */
	unsigned cpus;		/* that the limit follows from; 0: from arena_max */
	unsigned allowed;	/* CPUs that it may run on, 0: not known */
};

/*
 * Reads the heap of a (glibc); nobody is held, no page is touched. What looks damaged is read
 * again: a fault that is left in an arena is damage (glibc_check.h), a suspicion that did not last
 * makes it a moving one. 0, and then the caller ends *out with glibc_arenas_free; -ENODATA where
 * nothing was ever allocated (d is not filled); else with d, exit 5 where the heap was not found.
 */
HM_MUST_CHECK int glibc_arenas_read(struct process *p, const struct allocator *a,
				    struct glibc_arenas *out, struct diag *d);
void glibc_arenas_free(struct glibc_arenas *a);
/*
 * Why there are none to read where glibc's malloc is not in use: exit 5 with the allocator that is,
 * or what keeps us from reading anything. Returns a negative errno.
 */
int glibc_arenas_none(const struct process *p, struct diag *d);

/*
 * Pure: how many arenas there can be at most. arena_max where it is set; else eight for each CPU,
 * counted once there are more than arena_test (malloc/arena.c, arena_get2): of those that are
 * online, from 2.34 on of those that the thread may run on. 0: does not follow, as the two differ,
 * or there are more already.
 */
uint64_t glibc_arena_limit(const struct glibc_par *par, size_t arenas, unsigned online,
			   unsigned allowed);
/*
 * Pure: what is left of the suspicions in plan after a check: found where it was confirmed, moving
 * where it is gone, cut where nobody has looked again.
 */
void glibc_arenas_judge(struct glibc_plan *plan, const struct glibc_check *check);
#endif
