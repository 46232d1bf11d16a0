// SPDX-License-Identifier: GPL-3.0-or-later
#include "nearest.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORD 40

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment distance; both words are shorter than MAX_WORD. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_WORD + 1];
	size_t la = strlen(a), lb = strlen(b);

	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *now = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			now[j] =
				min3(up[j] + 1, now[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    up2[j - 2] + 1 < now[j])
				now[j] = up2[j - 2] + 1;
		}
	}
	return rows[la % 3][lb];
}

const char *nearest(const char *word, const char *(*next)(size_t i, const void *arg),
		    const void *arg)
{
	size_t len = strlen(word), best = len > 5 ? 3 : len > 2 ? 2 : 1;
	const char *found = NULL, *c;

	if (len == 0 || len >= MAX_WORD)
		return NULL;
	for (size_t i = 0; (c = next(i, arg)) != NULL; i++) {
		size_t dist;

		if (strlen(c) >= MAX_WORD)
			continue;
		dist = len >= 2 && strncmp(word, c, len) == 0 ? 1 : distance(word, c);
		if (dist < best || (dist == best && !found)) {
			best = dist;
			found = c;
		}
	}
	return found;
}

const char *nearest_option(const char *word, const char *(*next)(size_t i, const void *arg),
			   const void *arg)
{
	char name[MAX_WORD + 1];
	const char *bare = word + strspn(word, "-");

	snprintf(name, sizeof(name), "%s", bare);
	name[strcspn(name, "=")] = '\0';
	return nearest(name, next, arg);
}
