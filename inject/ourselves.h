// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OURSELVES_H
#define HM_OURSELVES_H
#include "diag.h"

/* What a seccomp filter on heapmedic itself makes of a system call that it depends on. */
enum self_call { SELF_ALLOWED, SELF_REFUSED, SELF_KILLED };

/*
 * The first system call that stands in our way: one that is refused and that nothing replaces, or
 * one that we would be killed for. Asked in a child, because the question may be deadly; nothing is
 * done where we have no filter. *name is static text, NULL with SELF_ALLOWED.
 */
enum self_call ourselves_obstacle(const char **name);
/* 0, or -EPERM with exit 4 and the name of the call. */
HM_MUST_CHECK int ourselves_check(struct diag *d);
/* Fills d with that cause. */
int ourselves_refused(const char *name, enum self_call how, struct diag *d);
#endif
