// SPDX-License-Identifier: GPL-3.0-or-later
#include "memory_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRESSURE_MAX ((size_t)4096)

int cgroup_parse_key(const char *text, const char *key, uint64_t *value)
{
	size_t n = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != 0) {
		if (strncmp(line, key, n) != 0 || line[n] != ' ' || line[n + 1] < '0' ||
		    line[n + 1] > '9')
			continue;
		*value = strtoull(line + n + 1, NULL, 10);
		return 0;
	}
	return -ENOENT;
}

int cgroup_parse_pressure(const char *text, double *some, double *full)
{
	const char *second = strstr(text, "full ");

	if (sscanf(text, "some avg10=%lf", some) != 1 || !(*some >= 0 && *some <= 100))
		return -EINVAL;
	/* the line "full" is missing where everything is one task */
	if (!second || sscanf(second, "full avg10=%lf", full) != 1 || !(*full >= 0 && *full <= 100))
		*full = 0;
	return 0;
}

static void take_pressure(const char *text, struct memory_cgroup *out)
{
	out->has_pressure =
		cgroup_parse_pressure(text, &out->pressure_some, &out->pressure_full) == 0;
}

static void read_cgroup(const struct cgroup *c, struct memory_cgroup *out)
{
	const struct cgroup_place *p = &c->place;
	size_t below = out->tightest.below;
	char *text;

	out->version = p->version;
	escape_copy(out->path, sizeof(out->path), p->path, strlen(p->path));
	if (p->version == 2 && !cgroup_number(c, below, "memory.high", &out->high))
		out->high = CGROUP_NO_LIMIT;
	if (cgroup_file(c, below, p->version == 1 ? "memory.oom_control" : "memory.events",
			&text) == 0) {
		if (cgroup_parse_key(text, "oom_kill", &out->oom_kills))
			out->oom_kills = 0;
		free(text);
	}
	if (cgroup_file(c, strlen(p->below), "memory.pressure", &text) == 0) {
		take_pressure(text, out);
		free(text);
	}
}

void memory_cgroup_read(const struct target *t, struct memory_cgroup *out)
{
	struct cgroup v[CGROUP_KINDS];
	char *text;
	size_t len;

	*out = (struct memory_cgroup){ .high = CGROUP_NO_LIMIT };
	cgroup_open(t, false, v);
	if (cgroup_tightest(&v[CGROUP_MEMORY], &out->tightest))
		read_cgroup(&v[CGROUP_MEMORY], out);
	cgroup_close(v);
	if (!out->has_pressure &&
	    proc_read(AT_FDCWD, "/proc/pressure/memory", PRESSURE_MAX, &text, &len) == 0) {
		take_pressure(text, out);
		free(text);
	}
}
