// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ALLOCATOR_TEXT_H
#define HM_ALLOCATOR_TEXT_H
#include "commands.h"

struct allocators;

/* One line for each, as `check` has them. */
void allocators_print(const struct context *c, const struct allocators *v);
/* [{"name", "version", ...}]: those that were found in the process. */
json_t *allocators_json(struct reply *r, const struct allocators *v);
/* Warns of each that is in use and cannot be called: why, and what helps. */
void allocators_warn(struct context *c, struct reply *r, const struct allocators *v);
#endif
