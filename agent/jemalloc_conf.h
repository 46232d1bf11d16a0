// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_CONF_H
#define HM_JEMALLOC_CONF_H
#include "allocator.h"

/*
 * The environment variable that this jemalloc reads its options from. jemalloc's build derives it
 * from the prefix of its functions (advice_conf_name); whoever gave them a prefix afterwards
 * (objcopy, ld) did not change it. So the derived name is taken where the file has it as a string,
 * or cannot be read, else the plain one. Reads at most 256 MiB of the file. Returns buf.
 */
const char *jemalloc_conf_name(const struct allocator *a, char *buf, size_t size);
#endif
