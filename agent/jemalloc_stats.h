// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_STATS_H
#define HM_JEMALLOC_STATS_H
#include <stddef.h>

#include "../inject/diag.h"

/*
 * What malloc_stats_print can leave out, by words: each is a letter of its option string (jemalloc,
 * include/jemalloc/internal/stats.h; before 5.0 src/stats.c). A letter that a version does not know
 * is passed over in silence there, or means something else. Pure.
 */
struct stats_part {
	const char *word;
	char letter;
	unsigned since; /* 0x050200; 0: all */
	const char *meaning;
};
const struct stats_part *stats_parts(size_t *n);

/*
 * "bins,large" to "bl", behind what opts holds already (size: of opts). version 0: not known, any
 * letter is taken. Exit 2 for a word that is none, exit 5 for one that came later.
 */
HM_MUST_CHECK int stats_omit(const char *words, unsigned version, char *opts, size_t size,
			     struct diag *d);
/* Are these letters of such an option string? Exit 2 if not. */
HM_MUST_CHECK int stats_letters(const char *letters, struct diag *d);
/* "general merged ...", all of them, for messages. */
const char *stats_words(char *buf, size_t size);
#endif
