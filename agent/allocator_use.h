// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_USE_H
#define HM_ALLOCATOR_USE_H
#include "allocator.h"

/*
 * Does somebody reach the allocator in mod that is not (or not only) the process's malloc? Sets
 * in_use of *a where what it is linked into keeps it to itself (its malloc is not exported, or the
 * object looks into itself first), or where another object asks the dynamic linker for one of its
 * own names (NULL ends them): an allocator that is only mapped must not be asked. Sets linkage to
 * static where it is no library of its own; word is what the names of such begin with, behind
 * "lib".
 */
void allocator_use(const struct process *p, const struct module *mod, const char *word,
		   const char *const *names, struct allocator *a);
#endif
