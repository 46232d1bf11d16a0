// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_USERNS_H
#define HM_USERNS_H
#include <stdbool.h>

#include "permit.h"

/*
 * Fills the user namespace facts of p: ours, that of the process, its owner, and how they lie to
 * each other, by the calls of ioctl_ns(2). The links of a process that we may not look into are
 * closed to us; then its uid_map, which everybody may read, at least proves that it is another one.
 */
void userns_read(const struct target *t, struct permit *p);
#endif
