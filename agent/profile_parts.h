// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROFILE_PARTS_H
#define HM_PROFILE_PARTS_H
#include "profile.h"
#include "scan.h"

/* What the symbol section says of the mapping that begins there. */
struct profile_id {
	uint64_t start;
	const char *build_id;
};

/* A dump that is being read; for profile.c and its parts. */
struct parser {
	struct scan text; /* what is still to be read */
	struct profile *p;
	size_t stack_cap, map_cap, name_cap, id_cap;
	struct profile_id *id; /* until the mappings are read */
	size_t ids;
	bool one_line;	  /* records are "COUNTS @ PC..." */
	bool mappings;	  /* their heading was there */
	size_t frames;	  /* of all stacks */
	size_t most;	  /* where there is too much of something: so many are taken */
	const char *what; /* and of what */
};

/* All return -E2BIG, with most and what, where there is too much of something. */
/* Up to the line that begins with "---". -ENOMEM. */
HM_MUST_CHECK int profile_read_symbols(struct parser *x);
/* Up to the heading of the mappings. -ENOMEM. */
HM_MUST_CHECK int profile_read_stacks(struct parser *x);
/* To the end. -ENOMEM. */
HM_MUST_CHECK int profile_read_maps(struct parser *x);
#endif
