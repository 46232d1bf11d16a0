// SPDX-License-Identifier: GPL-3.0-or-later
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX ((size_t)64)
#define STAT_MAX  ((size_t)64 * 1024)

/* Where a controller's numbers are, in the two versions (cgroup-v1/memory.rst, cgroup-v2.rst). */
struct files {
	const char *limit, *usage, *stat, *swap_limit, *swap_usage;
};

static const struct controller {
	const char *name; /* among the mount options, and in /proc/PID/cgroup, of version 1 */
	struct files v1, v2;
} controllers[] = {
	[CGROUP_MEMORY] = { "memory",
			    { "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
			      "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes" },
			    { "memory.max", "memory.current", "memory.stat", "memory.swap.max",
			      "memory.swap.current" } },
	[CGROUP_PIDS] = { "pids",
			  { "pids.max", "pids.current", NULL, NULL, NULL },
			  { "pids.max", "pids.current", NULL, NULL, NULL } },
};

/* Is word one of the comma separated ones of s[0..len)? */
static bool has_word(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if ((i == 0 || s[i - 1] == ',') && memcmp(s + i, word, n) == 0 &&
		    (i + n == len || s[i + n] == ','))
			return true;
	return false;
}

/*
 * The process's path in the hierarchy of this controller: "ID:controllers:/path", of version 2
 * "0::/path".
 */
static bool find_path(const char *cgroup, const char *controller, char *out, size_t size)
{
	for (const char *line = cgroup; *line; line += strcspn(line, "\n"), line += *line != 0) {
		size_t len = strcspn(line, "\n");
		const char *a = memchr(line, ':', len);
		const char *b = a ? memchr(a + 1, ':', len - (size_t)(a + 1 - line)) : NULL;
		size_t n;

		if (!b)
			continue;
		if (controller ? !has_word(a + 1, (size_t)(b - a - 1), controller) : b != a + 1)
			continue;
		n = len - (size_t)(b + 1 - line);
		if (n >= size)
			return false;
		memcpy(out, b + 1, n);
		out[n] = '\0';
		return true;
	}
	return false;
}

struct mount {
	char root[PATH_MAX], point[PATH_MAX];
};

/*
 * proc(5), mountinfo: "ID parent major:minor root point options [tags] - type source options". In
 * root and point the kernel writes blanks as octal; such a mount is left alone.
 */
static bool parse_mount(const char *line, size_t len, const char *controller, struct mount *m)
{
	char copy[3 * PATH_MAX];
	const char *dash, *type, *options;
	size_t options_len;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, line, len);
	copy[len] = '\0';
	dash = strstr(copy, " - ");
	if (!dash || sscanf(copy, "%*s %*s %*s %4095s %4095s", m->root, m->point) != 2)
		return false;
	type = dash + 3;
	if (!controller)
		return strncmp(type, "cgroup2 ", 8) == 0;
	if (strncmp(type, "cgroup ", 7) != 0)
		return false;
	options = strrchr(type, ' ');
	options_len = options ? strlen(options + 1) : 0;
	return options && has_word(options + 1, options_len, controller);
}

static bool find_mount(const char *mountinfo, const char *controller, struct mount *m)
{
	for (const char *line = mountinfo; *line; line += *line != 0) {
		size_t len = strcspn(line, "\n");

		if (parse_mount(line, len, controller, m))
			return true;
		line += len;
	}
	return false;
}

/* The directory of path below the mount; false where the mount does not show it. */
static bool directory(const struct mount *m, const char *path, char *out, size_t size)
{
	size_t n = strcmp(m->root, "/") ? strlen(m->root) : 0;

	if (strstr(path, "/..") || strncmp(path, m->root, n) != 0 || (path[n] && path[n] != '/'))
		return false;
	return (size_t)snprintf(out, size, "%s%s", m->point, path + n) < size;
}

/* A number of a file in dir; false for "max", for what is no number, or no file. */
static bool read_value(const char *dir, const char *name, uint64_t *out)
{
	char path[PATH_MAX], *text, *end;
	size_t len;
	bool ok;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    proc_read(AT_FDCWD, path, VALUE_MAX, &text, &len))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	ok = end != text && !errno && *text >= '0' && *text <= '9';
	free(text);
	return ok;
}

/* Version 1 has the sums with all below it under other names. */
struct stat_sums {
	uint64_t clean, dirty;
};

static void add_line(const char *line, size_t prefix, struct stat_sums *to)
{
	static const struct {
		const char *name;
		bool dirty;
	} fields[] = { { "inactive_file ", false },    { "active_file ", false },
		       { "slab_reclaimable ", false }, { "file_dirty ", true },
		       { "file_writeback ", true },    { "dirty ", true },
		       { "writeback ", true } };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		size_t n = strlen(fields[i].name);

		if (strncmp(line + prefix, fields[i].name, n) == 0)
			*(fields[i].dirty ? &to->dirty : &to->clean) +=
				strtoull(line + prefix + n, NULL, 10);
	}
}

/* What the kernel can drop at once: file pages that are not being written, and caches of its own.
 */
static uint64_t droppable(const char *dir, const char *name)
{
	struct stat_sums own = { 0 }, total = { 0 };
	char path[PATH_MAX], *text;
	bool has_total;
	size_t len;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    proc_read(AT_FDCWD, path, STAT_MAX, &text, &len))
		return 0;
	has_total = strstr(text, "\ntotal_inactive_file ") != NULL;
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line != 0)
		add_line(line, strncmp(line, "total_", 6) ? 0 : 6,
			 strncmp(line, "total_", 6) ? &own : &total);
	free(text);
	if (has_total)
		own = total;
	return own.clean > own.dirty ? own.clean - own.dirty : 0;
}

/* What could be swapped out: free swap, as far as the cgroup may use it. */
static uint64_t swap_room(const char *dir, const struct files *f)
{
	uint64_t limit, usage, room = 0;
	char *text, *line;
	size_t len;

	if (proc_read(AT_FDCWD, "/proc/meminfo", STAT_MAX, &text, &len))
		return 0;
	line = strstr(text, "SwapFree:");
	if (line)
		room = strtoull(line + strlen("SwapFree:"), NULL, 10) * 1024;
	free(text);
	if (read_value(dir, f->swap_limit, &limit) && read_value(dir, f->swap_usage, &usage)) {
		uint64_t may = limit > usage ? limit - usage : 0;

		room = may < room ? may : room;
	}
	return room;
}

static uint64_t left(const struct cgroup_limit *l)
{
	return (l->limit > l->usage ? l->limit - l->usage : 0) + l->reclaimable;
}

static void look_at(const char *dir, const char *path, const struct files *f,
		    struct cgroup_limit *out)
{
	struct cgroup_limit l = { .path = "" };

	if (!read_value(dir, f->limit, &l.limit) || !read_value(dir, f->usage, &l.usage))
		return;
	/* version 1 writes a number near 2^63 for none */
	if (l.limit >= (uint64_t)1 << 60)
		return;
	if (f->stat)
		l.reclaimable = droppable(dir, f->stat) + swap_room(dir, f);
	escape_copy(l.path, sizeof(l.path), path, strlen(path));
	if (!out->path[0] || left(&l) < left(out))
		*out = l;
}

/* The process's own cgroup and all above it, up to the mount point. */
static void climb(const struct mount *m, char *path, const struct files *f,
		  struct cgroup_limit *out)
{
	char dir[PATH_MAX];

	for (;;) {
		char *slash;

		if (!directory(m, path, dir, sizeof(dir)))
			return;
		look_at(dir, path[0] ? path : "/", f, out);
		slash = strrchr(path, '/');
		if (!slash || !path[1])
			return;
		*slash = '\0';
	}
}

void cgroup_tightest(const char *mountinfo, const char *cgroup, enum cgroup_kind kind,
		     struct cgroup_limit *out)
{
	const struct controller *c = &controllers[kind];
	struct mount m;
	char path[PATH_MAX];

	memset(out, 0, sizeof(*out));
	/* a controller is in one of the two hierarchies: where it is not there are no such files */
	if (find_path(cgroup, c->name, path, sizeof(path)) && find_mount(mountinfo, c->name, &m))
		climb(&m, path, &c->v1, out);
	if (find_path(cgroup, NULL, path, sizeof(path)) && find_mount(mountinfo, NULL, &m))
		climb(&m, path, &c->v2, out);
}
