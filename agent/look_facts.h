// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LOOK_FACTS_H
#define HM_LOOK_FACTS_H
#include "look.h"

/* The parts of look_take that fill l->facts. What cannot be read stays unknown. */

/* Of the kernel: memory, threads, faults, age, cgroup, and what the owners add up to. */
void look_facts_kernel(const struct process *p, struct look *l);
/* Those of COST_QUICK, and no others. 0, or with d where smaps_rollup cannot be read. */
HM_MUST_CHECK int look_facts_quick(const struct process *p, struct facts *f, struct diag *d);
/* Of glibc's heap, once it was read. 0, or with d: the process is gone, no memory. */
HM_MUST_CHECK int look_facts_glibc(const struct process *p, const struct allocator *a,
				   struct look *l, struct diag *d);
/* Asks l->jemalloc. 0, also where it does not answer; with d where nothing more can be asked. */
HM_MUST_CHECK int look_facts_jemalloc(struct process *p, struct look *l, struct diag *d);
#endif
