// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GROWTH_H
#define HM_GROWTH_H
#include "facts.h"
#include "verdict.h"

/* What has grown between two looks at one process? Pure: numbers in, one word and evidence out. */
enum growth {
	GROWTH_NONE,	      /* it has not grown by as much as counts, or has shrunk */
	GROWTH_LIVE,	      /* what is in use: a leak or a cache */
	GROWTH_RETAINED,      /* what is free inside an allocator */
	GROWTH_NOT_ALLOCATOR, /* stacks, files, shared and other memory */
	GROWTH_UNKNOWN,	      /* it has grown, and of what cannot be told: null in JSON */
};
const char *growth_name(enum growth g); /* "none" "live" "retained" "not-allocator" "unknown" */

/* Bytes, but for at and minflt. The parts are resident ones and no part is in two of them. */
struct growth_sample {
	double at; /* seconds, of any origin; the same one for both */
	uint64_t rss, swap;
	uint64_t live;	   /* in use in an allocator, Go's heap included */
	uint64_t retained; /* free inside an allocator, whether a call returns it or not */
	uint64_t other;	   /* all the rest */
	uint64_t minflt;   /* a counter */
	bool divided;	   /* live, retained and other are known */
};
/* Of a makeup; swap and minor faults are facts. Not divided where an allocator was not asked. */
void growth_sample_of(const struct makeup *m, const struct facts *f, double at,
		      struct growth_sample *out);

/* What is too little to be growth, and why. One table. */
struct growth_limits {
	uint64_t floor; /* bytes: less is noise whatever the size of the process, as a thread that
			   starts (stack, cache) or a file that is read */
	uint64_t bytes; /* so much counts in a process of any size: minutes of it fill gigabytes */
	double share;	/* of the RSS: so much counts where it is less than bytes */
	double unasked; /* of the RSS: of an allocator that was not asked, to be left aside */
};
extern const struct growth_limits growth_limits;

#define GROWTH_TEXT 320
/*
 * From a, the earlier one, to b. RSS and swap together decide whether there is growth, its largest
 * part what it is. Writes one sentence of evidence to text: bytes, share, and the rate where the
 * two times tell one.
 */
enum growth growth_of(const struct growth_sample *a, const struct growth_sample *b,
		      char text[GROWTH_TEXT]);
#endif
