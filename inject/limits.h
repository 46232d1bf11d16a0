// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LIMITS_H
#define HM_LIMITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup.h"
#include "diag.h"
#include "payload/abi.h"
#include "status.h"
#include "target.h"

/*
 * Whether the process's own limits leave room for what a session brings: a mapping, a thread, a few
 * descriptors. All is read beforehand, so that `check` says what the call would meet, and a memory
 * cgroup that is full is not asked for pages at all.
 */
#define LIMIT_NONE UINT64_MAX

/* Soft limits of /proc/PID/limits, in its units; LIMIT_NONE: unlimited, or not listed. */
struct limits {
	uint64_t as, data, nproc, nofile, memlock, fsize;
};

/* What a session needs. */
struct need {
	enum hm_mode mode;
	uint64_t region, writable; /* bytes mapped, and of them made writable */
	size_t mappings;	   /* that the process has already */
};

/* All that limits_judge looks at. */
struct room {
	struct limits limits;
	struct proc_status status;
	struct cgroup_limit memory, pids;
	uint64_t map_count;    /* vm.max_map_count */
	uint64_t user_threads; /* of its real user, where RLIMIT_NPROC could bind; else 0 */
};

/* Pure: parses /proc/PID/limits. -EINVAL if it has none of the lines. */
HM_MUST_CHECK int limits_parse(const char *text, struct limits *out);
/* Of the process; all LIMIT_NONE where they cannot be read. */
void limits_soft(const struct target *t, struct limits *out);
/*
 * What can be read; what cannot limits nothing. held: a thread of it is, and some cgroups are
 * not looked for (see cgroup_open). The errno of reading /proc/PID/status.
 */
HM_MUST_CHECK int limits_read(const struct target *t, bool held, struct room *out);
/* Pure: 0 if there is room, else a negative errno with the limit, its number and what uses it. */
HM_MUST_CHECK int limits_judge(const struct room *r, const struct need *n, struct diag *d);
/* Pure: which of the limits on threads is reached; 0 if none is, and d is left alone. */
HM_MUST_CHECK int limits_judge_thread(const struct room *r, struct diag *d);
#endif
