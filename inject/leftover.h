// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LEFTOVER_H
#define HM_LEFTOVER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "maps.h"
#include "payload/abi.h"
#include "session.h"

/* The thread that was borrowed for a region, as it is watched. */
struct lent {
	pid_t tid;    /* 0: none, or it is out of the region */
	uint64_t ran; /* its CPU time when it was first seen running, ns; 0: not yet */
};
/*
 * Pure. Where a running thread is nobody can see. One that was borrowed, and whose tracer has died,
 * may wait for a CPU with its way out of the region before it, for as long as the machine is busy:
 * it may be inside until it has been seen in another state, or has run for longer than the way
 * takes.
 */
bool leftover_may_be_inside(struct lent *l, char state, uint64_t ran_ns);

/*
 * What killed runs have left. range gets the address ranges that nobody uses any more, at most max;
 * *n how many. A region is in use while a thread named after us runs, a thread's stack pointer lies
 * in it, or its boot code has begun and not ended.
 */
HM_MUST_CHECK int leftover_find(const struct target *t, const struct maps *maps,
				struct hm_range *range, size_t max, size_t *n,
				struct leftovers *out);
#endif
