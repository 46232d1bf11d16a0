// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_COMPLETE_H
#define HM_COMPLETE_H
#include <stddef.h>
#include <sys/types.h>

#include "command.h"
#include "targets.h"

/* What completion knows of the target and of what else runs; each n may be 0. */
struct complete_env {
	const pid_t *tid;
	size_t tids;
	const struct running *running;
	size_t running_n;
	const unsigned *arena; /* numbers of jemalloc's */
	size_t arenas;
};

/* What the word that ends at cursor is about, so that only that has to be looked up. Pure. */
enum completion complete_about(const char *line, size_t cursor);

/*
 * Candidates for the word that ends at cursor in line, as malloc'ed strings behind one another,
 * sorted as their tables are; *start is where that word begins. Returns how many, at most max;
 * out[i] are the caller's. *files is set where a file name is wanted instead. Pure.
 */
size_t complete(const char *line, size_t cursor, const struct complete_env *env, char **out,
		size_t max, size_t *start, int *files);
#endif
