// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_OTHER_H
#define HM_ALLOCATOR_OTHER_H
#include "allocator.h"

/* musl's own: recognised, so that the operator reads whose memory it is; it has nothing that could
 * be called. */
extern const struct allocator_ops musl_ops;
/* Whatever object defines the malloc that the program reaches, if it is none of the others. Never
 * detected by itself; its version is the name of that object. */
extern const struct allocator_ops unknown_ops;
#endif
