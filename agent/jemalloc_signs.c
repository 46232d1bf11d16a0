// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_signs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Digits from *s on (one to max of them); moves *s behind them. */
static bool digits(const char **s, size_t max)
{
	size_t n = strspn(*s, "0123456789");

	*s += n;
	return n >= 1 && n <= max;
}

/* "M.N.P-C-gHASH", all of s; at_count is where C starts, after_count where it ends. */
static bool is_version(const char *s, const char **at_count, const char **after_count)
{
	/* Releases are 3.x to 5.x so far; a count of commits in front of a hash is git's. */
	if (*s < '3' || *s > '9')
		return false;
	if (!digits(&s, 1) || *s++ != '.' || !digits(&s, 2) || *s++ != '.' || !digits(&s, 3) ||
	    *s++ != '-')
		return false;
	*at_count = s;
	if (!digits(&s, 6) || s[0] != '-' || s[1] != 'g')
		return false;
	*after_count = s;
	s += 2;
	return *s && !s[strspn(s, "0123456789abcdef")];
}

void jemalloc_version_shorten(const char *text, char *buf, size_t size)
{
	const char *count, *end;

	if (!is_version(text, &count, &end))
		snprintf(buf, size, "%s", text);
	else if (end - count == 1 && *count == '0')
		snprintf(buf, size, "%.*s", (int)(count - 1 - text), text);
	else
		snprintf(buf, size, "%.*s", (int)(end - text), text);
}

int jemalloc_version_find(const char *data, size_t len, char *buf, size_t size)
{
	const char *end = data + len;

	/* Each string that has "-g" in it, between two NUL bytes. */
	for (const char *s = data; (s = memmem(s, (size_t)(end - s), "-g", 2)); s += 2) {
		const char *count, *after, *start = s;
		char text[JEMALLOC_SIGN_MAX];
		size_t n;

		while (start > data && start[-1] && s - start < JEMALLOC_SIGN_MAX)
			start--;
		if (start == data || start[-1])
			continue;
		n = strnlen(start, (size_t)(end - start));
		if (n >= sizeof(text) || start + n == end)
			continue;
		memcpy(text, start, n + 1);
		if (!is_version(text, &count, &after))
			continue;
		jemalloc_version_shorten(text, buf, size);
		return 0;
	}
	return -ENOENT;
}

/* Letters that a macro's name has: configure makes it of the prefix, in capitals. */
static bool is_of_name(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/*
 * The name may be the end of another string: ld keeps one of two that end alike. One with a prefix
 * counts more than one without: 5.3 has the plain name in a text, whatever its own name is.
 */
static void take_conf(const char *data, size_t len, struct jemalloc_signs *s)
{
	static const char word[] = "MALLOC_CONF";
	const size_t n = sizeof(word) - 1;

	for (const char *at = data; (at = memmem(at, len - (size_t)(at - data), word, n));
	     at += n) {
		const char *start = at;
		size_t k;

		if (at + n == data + len || at[n])
			continue;
		while (start > data && is_of_name(start[-1]))
			start--;
		if ((size_t)(at - start) >= sizeof(s->prefix))
			continue;
		for (k = 0; start + k < at; k++)
			s->prefix[k] = (char)tolower((unsigned char)start[k]);
		s->prefix[k] = '\0';
		s->conf = true;
		if (k)
			return;
	}
}

void jemalloc_signs_add(const char *data, size_t len, struct jemalloc_signs *s)
{
	static const char message[] = "<jemalloc>: ";

	if (!s->messages)
		s->messages = memmem(data, len, message, sizeof(message) - 1) != NULL;
	if (!s->conf || !s->prefix[0])
		take_conf(data, len, s);
	if (!s->version[0] && jemalloc_version_find(data, len, s->version, sizeof(s->version)) < 0)
		s->version[0] = '\0';
}
