// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_MISSING_H
#define HM_JEMALLOC_MISSING_H
#include "allocator.h"

/* Says why a jemalloc that was found cannot be called, and what would help: exit 5. -ENOENT. */
int jemalloc_unreachable(const struct allocator *a, struct diag *d);
#endif
