// SPDX-License-Identifier: GPL-3.0-or-later
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>

#define MAX_LINES 1000
#define MAX_BYTES ((off_t)1024 * 1024)

struct history {
	int fd; /* -1: nothing is saved */
	char *last;
};

bool history_path(const char *own, const char *state_home, const char *home, char *buf, size_t size)
{
	int n;

	if (own) {
		n = snprintf(buf, size, "%s", own);
		return n > 0 && (size_t)n < size;
	}
	/* Relative paths are to be ignored (XDG base directory specification). */
	if (state_home && state_home[0] == '/')
		n = snprintf(buf, size, "%s/heapmedic/history", state_home);
	else if (home && home[0] == '/')
		n = snprintf(buf, size, "%s/.local/state/heapmedic/history", home);
	else
		return false;
	return n > 0 && (size_t)n < size;
}

bool history_keeps(const char *line, const char *previous)
{
	if (line[0] == '\0' || line[0] == ' ' || line[0] == '\t' || strchr(line, '\n'))
		return false;
	return !previous || strcmp(line, previous) != 0;
}

/*
 * sudo(8) may leave $HOME as it was: directories of root in there would keep the user's other
 * programs out of ~/.local, and files would be where the user has links laid out.
 */
static bool is_ours(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Makes the directories of path below its first base bytes; what cannot be made shows when the file
 * is opened. */
static void make_parents(const char *path, size_t base)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = dir + base + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			if (mkdir(dir, 0700) && errno != EEXIST)
				return;
			*p = '/';
		}
}

static int open_file(const char *path)
{
	struct stat st;
	int fd =
		open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);

	if (fd < 0)
		return -1;
	/* Not what somebody else has put there, and no second name of another file. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 ||
	    fchmod(fd, 0600)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void remember_last(struct history *h, const char *line)
{
	char *copy = strdup(line);

	if (!copy)
		return;
	free(h->last);
	h->last = copy;
}

/* Reads the end of the file into readline. Returns how many lines there were. */
static size_t load(struct history *h)
{
	off_t size = lseek(h->fd, 0, SEEK_END);
	off_t from = size > MAX_BYTES ? size - MAX_BYTES : 0;
	char *buf = size > 0 ? malloc((size_t)(size - from) + 1) : NULL;
	ssize_t n = buf ? pread(h->fd, buf, (size_t)(size - from), from) : 0;
	size_t lines = 0;
	char *save = NULL;

	if (buf && n > 0) {
		buf[n] = '\0';
		for (char *l = strtok_r(buf, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			add_history(l);
			remember_last(h, l);
			lines++;
		}
	}
	free(buf);
	return size > MAX_BYTES ? SIZE_MAX : lines;
}

/* Writes the lines that readline kept over the file, once it has grown to twice that. */
static void shorten(struct history *h)
{
	HIST_ENTRY **list = history_list();

	if (!list || ftruncate(h->fd, 0))
		return;
	for (; *list; list++)
		if (dprintf(h->fd, "%s\n", (*list)->line) < 0)
			return;
}

/* The file of the environment, -1 if there is none. */
static int open_default(void)
{
	const char *own = getenv("HEAPMEDIC_HISTORY"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME"), *base = state && state[0] == '/' ? state : home;
	char path[PATH_MAX];

	if (!history_path(own, state, home, path, sizeof(path)))
		return -1;
	if (!own) {
		if (!is_ours(base))
			return -1;
		make_parents(path, strlen(base));
	}
	return open_file(path);
}

struct history *history_open(void)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	using_history();
	stifle_history(MAX_LINES);
	h->fd = open_default();
	if (h->fd >= 0 && load(h) > (size_t)2 * MAX_LINES)
		shorten(h);
	return h;
}

void history_remember(struct history *h, const char *line)
{
	if (!h || !history_keeps(line, h->last))
		return;
	add_history(line);
	remember_last(h, line);
	/* A full disk costs the history, never the session. */
	if (h->fd >= 0 && dprintf(h->fd, "%s\n", line) < 0) {
		close(h->fd);
		h->fd = -1;
	}
}

void history_close(struct history *h)
{
	if (!h)
		return;
	if (h->fd >= 0)
		close(h->fd);
	clear_history();
	free(h->last);
	free(h);
}
