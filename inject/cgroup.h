// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CGROUP_H
#define HM_CGROUP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup_place.h"
#include "target.h"

#define CGROUP_NO_LIMIT UINT64_MAX

enum cgroup_kind { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_KINDS };

/* The cgroup of a process for one kind of limit. */
struct cgroup {
	enum cgroup_kind kind;
	struct cgroup_place place;
	int dir; /* O_PATH, its mount point; -1: it cannot be seen */
};

/* The tightest limit of one kind that a process is under: of its cgroup or of one above it. */
struct cgroup_limit {
	char path[256]; /* as /proc/PID/cgroup has it, escaped; "" if nothing limits */
	/* bytes or tasks; where nothing limits CGROUP_NO_LIMIT, and what its own cgroup uses */
	uint64_t limit, usage;
	uint64_t reclaimable; /* memory that is limited: what the kernel can drop or swap out */
	size_t below;	      /* that cgroup is this much of place.below */
};

/*
 * Opens the cgroups of t: by our own mounts, and where these do not show them (another mount or
 * cgroup namespace) by those of t, below its root. Not so while a thread of it is held: a look-up
 * there may wait for a file system of the target, and a long list of mounts takes its time. Never
 * fails: see dir. The caller ends it with cgroup_close.
 */
void cgroup_open(const struct target *t, bool held, struct cgroup out[CGROUP_KINDS]);
void cgroup_close(struct cgroup v[CGROUP_KINDS]);
/* The controller's name, as in /proc/PID/cgroup. */
const char *cgroup_controller(enum cgroup_kind kind);

/*
 * Climbs from the cgroup as far up as the mount shows and takes the one with the least room
 * (cgroups(7), both versions). False if nothing can be read: then nothing limits, usage is 0.
 */
bool cgroup_tightest(const struct cgroup *c, struct cgroup_limit *out);
/* Left until the limit when all that can be dropped is; CGROUP_NO_LIMIT without one. */
uint64_t cgroup_room(const struct cgroup_limit *l);

/*
 * The text of a file of the first below characters of place.below, for the caller to free. Errors
 * of proc_read.
 */
HM_MUST_CHECK int cgroup_file(const struct cgroup *c, size_t below, const char *name, char **text);
/* The number in such a file, CGROUP_NO_LIMIT for "max" and its like; false if there is none. */
HM_MUST_CHECK bool cgroup_number(const struct cgroup *c, size_t below, const char *name,
				 uint64_t *out);
#endif
