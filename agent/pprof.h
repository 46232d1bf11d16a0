// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PPROF_H
#define HM_PPROF_H
#include "calls.h"

/*
 * A heap profile as pprof reads it: the message perftools.profiles.Profile (profile.proto of
 * google/pprof), compressed as gzip does. inuse_objects and inuse_space, and before them
 * alloc_objects and alloc_space where the profile has these; the period is space in bytes.
 * Mappings keep their files and build-ids, so that what has no name here can still get one there.
 */

struct pprof_extra {
	/* hex, NULL: not known; of map i of the profile, where the dump itself does not say */
	const char *(*build_id)(void *arg, size_t map);
	void *arg;
	int64_t time_ns; /* since 1970; 0: not known */
};

/* The gzip file's bytes, which the caller frees. -ENOMEM. extra may be NULL. */
HM_MUST_CHECK int pprof_encode(const struct calls *c, const struct pprof_extra *extra,
			       unsigned char **out, size_t *len);
/* The message as it is before it is compressed. */
HM_MUST_CHECK int pprof_message(const struct calls *c, const struct pprof_extra *extra,
				struct bytes *out);
#endif
