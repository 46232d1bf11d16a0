// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_H
#define HM_GLIBC_H
#include "mallopt.h"
#include "process.h"

/* glibc's allocator by calls. */
/*
 * malloc_info(0, FILE) through a FILE of our own; *xml is malloc'ed, NUL-terminated, the caller's.
 * In a direct session it may be cut at the size of the session's buffer: the parser flags that.
 */
HM_MUST_CHECK int glibc_malloc_info(struct process *p, const struct allocator *a, char **xml,
				    size_t *len, struct diag *d);
/*
 * mallopt(f->param, value) in the target. *rc is what it returned: 1, or 0 (refused), and then the
 * result is -EINVAL with exit 1. A value outside of the fact's limits is exit 2 and not tried.
 */
HM_MUST_CHECK int glibc_mallopt(struct process *p, const struct mallopt_fact *f, long value,
				int *rc, struct diag *d);
#endif
