// SPDX-License-Identifier: GPL-3.0-or-later
#include "written.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#define KEPT (sizeof(((struct written *)0)->file) / sizeof(((struct written *)0)->file[0]))

static bool is_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int written_check(const struct written *w, const char *path, pid_t pid, struct diag *d)
{
	struct stat st;

	if (!w || lstat(path, &st))
		return 0;
	for (size_t i = 0; i < w->n && i < KEPT; i++)
		if (w->file[i].pid != pid && w->file[i].dev == st.st_dev &&
		    w->file[i].ino == st.st_ino && is_same(&w->file[i].changed, &st.st_ctim))
			return diag_fail(d, -EEXIST, HM_USAGE, "not-replaced",
					 "one name for each: with -e or in a runbook, $$ in it is "
					 "the pid",
					 "%.150s was just written for process %d, and is not "
					 "replaced by that of process %d",
					 path, (int)w->file[i].pid, (int)pid);
	return 0;
}

void written_note(struct written *w, const char *path, pid_t pid)
{
	size_t i = w ? w->n % KEPT : 0;
	struct stat st;

	if (!w || lstat(path, &st))
		return;
	w->file[i].dev = st.st_dev;
	w->file[i].ino = st.st_ino;
	w->file[i].changed = st.st_ctim;
	w->file[i].pid = pid;
	w->n++;
}
