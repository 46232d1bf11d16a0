// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CTL_PATH_H
#define HM_CTL_PATH_H
#include "mallctl.h"

/* The parts of a mallctl name that are numbers: which arena, which size class. Pure. */

/* What an index counts, and so which name says how many there are. */
enum ctl_range {
	RANGE_ARENAS,  /* arenas.narenas */
	RANGE_BINS,    /* arenas.nbins */
	RANGE_LARGE,   /* arenas.nlextents */
	RANGE_UNKNOWN, /* no name says it: mallctl answers ENOENT behind the last one */
};

#define CTL_INDICES 2
struct ctl_path {
	const struct ctl_name *row;
	unsigned n;	/* how many indices the name has */
	unsigned depth; /* its parts, as mallctlnametomib counts them */
	struct ctl_index {
		unsigned at; /* which part it is */
		enum ctl_range range;
		bool all; /* `all` stands there */
		uint64_t value;
	} index[CTL_INDICES];
};

/*
 * Takes name, which ctl_find has found in row, apart. A number too large for 32 bits is UINT32_MAX.
 * -EINVAL if an index is not filled in.
 */
HM_MUST_CHECK int ctl_path_parse(const struct ctl_name *row, const char *name,
				 struct ctl_path *out);
bool ctl_path_sweeps(const struct ctl_path *p); /* does `all` stand anywhere? */
/* The name with these numbers in the place of its indices. -ENAMETOOLONG. */
HM_MUST_CHECK int ctl_path_name(const struct ctl_path *p, const uint64_t index[CTL_INDICES],
				char *buf, size_t size);
/*
 * Is index i of name below have, the number of those that there are (0: not known)? jemalloc itself
 * lets the number one behind the last pass in places, for all of them or for what lies behind its
 * tables. Exit 1 with both numbers.
 */
HM_MUST_CHECK int ctl_path_check(const struct ctl_path *p, unsigned i, const char *name,
				 uint64_t have, struct diag *d);
/* "arenas.narenas" and so on, NULL for RANGE_UNKNOWN. */
const char *ctl_range_name(enum ctl_range r);
/* Does the row begin so? A number or all in prefix stands for any index: "arena.0.d". */
bool ctl_begins(const struct ctl_name *row, const char *prefix);
#endif
