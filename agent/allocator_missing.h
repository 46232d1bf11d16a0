// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_MISSING_H
#define HM_ALLOCATOR_MISSING_H
#include "allocator.h"

/* Says why an allocator that was found cannot be called (a->reach), and what would help: exit 5.
 * -ENOENT. */
int allocator_unreachable(const struct allocator *a, struct diag *d);
#endif
