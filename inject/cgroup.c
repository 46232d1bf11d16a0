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

#include "in_root.h"

#define GROUPS_MAX    ((size_t)1 << 20)
#define MOUNTINFO_MAX ((size_t)16 << 20)
/* while a thread is held */
#define MOUNTINFO_SOON ((size_t)1 << 20)
#define FILE_MAX       ((size_t)64 * 1024)
/* version 1 writes a number near 2^63 for none */
#define NONE_FROM ((uint64_t)1 << 60)

/* Where a controller's numbers are, in the two versions (cgroup-v1/memory.rst, cgroup-v2.rst). */
struct files {
	const char *limit, *usage, *stat, *swap_limit, *swap_usage;
};

static const struct controller {
	const char *name;
	struct files v1, v2;
} controllers[CGROUP_KINDS] = {
	[CGROUP_MEMORY] = { "memory",
			    { "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
			      "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes" },
			    { "memory.max", "memory.current", "memory.stat", "memory.swap.max",
			      "memory.swap.current" } },
	[CGROUP_PIDS] = { "pids",
			  { "pids.max", "pids.current", NULL, NULL, NULL },
			  { "pids.max", "pids.current", NULL, NULL, NULL } },
};

const char *cgroup_controller(enum cgroup_kind kind)
{
	return controllers[kind].name;
}

/* ---- finding it */

/*
 * Opens the mount point, as we or (procfd given) the target see it; -1 unless it is a cgroup file
 * system that shows the cgroup: another one may lie on top.
 */
static int open_mount(int procfd, const struct cgroup_place *p)
{
	int fd = procfd < 0 ? open(p->mount, O_PATH | O_DIRECTORY | O_CLOEXEC)
			    : open_in_root(procfd, p->mount);
	char path[CGROUP_PATH + 1];
	struct statfs fs;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), ".%s", p->below);
	if (fstatfs(fd, &fs) == 0 &&
	    (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC) &&
	    faccessat(fd, path, F_OK, 0) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_missing(const struct cgroup *c)
{
	return c->place.version && c->dir < 0;
}

/* Opens those that are missing by our mounts, or (procfd given) by the target's. */
static void look_at_mounts(int procfd, size_t max, struct cgroup v[CGROUP_KINDS])
{
	bool missing = false;
	char *mounts;
	size_t len;

	for (size_t i = 0; i < CGROUP_KINDS; i++)
		missing |= is_missing(&v[i]);
	if (!missing ||
	    (procfd < 0 ? proc_read(AT_FDCWD, "/proc/self/mountinfo", max, &mounts, &len)
			: proc_read(procfd, "mountinfo", max, &mounts, &len)))
		return;
	for (size_t i = 0; i < CGROUP_KINDS; i++)
		if (is_missing(&v[i]) &&
		    cgroup_parse_mounts(mounts, controllers[i].name, &v[i].place) == 0)
			v[i].dir = open_mount(procfd, &v[i].place);
	free(mounts);
}

void cgroup_open(const struct target *t, bool held, struct cgroup out[CGROUP_KINDS])
{
	char *groups = NULL;
	size_t len;
	int rc = proc_read(t->procfd, "cgroup", GROUPS_MAX, &groups, &len);

	for (size_t i = 0; i < CGROUP_KINDS; i++) {
		out[i].kind = (enum cgroup_kind)i;
		out[i].dir = -1;
		/* the place says itself that there is none */
		(void)!cgroup_parse_self(rc ? "" : groups, controllers[i].name, &out[i].place);
	}
	free(groups);
	look_at_mounts(-1, held ? MOUNTINFO_SOON : MOUNTINFO_MAX, out);
	if (!held)
		look_at_mounts(t->procfd, MOUNTINFO_MAX, out);
}

void cgroup_close(struct cgroup v[CGROUP_KINDS])
{
	for (size_t i = 0; i < CGROUP_KINDS; i++) {
		if (v[i].dir >= 0)
			close(v[i].dir);
		v[i].dir = -1;
	}
}

/* ---- reading it */

int cgroup_file(const struct cgroup *c, size_t below, const char *name, char **text)
{
	char path[CGROUP_PATH + 64];
	size_t len;

	if ((size_t)snprintf(path, sizeof(path), ".%.*s/%s", (int)below, c->place.below, name) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	return proc_read(c->dir, path, FILE_MAX, text, &len);
}

bool cgroup_number(const struct cgroup *c, size_t below, const char *name, uint64_t *out)
{
	char *text;
	bool ok = true;

	if (cgroup_file(c, below, name, &text))
		return false;
	errno = 0;
	if (strncmp(text, "max", 3) == 0)
		*out = CGROUP_NO_LIMIT;
	else if (*text >= '0' && *text <= '9')
		*out = strtoull(text, NULL, 10);
	else
		ok = false;
	ok = ok && !errno;
	if (ok && *out >= NONE_FROM)
		*out = CGROUP_NO_LIMIT;
	free(text);
	return ok;
}

/* Version 1 has the sums with all below it under other names. */
struct stat_sums {
	uint64_t clean, dirty;
};

static void add_line(const char *line, struct stat_sums *to)
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

		if (strncmp(line, fields[i].name, n) == 0)
			*(fields[i].dirty ? &to->dirty : &to->clean) +=
				strtoull(line + n, NULL, 10);
	}
}

/* What the kernel can drop at once: file pages that are not being written, and caches of its own.
 */
static uint64_t droppable(const struct cgroup *c, size_t below, const char *name)
{
	struct stat_sums own = { 0 }, total = { 0 };
	char *text;

	if (cgroup_file(c, below, name, &text))
		return 0;
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line != 0) {
		bool is_total = strncmp(line, "total_", 6) == 0;

		add_line(is_total ? line + 6 : line, is_total ? &total : &own);
	}
	if (strstr(text, "\ntotal_inactive_file "))
		own = total;
	free(text);
	return own.clean > own.dirty ? own.clean - own.dirty : 0;
}

/* What could be swapped out: free swap, as far as the cgroup may use it. */
static uint64_t swap_room(const struct cgroup *c, size_t below, const struct files *f)
{
	uint64_t limit, usage, room = 0;
	const char *line;
	char *text;
	size_t len;

	if (proc_read(AT_FDCWD, "/proc/meminfo", FILE_MAX, &text, &len))
		return 0;
	line = strstr(text, "SwapFree:");
	if (line)
		room = strtoull(line + strlen("SwapFree:"), NULL, 10) * 1024;
	free(text);
	if (cgroup_number(c, below, f->swap_limit, &limit) &&
	    cgroup_number(c, below, f->swap_usage, &usage)) {
		uint64_t may = limit > usage ? limit - usage : 0;

		room = may < room ? may : room;
	}
	return room;
}

uint64_t cgroup_room(const struct cgroup_limit *l)
{
	uint64_t most = l->limit + l->reclaimable;

	if (l->limit == CGROUP_NO_LIMIT)
		return CGROUP_NO_LIMIT;
	return most > l->usage ? most - l->usage : 0;
}

/* ---- the tightest limit */

/* False where there are no such files: of version 2 in the root, and where it is not handed down.
 */
static bool look_at(const struct cgroup *c, size_t below, const struct files *f,
		    struct cgroup_limit *out)
{
	*out = (struct cgroup_limit){ .below = below };
	if (!cgroup_number(c, below, f->limit, &out->limit) ||
	    !cgroup_number(c, below, f->usage, &out->usage))
		return false;
	if (f->stat && out->limit != CGROUP_NO_LIMIT)
		out->reclaimable = droppable(c, below, f->stat) + swap_room(c, below, f);
	return true;
}

static void write_path(const struct cgroup_place *p, struct cgroup_limit *out)
{
	size_t len = strlen(p->path) - strlen(p->below) + out->below;

	if (len)
		escape_copy(out->path, sizeof(out->path), p->path, len);
	else
		memcpy(out->path, "/", 2);
}

static size_t parent(const char *below, size_t len)
{
	const char *slash = memrchr(below, '/', len);

	return slash ? (size_t)(slash - below) : 0;
}

bool cgroup_tightest(const struct cgroup *c, struct cgroup_limit *out)
{
	const struct controller *k = &controllers[c->kind];
	const struct files *f = c->place.version == 1 ? &k->v1 : &k->v2;
	struct cgroup_limit l;
	bool known = false;
	size_t len;

	*out = (struct cgroup_limit){ .limit = CGROUP_NO_LIMIT };
	if (c->dir < 0)
		return false;
	len = out->below = strlen(c->place.below);
	for (;;) {
		if (look_at(c, len, f, &l) && (!known || cgroup_room(&l) < cgroup_room(out))) {
			*out = l;
			known = true;
		}
		if (!len)
			break;
		len = parent(c->place.below, len);
	}
	if (out->limit != CGROUP_NO_LIMIT)
		write_path(&c->place, out);
	return known;
}
