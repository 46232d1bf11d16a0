// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DEMANGLE_H
#define HM_DEMANGLE_H
#include <stdbool.h>
#include <stddef.h>

/*
 * The name as a programmer knows it: C++ (Itanium ABI), Rust (legacy, without its hash, and v0), by
 * libiberty. brief leaves out parameters and return types of C++. Always fills buf with a
 * NUL-terminated string; returns true if name was a mangled one that could be read and fits. Else
 * buf has the name itself, cut to size if need be: a name of more than 1024 characters is not
 * taken apart (libiberty's own limit on depth), nor is one that unfolds into more than size.
 *
 * Names are a target's claims: the time is bounded by size, the depth by libiberty. What comes out
 * may hold any byte of the name; who prints it escapes it.
 */
bool demangle(const char *name, bool brief, char *buf, size_t size);
#endif
