// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char heading[] = "\nMAPPED_LIBRARIES:\n";

/* Behind the last heading; NULL where there is none. */
static const char *section(const char *text, size_t len)
{
	const char *at = text, *found = NULL;

	while ((at = memmem(at, len - (size_t)(at - text), heading, sizeof(heading) - 1))) {
		found = at + sizeof(heading) - 1;
		at++; /* its last character may begin another one */
	}
	return found;
}

/* "55d0c0000000-55d0c0021000 r-xp ..." */
static bool line_has(const char *line, size_t len, uint64_t addr)
{
	char range[40], *end;
	uint64_t start, stop;

	len = len < sizeof(range) - 1 ? len : sizeof(range) - 1;
	memcpy(range, line, len);
	range[len] = '\0';
	start = strtoull(range, &end, 16);
	if (*end != '-')
		return false;
	stop = strtoull(end + 1, &end, 16);
	return *end == ' ' && start <= addr && addr < stop;
}

bool dump_maps_have(const char *text, size_t len, uint64_t addr)
{
	const char *at = section(text, len), *end = text + len;

	while (at && at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((next ? next : end) - at);

		if (line_has(at, n, addr))
			return true;
		at = next ? next + 1 : end;
	}
	return false;
}

int dump_maps_put(char **text, size_t *len, const char *maps)
{
	const char *old = section(*text, *len);
	size_t keep = old ? (size_t)(old - *text) - (sizeof(heading) - 1) : *len;
	size_t more = strlen(maps);
	char *v;

	v = realloc(*text, keep + sizeof(heading) + more + *len - keep);
	if (!v)
		return -ENOMEM;
	memcpy(v + keep, heading, sizeof(heading) - 1);
	memcpy(v + keep + sizeof(heading) - 1, maps, more + 1);
	*text = v;
	*len = keep + sizeof(heading) - 1 + more;
	return 0;
}
