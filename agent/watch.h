// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_WATCH_H
#define HM_WATCH_H
#include "../inject/usage.h"
#include "after_trim.h"
#include "growth.h"
#include "pace.h"

/*
 * A process over time: what is cheap is read for each line, the heap only as often as its reading
 * is cheap too. Pure: readings in, lines out.
 */
struct watch {
	uint64_t every; /* ns between two lines */
	size_t lines;
	struct pace pace; /* of the looks at the heap */
	size_t looks;
	bool begun, looked;
	struct growth_sample first;		     /* of the first line */
	struct growth_sample first_look, look;	     /* of the first and the last look */
	bool fresh;				     /* look is of the line that comes next */
	uint64_t began_at, at, first_minflt, minflt; /* of the first and the last line */
};

/* What one line is made of. */
struct watch_reading {
	uint64_t at; /* ns, CLOCK_MONOTONIC */
	struct usage usage;
	uint64_t minflt;
};

struct watch_line {
	struct watch_reading now;
	bool rate_known;
	double rate; /* minor faults per second since the line before */
	/* of the last look; not divided: live and retained are not known */
	struct growth_sample look;
	bool looked;
	bool older;	    /* that look was made for an earlier line, */
	double age;	    /* so many seconds before this one */
	enum growth growth; /* since the first line */
	uint64_t grown;	    /* bytes, RSS and swap; 0 for GROWTH_NONE */
	char text[GROWTH_TEXT];
	bool after; /* there was a trim */
	struct after_trim trim;
};

void watch_begin(struct watch *w, uint64_t every);
/* What was read so far is of another time: growth is counted from the next line on. */
void watch_anew(struct watch *w);
/* Is the heap to be looked at for the next line? */
bool watch_due(const struct watch *w, uint64_t now);
/* It was, for a line of time at; the look took cost ns of CPU time. */
void watch_looked(struct watch *w, uint64_t at, uint64_t cost, const struct makeup *m,
		  const struct facts *f);
/* It could not be: the next one comes when it is due again. */
void watch_not_looked(struct watch *w, uint64_t at, uint64_t cost);
void watch_next(struct watch *w, const struct watch_reading *r, const struct trim_mark *mark,
		struct watch_line *out);
/* Minor faults per second from the first line to the last one; false where there are not two. */
bool watch_rate(const struct watch *w, double *rate);
#endif
