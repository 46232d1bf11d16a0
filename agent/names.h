// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_NAMES_H
#define HM_NAMES_H
#include <stddef.h>

/* Strings, each kept once, until all of them are given up together. */
struct names;

/* At most max bytes of strings are kept, whatever a hostile file has to say. NULL: no memory. */
struct names *names_new(size_t max);
void names_free(struct names *n); /* n may be NULL */
/*
 * The one copy of these len bytes, with a NUL behind them; it lives as long as n. Bytes behind a
 * NUL in s are kept, and part of what is compared. NULL: no memory, or max is reached.
 */
const char *names_add(struct names *n, const char *s, size_t len);
#endif
