// SPDX-License-Identifier: GPL-3.0-or-later
#include "after_trim.h"

#include <stdio.h>

#include "size.h"

#define PAGE 4096ULL
#define MOST 9e18 /* still fits into 64 bits with a sign */

const struct after_trim_limits after_trim_limits = {
	.soon = 60,
	.back = 0.5,
	.least = (uint64_t)1 << 20,
	.times = 10,
	.faults = 1000,
};

const char *trim_worth_name(enum trim_worth w)
{
	static const char *const names[] = { "open",	"holds",  "later",
					     "regrown", "faults", "nothing" };

	return names[w];
}

void after_trim_of(const struct trim_mark *m, uint64_t now, uint64_t held, uint64_t minflt,
		   struct after_trim *out)
{
	*out = (struct after_trim){
		.seconds = now > m->at ? (double)(now - m->at) / 1e9 : 0,
		.faults = minflt > m->minflt ? minflt - m->minflt : 0,
		.back = held > m->held ? held - m->held : 0,
	};
	/* what comes on top of it is growth of another kind */
	if (out->back > m->returned)
		out->back = m->returned;
	if (__builtin_mul_overflow(out->faults, PAGE, &out->faulted))
		out->faulted = UINT64_MAX;
	if (m->returned)
		out->back_share = (double)out->back / (double)m->returned;
	if (out->seconds <= 0)
		return;
	out->rate = (double)out->faults / out->seconds;
	out->per_minute = (double)out->back * 60 / out->seconds;
	if (out->per_minute > MOST)
		out->per_minute = MOST;
}

static enum trim_worth worth(const struct trim_mark *m, const struct after_trim *a)
{
	const struct after_trim_limits *l = &after_trim_limits;

	if (m->returned < l->least)
		return TRIM_NOTHING;
	if (a->back_share >= l->back)
		return a->seconds <= l->soon ? TRIM_REGROWN : TRIM_LATER;
	if (m->rate_known && a->rate >= l->faults && a->rate >= l->times * m->rate)
		return TRIM_FAULTS;
	return a->seconds > l->soon ? TRIM_HOLDS : TRIM_OPEN;
}

enum trim_worth after_trim_judge(const struct trim_mark *m, const struct after_trim *a,
				 char text[AFTER_TRIM_TEXT])
{
	static const char *const begins[] = {
		[TRIM_OPEN] = "since the trim",
		[TRIM_HOLDS] = "the trim holds",
		[TRIM_LATER] = "the trim lasted a while",
		[TRIM_REGROWN] = "the trim was not worth it",
	};
	char back[SIZE_TEXT], all[SIZE_TEXT], time[SIZE_TEXT];
	enum trim_worth w = worth(m, a);

	time_format((uint64_t)(a->seconds * 1e9), time);
	size_format(a->back, back);
	size_format(m->returned, all);
	if (w == TRIM_NOTHING)
		snprintf(text, AFTER_TRIM_TEXT,
			 "the trim returned %s: too little to tell what came of it", all);
	else if (w == TRIM_FAULTS)
		snprintf(text, AFTER_TRIM_TEXT,
			 "the trim was not worth it: %.0f minor faults a second since, %.0f before",
			 a->rate, m->rate);
	else
		snprintf(text, AFTER_TRIM_TEXT,
			 "%s: %s of the %s that it returned (%.0f %%) are back after %s", begins[w],
			 back, all, a->back_share * 100, time);
	return w;
}
