// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_VERDICT_H
#define HM_VERDICT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Leak or retained? Pure: what the resident memory is made of in, one word and its evidence out. */
enum verdict {
	VERDICT_RETAINED,      /* a trim or purge would return a good part */
	VERDICT_FRAGMENTED,    /* free, but live blocks on the same pages hold it */
	VERDICT_LIVE,	       /* in use: a leak or a cache */
	VERDICT_GO_HEAP,       /* Go's own heap */
	VERDICT_NOT_ALLOCATOR, /* stacks, files, shared or other anonymous memory */
	VERDICT_LOCKED,	       /* locked memory: no call returns it */
	VERDICT_HEALTHY,
	VERDICT_UNDECIDED,
};
const char *verdict_name(enum verdict v); /* "retained" ... "not-allocator" ... */

/* Resident bytes, each counted in one place only; what is in none of them is not known. */
struct makeup {
	uint64_t rss;
	uint64_t limit, room; /* of the cgroup: UINT64_MAX where there is none */
	uint64_t retained;    /* free, and returned by a call */
	uint64_t
		fragmented; /* free, on pages with something live, or held at the end of an arena */
	uint64_t live;	    /* in use in an allocator, thread caches included */
	uint64_t locked;    /* free and locked, or of huge pages: a call would not return it */
	uint64_t go;	    /* Go's heap and runtime */
	uint64_t jvm;
	uint64_t stacks, files, shm, other;
	uint64_t unasked; /* of an allocator that only a call could divide */
	uint64_t untold;  /* of one that does not tell what of it is in use */
};

/* From what share of the RSS, or from how many bytes on, something counts. One table. */
struct verdict_limits {
	double retained_share;	 /* of the RSS: worth a trim */
	uint64_t retained_min;	 /* bytes */
	double fragmented_share; /* of the RSS */
	double majority;	 /* of the RSS: the one word for all of it */
	uint64_t small;		 /* a process below this has no problem, */
	double near_limit;	 /* unless its cgroup is as full as this */
};
extern const struct verdict_limits verdict_limits;

#define VERDICT_TEXT 256
/* Writes one sentence of evidence to text. */
enum verdict verdict_of(const struct makeup *m, char text[VERDICT_TEXT]);
/* The part that no makeup field claims. */
uint64_t makeup_rest(const struct makeup *m);
#endif
