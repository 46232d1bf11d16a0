// SPDX-License-Identifier: GPL-3.0-or-later
#include "usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maps.h"

/* smaps_rollup is a page; smaps needs about 1.3 KiB for each mapping. */
#define SMAPS_MAX ((size_t)512 << 20)

static const struct {
	const char *key;
	size_t offset;
} fields[] = {
	{ "Rss:", offsetof(struct usage, rss) },
	{ "Pss:", offsetof(struct usage, pss) },
	{ "Pss_Anon:", offsetof(struct usage, pss_anon) },
	{ "Anonymous:", offsetof(struct usage, anon) },
	{ "Swap:", offsetof(struct usage, swap) },
	{ "LazyFree:", offsetof(struct usage, lazyfree) },
	{ "Locked:", offsetof(struct usage, locked) },
	{ "AnonHugePages:", offsetof(struct usage, anon_huge) },
	{ "ShmemPmdMapped:", offsetof(struct usage, shmem_huge) },
	{ "Private_Dirty:", offsetof(struct usage, private_dirty) },
	{ "Private_Hugetlb:", offsetof(struct usage, hugetlb) },
	{ "Shared_Hugetlb:", offsetof(struct usage, hugetlb) },
};

int usage_add_kb(const char *s, uint64_t *sum)
{
	uint64_t kb = 0, total;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (kb > UINT64_MAX / 10240 - 1)
			return -EINVAL;
		kb = kb * 10 + (uint64_t)(*s - '0');
	}
	if (strncmp(s, " kB", 3) != 0 || (s[3] && s[3] != '\n'))
		return -EINVAL;
	if (__builtin_add_overflow(*sum, kb * 1024, &total))
		return -EINVAL;
	*sum = total;
	return 0;
}

int usage_parse(const char *text, struct usage *out)
{
	bool seen = false;

	memset(out, 0, sizeof(*out));
	/* a mapping's own line starts with its address: no name in it can pass for a field */
	for (const char *line = text; *line;) {
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			size_t n = strlen(fields[i].key);
			uint64_t *sum = (uint64_t *)((char *)out + fields[i].offset);

			if (strncmp(line, fields[i].key, n) != 0)
				continue;
			if (usage_add_kb(line + n, sum))
				return -EINVAL;
			seen = seen || i == 0;
			break;
		}
		line += strcspn(line, "\n");
		if (*line)
			line++;
	}
	return seen ? 0 : -EINVAL;
}

int usage_read(const struct target *t, struct usage *out, struct diag *d)
{
	char *text;
	size_t len;
	int r;

	memset(out, 0, sizeof(*out));
	r = maps_text(t, "smaps_rollup", "smaps", SMAPS_MAX, &text, &len, d);
	if (r)
		return r;
	r = usage_parse(text, out);
	free(text);
	if (r && !target_alive(t))
		return target_gone(t, d);
	return r ? diag_internal(d, r, "/proc/PID/smaps_rollup has an unknown form") : 0;
}

int usage_parse_statm(const char *text, uint64_t *pages)
{
	uint64_t size;

	return sscanf(text, "%" SCNu64 " %" SCNu64, &size, pages) == 2 ? 0 : -EINVAL;
}

int usage_rss(const struct target *t, uint64_t *rss)
{
	char *text;
	size_t len;
	uint64_t pages = 0;
	int err = proc_read(t->procfd, "statm", 4096, &text, &len);

	if (err)
		return err;
	err = usage_parse_statm(text, &pages);
	free(text);
	*rss = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return err;
}
