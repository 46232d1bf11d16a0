// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CGROUP_PLACE_H
#define HM_CGROUP_PLACE_H
#include <limits.h>
#include <stddef.h>

#include "diag.h"

#define CGROUP_PATH ((size_t)PATH_MAX)

/*
 * Where the cgroup of a process is, for one controller. All here are pure functions over the text
 * of two files (cgroups(7), proc_pid_mountinfo(5)). Both show paths as our cgroup namespace has
 * them, whichever process they are of (cgroup_namespaces(7)): what lies outside begins with "/..".
 */
struct cgroup_place {
	int version;		 /* 1 or 2; 0: the process is in no hierarchy with the controller */
	char path[CGROUP_PATH];	 /* in /proc/PID/cgroup */
	char mount[CGROUP_PATH]; /* mount point of the hierarchy */
	char below[CGROUP_PATH]; /* the cgroup below the mount point: "" or "/a/b" */
};

/*
 * Version and path, from the text of /proc/PID/cgroup: the line of version 1 that has the
 * controller, else that of version 2, as a controller is in one hierarchy only. -ENOENT if there is
 * neither; version is 0 then.
 */
HM_MUST_CHECK int cgroup_parse_self(const char *text, const char *controller,
				    struct cgroup_place *out);
/*
 * Adds mount and below, from the text of a mountinfo: of the mounts of that hierarchy that show the
 * cgroup, the one that shows most of what is above it. Linear in the length of the text. -ENOENT if
 * none shows it.
 */
HM_MUST_CHECK int cgroup_parse_mounts(const char *text, const char *controller,
				      struct cgroup_place *out);
#endif
