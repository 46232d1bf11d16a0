// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_H
#define HM_JEMALLOC_H
#include "jemalloc_ctl.h"

/*
 * Purges arena index, or all of them (JEMALLOC_ALL). *rc is what mallctl returned; where it is not
 * 0 the result is -rc and d has the sentence. call (may be NULL) gets the name that was used.
 */
#define JEMALLOC_ALL (-1L)
HM_MUST_CHECK int jemalloc_purge(struct process *p, const struct allocator *a, long index, int *rc,
				 uint64_t *ns, char *call, size_t call_size, struct diag *d);
#endif
