// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MEMORY_CGROUP_H
#define HM_MEMORY_CGROUP_H
#include <stdbool.h>
#include <stdint.h>

#include "../inject/cgroup.h"
#include "../inject/target.h"

/* The memory cgroup of a process: how near is its OOM killer. */
struct memory_cgroup {
	int version;		      /* 1 or 2; 0: no memory cgroup could be read */
	char path[256];		      /* of the process, as in /proc/PID/cgroup, escaped */
	struct cgroup_limit tightest; /* the one that counts; cgroup_room says what is left */
	uint64_t high;	    /* memory.high of that one, from where on it is throttled (v2) */
	uint64_t oom_kills; /* in that one since it was made */
	bool has_pressure;  /* the kernel tells PSI */
	double pressure_some, pressure_full; /* percent of the last 10 seconds */
};

/*
 * Never fails: what cannot be read is told by version 0, or by has_pressure false. high may be
 * CGROUP_NO_LIMIT. Nothing of the process may be held (see cgroup_open).
 */
void memory_cgroup_read(const struct target *t, struct memory_cgroup *out);

/* The number behind key in the lines "KEY NUMBER" of memory.events and its kin; -ENOENT. */
HM_MUST_CHECK int cgroup_parse_key(const char *text, const char *key, uint64_t *value);
/* "avg10=" of the lines "some" and "full" of a pressure file; -EINVAL. */
HM_MUST_CHECK int cgroup_parse_pressure(const char *text, double *some, double *full);
#endif
