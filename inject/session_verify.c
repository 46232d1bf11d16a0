// SPDX-License-Identifier: GPL-3.0-or-later
/* The end, and the proof that nothing is left. */
#include "session_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 4096

static bool has_our_descriptor(const struct target *t)
{
	DIR *dir = session_fd_dir(t);
	struct dirent *e;
	bool found = false;

	if (!dir)
		return false;
	for (int i = 0; !found && i < DESCRIPTORS_MAX && (e = readdir(dir)) != NULL; i++) {
		char link[64] = "";
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		found = n > 0 &&
			strncmp(link, "/memfd:" HM_NAME, sizeof("/memfd:" HM_NAME) - 1) == 0;
	}
	closedir(dir);
	return found;
}

void session_verify(struct session *s, int rc, char *warn, size_t size)
{
	if (rc && rc != -EBUSY) {
		snprintf(warn, size,
			 "the proxy thread did not leave in order (%s); the next run cleans up",
			 strerror(-rc));
		return;
	}
	if (rc || session_maps(s, NULL))
		return;
	for (size_t i = 0; i < s->maps.n; i++) {
		uint64_t base;

		if (region_owns(&s->maps.v[i], &base) && base == s->r.base) {
			snprintf(warn, size,
				 "memory at 0x%" PRIx64
				 " remains in the target; the next run removes it",
				 s->maps.v[i].start);
			return;
		}
	}
	if (has_our_descriptor(s->t))
		snprintf(warn, size, "a descriptor of ours remains in the target");
}
