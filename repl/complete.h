// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_COMPLETE_H
#define HM_COMPLETE_H
#include <stddef.h>
#include <sys/types.h>

/* What completion knows of the target; n may be 0. */
struct complete_env {
	const pid_t *tid;
	size_t n;
};

/*
 * Candidates for the word that ends at cursor in line, as malloc'ed strings behind one another,
 * sorted as their tables are; *start is where that word begins. Returns how many, at most max;
 * out[i] are the caller's. *files is set where a file name is wanted instead. Pure.
 */
size_t complete(const char *line, size_t cursor, const struct complete_env *env, char **out,
		size_t max, size_t *start, int *files);
#endif
