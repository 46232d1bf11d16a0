// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CALL_INTERNAL_H
#define HM_CALL_INTERNAL_H
#include <stdbool.h>

/*
 * Is a function, by its demangled name, one by which a program allocates, or inside an allocator?
 * What it calls is of no interest in a heap profile: those it was called by are. The names are
 * jeprof's list (allocation functions of C and C++, tcmalloc), jemalloc's own prefixes and Rust's
 * allocation shims.
 */
bool call_internal(const char *name);
/* Is this the path of a library that is an allocator, and nothing else? */
bool call_internal_file(const char *path);
#endif
