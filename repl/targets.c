// SPDX-License-Identifier: GPL-3.0-or-later
#include "targets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../inject/status.h"
#include "../inject/target.h"
#include "settings.h"

#define MAX_PROC_TEXT ((size_t)4 * 1024 * 1024)

struct list {
	pid_t *v;
	size_t n, cap;
};

static int list_add(struct list *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == pid)
			return 0;
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		pid_t *grown = realloc(l->v, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->v = grown;
		l->cap = cap;
	}
	l->v[l->n++] = pid;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

bool cgroup_matches(const char *text, const char *group)
{
	size_t len = strcmp(group, "/") == 0 ? 0 : strlen(group);

	for (const char *line = text; line && *line;) {
		const char *end = strchrnul(line, '\n');
		/* "hierarchy:controllers:path" (cgroups(7)); controllers hold no colon but
		 * name=... may: the path begins at the first ":/". */
		const char *path = memmem(line, (size_t)(end - line), ":/", 2);

		if (path) {
			size_t have = (size_t)(end - path) - 1;

			path++;
			if (have >= len && memcmp(path, group, len) == 0 &&
			    (have == len || path[len] == '/'))
				return true;
		}
		line = *end ? end + 1 : end;
	}
	return false;
}

/* The mount point of one mountinfo line (proc(5): the fifth field) if it is a cgroup mount, its
 * length in *len. */
static const char *cgroup_mount(const char *line, const char *end, size_t *len)
{
	const char *point = line;

	if (!memmem(line, (size_t)(end - line), " - cgroup", strlen(" - cgroup")))
		return NULL;
	for (int i = 0; i < 4; i++) {
		point = memchr(point, ' ', (size_t)(end - point));
		if (!point)
			return NULL;
		point++;
	}
	*len = (size_t)(strchrnul(point, ' ') - point);
	return point;
}

/* The part of given below the longest cgroup mount that it lies in, else given. */
static const char *below_mount(const char *mountinfo, const char *given)
{
	size_t best = 0;

	for (const char *line = mountinfo; line && *line;) {
		const char *end = strchrnul(line, '\n');
		size_t len = 0;
		const char *point = cgroup_mount(line, end, &len);

		if (point && len > 1 && len > best && strncmp(given, point, len) == 0 &&
		    (given[len] == '/' || given[len] == '\0'))
			best = len;
		line = *end ? end + 1 : end;
	}
	return given + best;
}

int cgroup_normalise(const char *mountinfo, const char *given, char *buf, size_t size)
{
	const char *path;
	size_t len;

	if (!*given)
		return -EINVAL;
	path = below_mount(mountinfo, given);
	while (*path == '/')
		path++;
	len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	if (len + 2 > size)
		return -ENAMETOOLONG;
	buf[0] = '/';
	memcpy(buf + 1, path, len);
	buf[len + 1] = '\0';
	return 0;
}

static bool name_matches(int procfd, const char *name)
{
	char *text = NULL;
	size_t len = 0;
	bool same;

	if (proc_read(procfd, "comm", 4096, &text, &len))
		return false;
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	same = strcmp(text, name) == 0;
	free(text);
	return same;
}

/* The root group has the kernel's threads in it too, and what has ended stays in its group until
 * its parent has looked: nobody means those. */
static bool has_memory(int procfd)
{
	char *text = NULL, state = 'Z';
	size_t len = 0;
	bool has;

	if (proc_read(procfd, "stat", 16384, &text, &len))
		return false;
	has = stat_parse(text, &state, NULL, NULL) == 0 && state != 'Z' && !stat_is_kthread(text);
	free(text);
	return has;
}

static bool group_matches(int procfd, const char *group)
{
	char *text = NULL;
	size_t len = 0;
	bool in;

	if (proc_read(procfd, "cgroup", MAX_PROC_TEXT, &text, &len))
		return false;
	in = cgroup_matches(text, group);
	free(text);
	return in && has_memory(procfd);
}

static bool selected(int dirfd, const char *entry, enum selector_kind kind, const char *what)
{
	int fd = openat(dirfd, entry, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool yes;

	if (fd < 0)
		return false;
	yes = kind == SELECT_NAME ? name_matches(fd, what) : group_matches(fd, what);
	close(fd);
	return yes;
}

static bool has_ended(pid_t pid)
{
	char path[32], *text = NULL, state = '?';
	size_t len = 0;
	bool ended;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (proc_read(AT_FDCWD, path, 16384, &text, &len))
		return true;
	ended = stat_parse(text, &state, NULL, NULL) == 0 && state == 'Z';
	free(text);
	return ended;
}

/* Whoever has been started anew has the name of the one that nobody has waited for yet. Where there
 * is no other, that one is named: its error tells more than that there is none. */
static void drop_ended(struct list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n && l->n > 1; i++)
		if (!has_ended(l->v[i]))
			l->v[kept++] = l->v[i];
	if (kept)
		l->n = kept;
}

static bool running_read(int dirfd, const char *entry, struct running *out)
{
	int fd = openat(dirfd, entry, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *text = NULL;
	size_t len = 0;
	bool ok = fd >= 0 && has_memory(fd) && proc_read(fd, "comm", 4096, &text, &len) == 0;

	if (ok)
		escape_copy(out->comm, sizeof(out->comm), text, strcspn(text, "\n"));
	free(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

int targets_running(struct running **out, size_t *n)
{
	DIR *dir = opendir("/proc");
	struct running one, *v = NULL;
	struct dirent *e;
	size_t cap = 0;

	*n = 0;
	*out = NULL;
	if (!dir)
		return errno ? -errno : -EIO;
	while ((e = readdir(dir)) != NULL) {
		if (!pid_parse(e->d_name, &one.pid) || one.pid == getpid() ||
		    !running_read(dirfd(dir), e->d_name, &one))
			continue;
		if (*n == cap) {
			struct running *grown = realloc(v, (cap + 256) * sizeof(*v));

			if (!grown)
				break; /* those that there are */
			v = grown;
			cap += 256;
		}
		v[(*n)++] = one;
	}
	closedir(dir);
	*out = v;
	return 0;
}

/* Adds the matching processes of /proc other than ourselves, in the order of their numbers. */
static int scan(enum selector_kind kind, const char *what, struct list *out, size_t *found)
{
	DIR *dir = opendir("/proc");
	struct list mine = { 0 };
	struct dirent *e;
	int err = 0;

	if (!dir)
		return errno ? -errno : -EIO;
	while (!err && (e = readdir(dir)) != NULL) {
		pid_t pid;

		if (pid_parse(e->d_name, &pid) && pid != getpid() &&
		    selected(dirfd(dir), e->d_name, kind, what))
			err = list_add(&mine, pid);
	}
	closedir(dir);
	if (kind == SELECT_NAME)
		drop_ended(&mine);
	if (mine.n)
		qsort(mine.v, mine.n, sizeof(*mine.v), by_number);
	*found = mine.n;
	for (size_t i = 0; !err && i < mine.n; i++)
		err = list_add(out, mine.v[i]);
	free(mine.v);
	return err;
}

static int add_name(const char *name, struct list *out, struct diag *d)
{
	size_t found = 0;
	int err = target_check_proc(d);

	if (err)
		return err;
	err = scan(SELECT_NAME, name, out, &found);
	if (err)
		return diag_internal(d, err, "reading /proc");
	if (found)
		return 0;
	/* TASK_COMM_LEN is 16 with the final NUL (proc(5)). */
	return diag_fail(d, -ESRCH, HM_GONE, "no-such-process",
			 strlen(name) > 15 ? "the kernel keeps 15 characters of a name: give those"
					   : "see the names with: ps -eo pid,comm",
			 "no process is named '%.100s'", name);
}

static int add_group(const char *given, struct list *out, struct diag *d)
{
	char group[PATH_MAX], *mounts = NULL;
	size_t found = 0, len = 0;
	int err = target_check_proc(d);

	if (err)
		return err;
	err = proc_read(AT_FDCWD, "/proc/self/mountinfo", MAX_PROC_TEXT, &mounts, &len);
	if (err)
		return diag_internal(d, err, "reading /proc/self/mountinfo");
	err = cgroup_normalise(mounts, given, group, sizeof(group));
	free(mounts);
	if (err)
		return diag_fail(d, err, HM_USAGE, "bad-cgroup",
				 "give the path as in /proc/PID/cgroup",
				 "'%.100s' is no cgroup path", given);
	err = scan(SELECT_CGROUP, group, out, &found);
	if (err)
		return diag_internal(d, err, "reading /proc");
	if (found)
		return 0;
	return diag_fail(d, -ESRCH, HM_GONE, "no-such-process",
			 "give the path as in /proc/PID/cgroup",
			 "no process is in the control group %.200s", group);
}

int targets_resolve(const struct selector *v, size_t n, pid_t **out, size_t *count, struct diag *d)
{
	struct list l = { 0 };
	pid_t pid;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (v[i].kind == SELECT_NAME)
			err = add_name(v[i].text, &l, d);
		else if (v[i].kind == SELECT_CGROUP)
			err = add_group(v[i].text, &l, d);
		else if (!pid_parse(v[i].text, &pid))
			err = diag_fail(d, -EINVAL, HM_USAGE, "bad-pid",
					"give the number that ps shows; a name is -n NAME",
					"'%.100s' is no process id", v[i].text);
		else if (list_add(&l, pid))
			err = diag_internal(d, -ENOMEM, "targets");
	}
	if (err) {
		free(l.v);
		return err;
	}
	*out = l.v;
	*count = l.n;
	return 0;
}
