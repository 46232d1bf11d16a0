// SPDX-License-Identifier: GPL-3.0-or-later
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TEXT_MAX     ((size_t)64 * 1024)
#define MOUNTS_MAX   ((size_t)16 << 20)
#define NO_LIMIT_V1  (UINT64_MAX / 4) /* version 1 says LONG_MAX rounded down to a page */
#define MOST_PARENTS 64

/* What the two versions call the same thing. */
static const struct cgroup_files {
	const char *used, *limit, *high, *events, *inactive;
} files[] = {
	[1] = { "memory.usage_in_bytes", "memory.limit_in_bytes", NULL, "memory.oom_control",
		"total_inactive_file" },
	[2] = { "memory.current", "memory.max", "memory.high", "memory.events", "inactive_file" },
};

/* ---- text */

/* Copies len bytes as a string; false if they do not fit. */
static bool copy(char out[CGROUP_PATH], const char *text, size_t len)
{
	if (len >= CGROUP_PATH)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* Is word one of the comma-separated ones in list? */
static bool listed(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list, *end = list + len; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t this = (size_t)((comma ? comma : end) - at);

		if (this == n && memcmp(at, word, n) == 0)
			return true;
		at += this + 1;
	}
	return false;
}

static const char *line_end(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end : line + strlen(line);
}

int cgroup_parse_self(const char *text, struct cgroup_place *out)
{
	memset(out, 0, sizeof(*out));
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *names = strchr(line, ':'), *path;

		end = line_end(line);
		path = names && names < end ? strchr(names + 1, ':') : NULL;
		if (!path || path >= end)
			continue;
		names++;
		path++;
		if (listed(names, (size_t)(path - 1 - names), "memory"))
			return copy(out->path, path, (size_t)(end - path)) ? (out->version = 1, 0)
									   : -ENOENT;
		if (path - 1 == names && copy(out->path, path, (size_t)(end - path)))
			out->version = 2;
	}
	return out->version ? 0 : -ENOENT;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/*
 * The kernel writes blank, tab, newline and backslash as three octal digits. (Not by sscanf, which
 * measures all of the text behind them first: a mountinfo may be long.)
 */
static bool unescape(char out[CGROUP_PATH], const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *s = text + i;
		int c = (unsigned char)*s;

		if (c == '\\' && i + 3 < len && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
			c = (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');
			i += 3;
		}
		if (n + 1 >= CGROUP_PATH || c == 0 || c > 255)
			return false;
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return true;
}

/* One line: ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS */
static bool parse_mount(const char *line, const char *end, int version, char root[CGROUP_PATH],
			char mount[CGROUP_PATH])
{
	const char *field[5] = { line }, *dash, *type, *super;
	size_t len[5];

	for (int i = 0; i < 5; i++) {
		const char *blank = memchr(field[i], ' ', (size_t)(end - field[i]));

		if (!blank)
			return false;
		len[i] = (size_t)(blank - field[i]);
		if (i < 4)
			field[i + 1] = blank + 1;
	}
	dash = memmem(field[4], (size_t)(end - field[4]), " - ", 3);
	type = dash ? dash + 3 : end;
	if (version == 2 ? strncmp(type, "cgroup2 ", 8) != 0 : strncmp(type, "cgroup ", 7) != 0)
		return false;
	super = memrchr(type, ' ', (size_t)(end - type));
	if (version == 1 && (!super || !listed(super + 1, (size_t)(end - super - 1), "memory")))
		return false;
	return unescape(root, field[3], len[3]) && unescape(mount, field[4], len[4]);
}

/* What is left of path below root; NULL if it lies elsewhere, or where a namespace hides it. */
static const char *path_below(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	path += n;
	if (strcmp(path, "/") == 0)
		return "";
	return strstr(path, "/..") ? NULL : path;
}

int cgroup_parse_mounts(const char *text, struct cgroup_place *out)
{
	char root[CGROUP_PATH];

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *below;

		end = line_end(line);
		if (!parse_mount(line, end, out->version, root, out->mount))
			continue;
		below = path_below(out->path, root);
		if (below && copy(out->below, below, strlen(below)))
			return 0;
	}
	return -ENOENT;
}

int cgroup_parse_key(const char *text, const char *key, uint64_t *value)
{
	size_t n = strlen(key);
	unsigned long long number;

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		end = line_end(line);
		if (strncmp(line, key, n) == 0 && line[n] == ' ' &&
		    sscanf(line + n, " %llu", &number) == 1) {
			*value = number;
			return 0;
		}
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

/* ---- files */

static bool read_number(int dir, const char *below, const char *name, uint64_t *value)
{
	char path[2 * CGROUP_PATH];
	unsigned long long number;
	char *text;
	size_t len;
	bool ok;

	if (!name || snprintf(path, sizeof(path), ".%s/%s", below, name) >= (int)sizeof(path) ||
	    proc_read(dir, path, TEXT_MAX, &text, &len))
		return false;
	ok = true;
	if (strncmp(text, "max", 3) == 0)
		*value = CGROUP_NO_LIMIT;
	else if (sscanf(text, "%llu", &number) == 1)
		*value = number >= NO_LIMIT_V1 ? CGROUP_NO_LIMIT : number;
	else
		ok = false;
	free(text);
	return ok;
}

static bool read_key(int dir, const char *below, const char *name, const char *key, uint64_t *value)
{
	char path[2 * CGROUP_PATH];
	char *text;
	size_t len;
	bool ok;

	if (snprintf(path, sizeof(path), ".%s/%s", below, name) >= (int)sizeof(path) ||
	    proc_read(dir, path, TEXT_MAX, &text, &len))
		return false;
	ok = cgroup_parse_key(text, key, value) == 0;
	free(text);
	return ok;
}

static bool read_pressure(int dir, const char *path, struct cgroup *c)
{
	char *text;
	size_t len;

	if (proc_read(dir, path, TEXT_MAX, &text, &len))
		return false;
	c->has_pressure = cgroup_parse_pressure(text, &c->pressure_some, &c->pressure_full) == 0;
	free(text);
	return c->has_pressure;
}

/* Goes up to the mount point and keeps the cgroup with the least room. */
static void find_limit(int dir, const struct cgroup_place *p, struct cgroup *out)
{
	const struct cgroup_files *f = &files[p->version];
	char below[CGROUP_PATH];
	uint64_t used, limit;
	char *slash;

	memcpy(below, p->below, sizeof(below));
	for (int i = 0; i < MOST_PARENTS; i++) {
		/* the root of version 2 has no limit and no file for it */
		if (read_number(dir, below, f->used, &used) &&
		    read_number(dir, below, f->limit, &limit) && limit != CGROUP_NO_LIMIT &&
		    (out->limit == CGROUP_NO_LIMIT ||
		     (int64_t)(limit - used) < (int64_t)(out->limit - out->used))) {
			out->used = used;
			out->limit = limit;
			memcpy(out->limit_path, below, sizeof(below));
		}
		slash = strrchr(below, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
}

static void read_rest(int dir, const struct cgroup_place *p, struct cgroup *out)
{
	const struct cgroup_files *f = &files[p->version];
	char path[2 * CGROUP_PATH];

	if (!read_number(dir, out->limit_path, f->high, &out->high))
		out->high = CGROUP_NO_LIMIT;
	if (!read_key(dir, out->limit_path, "memory.stat", f->inactive, &out->reclaimable))
		out->reclaimable = 0;
	if (!read_key(dir, out->limit_path, f->events, "oom_kill", &out->oom_kills))
		out->oom_kills = 0;
	snprintf(path, sizeof(path), ".%s/memory.pressure", p->below);
	read_pressure(dir, path, out);
}

/* Opens the mount point as it is seen from root; -1 where that is no cgroup file system. */
static int open_mount(int root, const char *mount)
{
	int fd = openat(root, mount[1] ? mount + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -1;
	if (fstatfs(fd, &fs) ||
	    (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As seen by the process whose /proc directory dir is: its mounts, and its root. */
static bool read_seen_from(int proc, struct cgroup_place *p, struct cgroup *out)
{
	int root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), dir = -1;
	char *mounts;
	size_t len;

	if (root >= 0 && proc_read(proc, "mountinfo", MOUNTS_MAX, &mounts, &len) == 0) {
		if (cgroup_parse_mounts(mounts, p) == 0)
			dir = open_mount(root, p->mount);
		free(mounts);
	}
	if (root >= 0)
		close(root);
	if (dir < 0)
		return false;
	out->limit = CGROUP_NO_LIMIT;
	memcpy(out->limit_path, p->below, sizeof(p->below));
	if (read_number(dir, p->below, files[p->version].used, &out->used)) {
		out->version = p->version;
		memcpy(out->path, p->path, sizeof(p->path));
		find_limit(dir, p, out);
		read_rest(dir, p, out);
	}
	close(dir);
	return out->version != 0;
}

void cgroup_read(const struct target *t, struct cgroup *out)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cgroup_place place;
	char *text;
	size_t len;

	memset(out, 0, sizeof(*out));
	out->limit = out->high = CGROUP_NO_LIMIT;
	if (proc_read(t->procfd, "cgroup", TEXT_MAX, &text, &len) == 0) {
		if (cgroup_parse_self(text, &place) == 0 &&
		    !(self >= 0 && read_seen_from(self, &place, out)))
			read_seen_from(t->procfd, &place, out);
		free(text);
	}
	if (self >= 0)
		close(self);
	if (!out->has_pressure)
		read_pressure(AT_FDCWD, "/proc/pressure/memory", out);
}

uint64_t cgroup_room(const struct cgroup *c)
{
	uint64_t needed = c->used > c->reclaimable ? c->used - c->reclaimable : 0;

	if (c->limit == CGROUP_NO_LIMIT)
		return CGROUP_NO_LIMIT;
	return c->limit > needed ? c->limit - needed : 0;
}
