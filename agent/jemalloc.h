// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_H
#define HM_JEMALLOC_H
#include "mallctl.h"
#include "process.h"

/*
 * Reads name (old may be NULL), writes value (NULL: only read), refreshing the epoch first for
 * stats.*. A name with no data (CTL_VOID) is called: both NULL. "all" as index stands for all
 * arenas where jemalloc itself knows that index. old is what stood there before the write; its type
 * is CTL_VOID if nothing was read. Errors of mallctl come as exit 1 with a sentence for this return
 * code, name, version and build.
 */
HM_MUST_CHECK int jemalloc_ctl(struct process *p, const struct allocator *a, const char *name,
			       const struct ctl_name *row, const struct ctl_value *value,
			       struct ctl_value *old, struct diag *d);
/*
 * Purges arena index, or all of them (JEMALLOC_ALL). *rc is what mallctl returned; where it is not
 * 0 the result is -rc and d has the sentence. call (may be NULL) gets the name that was used.
 */
#define JEMALLOC_ALL (-1L)
HM_MUST_CHECK int jemalloc_purge(struct process *p, const struct allocator *a, long index, int *rc,
				 uint64_t *ns, char *call, size_t call_size, struct diag *d);
#endif
