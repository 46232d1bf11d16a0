// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct stats_part parts[] = {
	{ "general", 'g', 0, "version, build and options" },
	{ "merged", 'm', 0, "the sums over all arenas" },
	{ "destroyed", 'd', 0x050000, "the sums over destroyed arenas" },
	{ "arenas", 'a', 0, "each arena by itself" },
	{ "bins", 'b', 0, "size classes of small blocks" },
	{ "large", 'l', 0, "size classes of large blocks" },
	{ "mutexes", 'x', 0x050000, "locks and how long they were waited for" },
	{ "extents", 'e', 0x050200, "unused extents by size" },
	{ "hpa", 'h', 0x050300, "the huge page allocator" },
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

const struct stats_part *stats_parts(size_t *n)
{
	*n = PARTS;
	return parts;
}

const char *stats_words(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < PARTS && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
					 parts[i].word);
	return buf;
}

static const struct stats_part *part_find(const char *word, size_t len)
{
	for (size_t i = 0; i < PARTS; i++)
		if (strlen(parts[i].word) == len && !memcmp(parts[i].word, word, len))
			return &parts[i];
	return NULL;
}

static int unknown_word(const char *word, size_t len, struct diag *d)
{
	char all[160], hint[200];

	snprintf(hint, sizeof(hint), "words with commas between them: %s",
		 stats_words(all, sizeof(all)));
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", hint,
			 "--omit: statistics have no part '%.*s'", (int)(len < 40 ? len : 40),
			 word);
}

static int too_new(const struct stats_part *part, unsigned version, struct diag *d)
{
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "stats-part",
			 "leave that word away: this version does not print the part by itself",
			 "--omit %s came with jemalloc %u.%u, the target has %u.%u.%u", part->word,
			 part->since >> 16, part->since >> 8 & 0xff, version >> 16,
			 version >> 8 & 0xff, version & 0xff);
}

int stats_omit(const char *words, unsigned version, char *opts, size_t size, struct diag *d)
{
	size_t used = strlen(opts);

	for (;;) {
		size_t len = strcspn(words, ",");
		const struct stats_part *part = part_find(words, len);

		if (!part)
			return unknown_word(words, len, d);
		if (version && version < part->since)
			return too_new(part, version, d);
		if (!strchr(opts, part->letter) && used + 1 < size) {
			opts[used++] = part->letter;
			opts[used] = '\0';
		}
		if (!words[len])
			return 0;
		words += len + 1;
	}
}

int stats_letters(const char *letters, struct diag *d)
{
	if (strlen(letters) <= 32 && !letters[strspn(letters, "Jgmdablxeh")])
		return 0;
	return diag_fail(
		d, -EINVAL, HM_USAGE, "usage",
		"J for JSON; --omit takes words for the parts to leave out",
		"'%.40s' are no option letters of malloc_stats_print (J g m d a b l x e h)",
		letters);
}
