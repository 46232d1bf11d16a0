// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CGROUP_H
#define HM_CGROUP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/target.h"

#define CGROUP_PATH	512
#define CGROUP_NO_LIMIT UINT64_MAX

/*
 * The memory cgroup of a process: how near is its OOM killer. A process is bound by the limit of
 * its own cgroup and by those of all cgroups above it; the one with the least room counts.
 */
struct cgroup {
	int version;		      /* 1 or 2; 0: no memory cgroup could be read */
	char path[CGROUP_PATH];	      /* of the process, as in /proc/PID/cgroup */
	char limit_path[CGROUP_PATH]; /* the one that counts, below the mount point; the process's
					 own if there is no limit at all */
	uint64_t used, limit;	      /* bytes, of limit_path; limit may be CGROUP_NO_LIMIT */
	uint64_t high;		      /* memory.high, from where on it is throttled (v2) */
	uint64_t reclaimable;	      /* inactive file pages: dropped before anything is killed */
	uint64_t oom_kills;	      /* since the cgroup was made */
	bool has_pressure;	      /* the kernel tells PSI */
	double pressure_some, pressure_full; /* percent of the last 10 seconds */
};

/*
 * Never fails: what cannot be read is told by version 0, or by has_pressure false. Cgroups are
 * looked for where we see them mounted, then where the process sees them (another mount or cgroup
 * namespace).
 */
void cgroup_read(const struct target *t, struct cgroup *out);

/* Bytes to the limit that cannot be made by dropping file pages; CGROUP_NO_LIMIT without one. */
uint64_t cgroup_room(const struct cgroup *c);

/* ---- the parts that only read text (cgroups(7), proc_pid_mountinfo(5)) */
struct cgroup_place {
	int version;
	char path[CGROUP_PATH];	 /* in /proc/PID/cgroup */
	char mount[CGROUP_PATH]; /* mount point of the hierarchy */
	char below[CGROUP_PATH]; /* the cgroup below the mount point: "" or "/a/b" */
};
/* From the text of /proc/PID/cgroup: the memory controller's line, else that of version 2. -ENOENT
 * if there is neither. */
HM_MUST_CHECK int cgroup_parse_self(const char *text, struct cgroup_place *out);
/* Adds mount and below from the text of a mountinfo. -ENOENT if the cgroup cannot be seen there. */
HM_MUST_CHECK int cgroup_parse_mounts(const char *text, struct cgroup_place *out);
/* The number behind key in the lines "KEY NUMBER" of memory.stat and its kin; -ENOENT. */
HM_MUST_CHECK int cgroup_parse_key(const char *text, const char *key, uint64_t *value);
/* "avg10=" of the lines "some" and "full" of a pressure file; -EINVAL. */
HM_MUST_CHECK int cgroup_parse_pressure(const char *text, double *some, double *full);
#endif
