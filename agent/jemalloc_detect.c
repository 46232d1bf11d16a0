// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_detect.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_MAX  (256UL << 20) /* bytes of one file */
#define SEARCH_STEP (256UL << 10)
#define TEXT_MAX    64 /* longest version string looked for, with its NUL */

bool jemalloc_prefix(const struct module *mod, char *prefix, size_t size)
{
	static const char *const prefixes[] = { "", "je_", "_rjem_", "_rjem_je_", "jemalloc_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		char name[32];
		struct symbol s;

		snprintf(name, sizeof(name), "%smallctl", prefixes[i]);
		if (module_symbol(mod, name, &s) < 0)
			continue;
		snprintf(prefix, size, "%s", prefixes[i]);
		return true;
	}
	return false;
}

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
		char text[TEXT_MAX];
		size_t n;

		while (start > data && start[-1] && s - start < TEXT_MAX)
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

/* Pieces overlap by TEXT_MAX bytes, so that a string on a border is whole in one of them. */
static int segment_search(const struct module *mod, const struct elf_segment *seg, char *piece,
			  size_t *budget, char *buf, size_t size)
{
	for (uint64_t at = 0; at < seg->filesz && *budget; at += SEARCH_STEP - TEXT_MAX) {
		size_t n =
			seg->filesz - at < SEARCH_STEP ? (size_t)(seg->filesz - at) : SEARCH_STEP;

		if (n > *budget)
			n = *budget;
		*budget -= n;
		if (elf_file_read(mod->elf, seg->vaddr + at, piece, n) < 0)
			return -ENOENT;
		if (jemalloc_version_find(piece, n, buf, size) == 0)
			return 0;
	}
	return -ENOENT;
}

int jemalloc_passive_version(const struct module *mod, char *buf, size_t size)
{
	const struct elf_segment *seg;
	size_t n, budget = SEARCH_MAX;
	char *piece;
	int rc = -ENOENT;

	if (!mod->elf)
		return -ENOENT;
	piece = malloc(SEARCH_STEP);
	if (!piece)
		return -ENOMEM;
	n = elf_file_segments(mod->elf, &seg);
	/* Read-only data first, then text: old linkers put both into one segment. */
	for (unsigned want = PF_R;; want |= PF_X) {
		for (size_t i = 0; i < n && rc < 0; i++)
			if (seg[i].type == PT_LOAD && seg[i].flags == want)
				rc = segment_search(mod, &seg[i], piece, &budget, buf, size);
		if (want & PF_X)
			break;
	}
	free(piece);
	return rc;
}
