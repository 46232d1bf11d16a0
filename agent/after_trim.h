// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_AFTER_TRIM_H
#define HM_AFTER_TRIM_H
#include <stdbool.h>
#include <stdint.h>

/* What becomes of a trim: what it gave back comes again, or it does not. Pure. */

/* A trim that was made, and the process right after it. */
struct trim_mark {
	bool made;
	uint64_t at;	   /* ns, CLOCK_MONOTONIC */
	uint64_t held;	   /* anonymous memory and swap, bytes */
	uint64_t returned; /* bytes, counted likewise */
	uint64_t minflt;
	bool rate_known; /* somebody has watched it before */
	double rate;	 /* minor faults per second then */
};

struct after_trim {
	double seconds; /* since the trim */
	uint64_t faults;
	/*
	 * Bytes that these faults have brought in, at most: a fault maps one page of 4 KiB or finds
	 * one that was there (a page of a file, a copy after fork(2)). A huge page is mapped by one
	 * fault too: where there are such, it can be more.
	 */
	uint64_t faulted;
	double rate;   /* faults per second */
	uint64_t back; /* bytes that have come again, of those that were returned */
	double back_share;
	double per_minute; /* bytes that came again, per minute */
};

/* When a trim was not worth it. One table. */
struct after_trim_limits {
	double soon;	/* s: what is back sooner was in use all the time */
	double back;	/* share of what was returned: so much is "back" */
	uint64_t least; /* bytes: of less that was returned nothing can be said */
	double times;	/* the fault rate is so many times what it was, */
	double faults;	/* and so many a second: each costs about a microsecond */
};
extern const struct after_trim_limits after_trim_limits;

enum trim_worth {
	TRIM_OPEN,    /* it is too early to tell */
	TRIM_HOLDS,   /* little of it is back after a while */
	TRIM_LATER,   /* it is back, but it lasted a while */
	TRIM_REGROWN, /* not worth it: back at once */
	TRIM_FAULTS,  /* not worth it: the process is busy faulting it in again */
	TRIM_NOTHING, /* it returned nothing to speak of */
};
const char *trim_worth_name(enum trim_worth w); /* "open" "holds" "later" "regrown" ... */

/* held and minflt as they are now, in units of the mark. */
void after_trim_of(const struct trim_mark *m, uint64_t now, uint64_t held, uint64_t minflt,
		   struct after_trim *out);
#define AFTER_TRIM_TEXT 256
/* Writes a sentence to text. */
enum trim_worth after_trim_judge(const struct trim_mark *m, const struct after_trim *a,
				 char text[AFTER_TRIM_TEXT]);
#endif
