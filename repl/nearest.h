// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_NEAREST_H
#define HM_NEAREST_H
#include <stddef.h>

/*
 * The candidate that is most like word, for "did you mean": the smallest edit distance (a swap of
 * two neighbours counts once), a candidate that word begins counts as near. NULL if none is near
 * enough to be a likely typing error. next returns the i-th candidate, or NULL at the end. Pure.
 */
const char *nearest(const char *word, const char *(*next)(size_t i, const void *arg),
		    const void *arg);
/* The same for an option as it was typed: without its dashes and without "=VALUE". */
const char *nearest_option(const char *word, const char *(*next)(size_t i, const void *arg),
			   const void *arg);
#endif
