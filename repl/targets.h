// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TARGETS_H
#define HM_TARGETS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../inject/diag.h"

/* Which processes are meant. */
enum selector_kind { SELECT_PID, SELECT_NAME, SELECT_CGROUP };
struct selector {
	enum selector_kind kind;
	const char *text;
};

/*
 * The pids that n selectors name, each once, in the order of the selectors and by number within
 * one; *out is the caller's to free. A pid is not looked up here. Exit 3 if a name or group has no
 * process, 2 for a pid that is no number.
 */
HM_MUST_CHECK int targets_resolve(const struct selector *v, size_t n, pid_t **out, size_t *count,
				  struct diag *d);

/* A process that could be one. */
struct running {
	pid_t pid;
	char comm[64]; /* control characters escaped */
};
/* All that have memory of their own, other than ourselves, as /proc lists them: for completion.
 * *out is the caller's to free. */
HM_MUST_CHECK int targets_running(struct running **out, size_t *n);

/*
 * Pure: does the text of /proc/PID/cgroup place the process in group or below? group is absolute
 * and has no slash at its end, except "/" itself.
 */
bool cgroup_matches(const char *text, const char *group);
/* Pure: group as given by the user (maybe below a mount point of /proc/self/mountinfo's text,
 * maybe without the leading slash) to the form above. -EINVAL if it is empty, -ENAMETOOLONG. */
HM_MUST_CHECK int cgroup_normalise(const char *mountinfo, const char *given, char *buf,
				   size_t size);
#endif
