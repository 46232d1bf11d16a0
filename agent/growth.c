// SPDX-License-Identifier: GPL-3.0-or-later
#include "growth.h"

#include <stdio.h>

#include "size.h"

const struct growth_limits growth_limits = {
	.floor = (uint64_t)256 << 10,
	.bytes = (uint64_t)4 << 20,
	.share = 0.01,
	.unasked = 0.01,
};

/* A year, in seconds: what lies further apart has no rate worth the name. */
#define LONGEST 31536000.0

const char *growth_name(enum growth g)
{
	static const char *const names[] = { "none", "live", "retained", "not-allocator",
					     "unknown" };

	return names[g];
}

void growth_sample_of(const struct makeup *m, const struct facts *f, double at,
		      struct growth_sample *out)
{
	*out = (struct growth_sample){
		.at = at,
		.rss = m->rss,
		.swap = facts_get(f, FACT_SWAP),
		.live = m->live + m->go,
		.retained = m->retained + m->fragmented + m->locked,
		.other = m->jvm + m->stacks + m->files + m->shm + m->other + makeup_rest(m),
		.minflt = facts_get(f, FACT_MINFLT),
		.divided = (double)m->unasked <= growth_limits.unasked * (double)m->rss,
	};
}

static uint64_t more(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static uint64_t all_of(const struct growth_sample *s)
{
	return s->rss > UINT64_MAX - s->swap ? UINT64_MAX : s->rss + s->swap;
}

static bool counts(uint64_t grown, uint64_t rss)
{
	const struct growth_limits *l = &growth_limits;

	return grown >= l->floor && (grown >= l->bytes || (double)grown >= l->share * (double)rss);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return part < whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 100;
}

#define SPAN_TEXT (2 * SIZE_TEXT + 16)
/* " in 5.0 m (24.0 MiB/min)", or "" where the times tell nothing. */
static const char *span(const struct growth_sample *a, const struct growth_sample *b,
			uint64_t bytes, char buf[SPAN_TEXT])
{
	double seconds = b->at - a->at, rate;
	char time[SIZE_TEXT], size[SIZE_TEXT];

	buf[0] = '\0';
	/* written so that no number at all (NaN) is none either */
	if (!(seconds >= 0.001 && seconds <= LONGEST))
		return buf;
	time_format((uint64_t)(seconds * 1e9), time);
	rate = (double)bytes * 60 / seconds;
	if (rate < 9e18)
		snprintf(buf, SPAN_TEXT, " in %s (%s/min)", time,
			 size_format((uint64_t)rate, size));
	else
		snprintf(buf, SPAN_TEXT, " in %s", time);
	return buf;
}

static enum growth not_grown(const struct growth_sample *a, const struct growth_sample *b,
			     char text[GROWTH_TEXT])
{
	uint64_t before = all_of(a), after = all_of(b), live = more(a->live, b->live);
	const char *what = a->swap || b->swap ? "RSS and swap have" : "RSS has";
	char size[SIZE_TEXT], taken[SIZE_TEXT], when[SPAN_TEXT];
	int n;

	if (before > after && counts(before - after, a->rss))
		n = snprintf(text, GROWTH_TEXT, "%s shrunk by %s%s", what,
			     size_format(before - after, size), span(a, b, before - after, when));
	else
		n = snprintf(text, GROWTH_TEXT, "%s not grown by as much as counts: %s%s", what,
			     size_format_delta((int64_t)(after - before), size),
			     span(a, b, more(before, after), when));
	/* a leak that eats up what was free shows in no RSS */
	if (a->divided && b->divided && counts(live, a->rss))
		snprintf(text + n, GROWTH_TEXT - (size_t)n,
			 "; but %s more are in use, which were free before",
			 size_format(live, taken));
	return GROWTH_NONE;
}

enum growth growth_of(const struct growth_sample *a, const struct growth_sample *b,
		      char text[GROWTH_TEXT])
{
	static const char *const says[] = {
		[GROWTH_LIVE] = "more are in use in an allocator: a leak or a cache",
		[GROWTH_RETAINED] = "more are free inside an allocator: not a leak",
		[GROWTH_NOT_ALLOCATOR] =
			"more are no allocator's: stacks, files, shared or other memory",
	};
	const uint64_t part[] = {
		[GROWTH_LIVE] = more(a->live, b->live),
		[GROWTH_RETAINED] = more(a->retained, b->retained),
		[GROWTH_NOT_ALLOCATOR] = more(a->other, b->other),
	};
	uint64_t grown = more(all_of(a), all_of(b)), swapped = more(a->swap, b->swap);
	char size[SIZE_TEXT], of[SIZE_TEXT], when[SPAN_TEXT];
	enum growth g = GROWTH_LIVE;
	int n;

	if (!counts(grown, a->rss))
		return not_grown(a, b, text);
	for (enum growth i = GROWTH_RETAINED; i <= GROWTH_NOT_ALLOCATOR; i++)
		if (part[i] > part[g])
			g = i;
	n = snprintf(text, GROWTH_TEXT, "%s grown by %s%s; ",
		     a->swap || b->swap ? "RSS and swap have" : "RSS has", size_format(grown, size),
		     span(a, b, grown, when));
	text += n;
	if (!a->divided || !b->divided) {
		snprintf(text, GROWTH_TEXT - (size_t)n,
			 "of what is not known: used and free memory were not told apart");
		return GROWTH_UNKNOWN;
	}
	if (swapped > part[g]) {
		snprintf(text, GROWTH_TEXT - (size_t)n,
			 "of what is not known: %s of it (%u %%) are in swap",
			 size_format(swapped, of), percent(swapped, grown));
		return GROWTH_UNKNOWN;
	}
	/* a part may grow by more than the whole, where another one shrinks */
	if (part[g] > grown)
		snprintf(text, GROWTH_TEXT - (size_t)n, "%s %s", size_format(part[g], of), says[g]);
	else
		snprintf(text, GROWTH_TEXT - (size_t)n, "%s (%u %% of it) %s",
			 size_format(part[g], of), percent(part[g], grown), says[g]);
	return g;
}
