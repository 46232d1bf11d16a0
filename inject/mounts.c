// SPDX-License-Identifier: GPL-3.0-or-later
#include "mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOUNTINFO_MAX ((size_t)16 << 20)

/* The word behind " - " is the type; a mount point cannot hold a blank (it is written \040). */
static bool is_memory(const char *line, size_t len)
{
	static const char *const types[] = { " - tmpfs ", " - ramfs " };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (memmem(line, len, types[i], strlen(types[i])))
			return true;
	return false;
}

void mounts_parse(const char *text, struct mounts *out)
{
	out->n = 0;
	while (*text && out->n < MOUNTS_MAX) {
		size_t len = strcspn(text, "\n");
		unsigned major, minor;

		/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS" */
		if (is_memory(text, len) && sscanf(text, "%*u %*u %u:%u ", &major, &minor) == 2) {
			out->memory[out->n].major = major;
			out->memory[out->n++].minor = minor;
		}
		text += len + (text[len] == '\n');
	}
}

void mounts_read(const struct target *t, struct mounts *out)
{
	char *text;
	size_t len;

	out->n = 0;
	if (proc_read(t->procfd, "mountinfo", MOUNTINFO_MAX, &text, &len))
		return;
	mounts_parse(text, out);
	free(text);
}

bool mounts_in_memory(const struct mounts *m, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->memory[i].major == major && m->memory[i].minor == minor)
			return true;
	return false;
}
