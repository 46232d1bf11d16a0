// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_WRITTEN_H
#define HM_WRITTEN_H
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "../inject/diag.h"

/* Which files a run has written for which of its targets, so that none replaces another's. */
struct written {
	struct {
		dev_t dev;
		ino_t ino;
		struct timespec changed; /* inodes are used again */
		pid_t pid;
	} file[64]; /* the last ones */
	size_t n;   /* in all */
};

/* Exit 2, "not-replaced", where path is what was written for another target. w may be NULL. */
HM_MUST_CHECK int written_check(const struct written *w, const char *path, pid_t pid,
				struct diag *d);
/* path was written for pid. */
void written_note(struct written *w, const char *path, pid_t pid);
#endif
