// SPDX-License-Identifier: GPL-3.0-or-later
#include "environ.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRON_MAX ((size_t)8 << 20)

int environ_read(const struct target *t, struct environ *e)
{
	memset(e, 0, sizeof(*e));
	return proc_read(t->procfd, "environ", ENVIRON_MAX, &e->text, &e->len);
}

void environ_free(struct environ *e)
{
	free(e->text);
	memset(e, 0, sizeof(*e));
}

const char *environ_get(const struct environ *e, const char *name)
{
	size_t n = strlen(name);

	/* the text ends with a NUL of its own behind the last byte */
	for (size_t at = 0; at < e->len; at += strlen(e->text + at) + 1)
		if (strncmp(e->text + at, name, n) == 0 && e->text[at + n] == '=')
			return e->text + at + n + 1;
	return NULL;
}

/* All of [text, end): decimal, 0x hexadecimal, 0 octal. */
static int number_parse(const char *text, const char *end, uint64_t *value)
{
	unsigned long long v;
	char *rest;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &rest, 0);
	if (rest != end || errno)
		return -EINVAL;
	*value = v;
	return 0;
}

int tunable_get(const char *tunables, const char *name, uint64_t *value)
{
	size_t n = strlen(name);
	int rc = -ENOENT;

	for (const char *at = tunables; *at;) {
		const char *end = strchrnul(at, ':');

		if (strncmp(at, name, n) == 0 && at[n] == '=' &&
		    number_parse(at + n + 1, end, value) == 0)
			rc = 0;
		at = *end ? end + 1 : end;
	}
	return rc;
}

int arena_max_get(const struct environ *e, uint64_t *n, bool *tunable)
{
	const char *all = environ_get(e, "GLIBC_TUNABLES");
	const char *own = environ_get(e, "MALLOC_ARENA_MAX");

	*tunable = all && tunable_get(all, "glibc.malloc.arena_max", n) == 0 && *n > 0;
	if (*tunable)
		return 0;
	if (own && number_parse(own, own + strlen(own), n) == 0 && *n > 0)
		return 0;
	return -ENOENT;
}

int gogc_parse(const char *text, int *percent)
{
	char *end;
	long v;

	if (strcmp(text, "off") == 0) {
		*percent = -1;
		return 0;
	}
	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end || errno || v < INT32_MIN || v > INT32_MAX)
		return -EINVAL;
	*percent = v < 0 ? -1 : (int)v;
	return 0;
}

int gomemlimit_parse(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = { { "", 0 },     { "B", 0 },    { "KiB", 10 },
		      { "MiB", 20 }, { "GiB", 30 }, { "TiB", 40 } };
	unsigned long long v;
	char *end;

	if (strcmp(text, "off") == 0) {
		*bytes = UINT64_MAX;
		return 0;
	}
	errno = 0;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	v = strtoull(text, &end, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		if (errno || v > (uint64_t)INT64_MAX >> units[i].shift)
			return -EINVAL;
		*bytes = (uint64_t)v << units[i].shift;
		return 0;
	}
	return -EINVAL;
}
