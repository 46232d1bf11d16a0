// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CGROUP_H
#define HM_CGROUP_H
#include "limits.h"

enum cgroup_kind { CGROUP_MEMORY, CGROUP_PIDS };

/*
 * The tightest limit of this kind (cgroups(7), both versions) that the process is under: in its
 * cgroup or one above it, as far up as the mount shows. The path is empty where there is none or
 * nothing can be read. mountinfo is the text of /proc/self/mountinfo, cgroup that of
 * /proc/PID/cgroup.
 */
void cgroup_tightest(const char *mountinfo, const char *cgroup, enum cgroup_kind kind,
		     struct cgroup_limit *out);
#endif
