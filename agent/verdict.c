// SPDX-License-Identifier: GPL-3.0-or-later
#include "verdict.h"

#include <stdio.h>

#include "size.h"

#define MIB ((uint64_t)1 << 20)

const struct verdict_limits verdict_limits = {
	.retained_share = 0.10,
	.retained_min = 16 * MIB,
	.fragmented_share = 0.25,
	.majority = 0.50,
	.small = 64 * MIB,
	.near_limit = 0.80,
};

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {
		"retained",	 "fragmented", "live",	  "go-heap",
		"not-allocator", "locked",     "healthy", "undecided",
	};

	return names[v];
}

uint64_t makeup_rest(const struct makeup *m)
{
	uint64_t known = m->retained + m->fragmented + m->live + m->locked + m->go + m->jvm +
			 m->stacks + m->files + m->shm + m->other + m->unasked + m->untold;

	return m->rss > known ? m->rss - known : 0;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return (unsigned)(share(part, whole) * 100 + 0.5);
}

static bool near_limit(const struct makeup *m)
{
	return m->limit != UINT64_MAX && m->room != UINT64_MAX &&
	       share(m->limit - (m->room < m->limit ? m->room : m->limit), m->limit) >=
		       verdict_limits.near_limit;
}

/* The largest part that is none of an allocator's. */
static uint64_t largest_other(const struct makeup *m, const char **name)
{
	const struct {
		uint64_t bytes;
		const char *name;
	} parts[] = {
		{ m->stacks, "thread stacks" },
		{ m->files, "mapped files" },
		{ m->shm, "shared memory and tmpfs" },
		{ m->jvm, "the JVM's own heap and code" },
		{ m->other, "anonymous memory of no known allocator" },
	};
	uint64_t most = 0;

	*name = parts[0].name;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].bytes > most) {
			most = parts[i].bytes;
			*name = parts[i].name;
		}
	return most;
}

/* "FACT: 300.4 MiB of 302.1 MiB (99 %) THEN" */
static enum verdict say(char text[VERDICT_TEXT], enum verdict v, uint64_t part, uint64_t rss,
			const char *then)
{
	char a[SIZE_TEXT], b[SIZE_TEXT];

	snprintf(text, VERDICT_TEXT, "%s of %s (%u %%) %s", size_format(part, a),
		 size_format(rss, b), percent(part, rss), then);
	return v;
}

/* Is in use, or was, by an allocator that we can look into. */
static enum verdict allocators(const struct makeup *m, char text[VERDICT_TEXT])
{
	const struct verdict_limits *l = &verdict_limits;

	if (share(m->fragmented, m->rss) >= l->fragmented_share)
		return say(text, VERDICT_FRAGMENTED, m->fragmented, m->rss,
			   "are free inside an allocator, but on pages with live blocks or at the "
			   "end of an arena: no call returns them");
	if (share(m->live, m->rss) >= l->majority)
		return say(text, VERDICT_LIVE, m->live, m->rss,
			   "are in use in the allocator: a leak or a cache, not retained memory");
	return VERDICT_UNDECIDED;
}

enum verdict verdict_of(const struct makeup *m, char text[VERDICT_TEXT])
{
	const struct verdict_limits *l = &verdict_limits;
	uint64_t elsewhere = m->stacks + m->files + m->shm + m->jvm + m->other, most;
	const char *name;
	enum verdict v;
	char buf[VERDICT_TEXT / 2];

	if (m->retained >= l->retained_min && share(m->retained, m->rss) >= l->retained_share)
		return say(text, VERDICT_RETAINED, m->retained, m->rss,
			   "are free and would be returned by a trim");
	if (m->locked >= l->retained_min && share(m->locked, m->rss) >= l->retained_share)
		return say(text, VERDICT_LOCKED, m->locked, m->rss,
			   "are free, but locked or of huge pages: no call returns them");
	if (m->rss < l->small && !near_limit(m))
		return say(text, VERDICT_HEALTHY, m->retained, m->rss,
			   "would be returned by a trim: a small process, nothing to gain");
	if (share(m->go, m->rss) >= l->majority)
		return say(
			text, VERDICT_GO_HEAP, m->go, m->rss,
			"are Go's own heap and runtime: Go's profiler and GOMEMLIMIT are for it");
	v = allocators(m, text);
	if (v != VERDICT_UNDECIDED)
		return v;
	most = largest_other(m, &name);
	if (share(elsewhere, m->rss) >= l->majority) {
		snprintf(buf, sizeof(buf), "are not an allocator's; most of it, %u %%, are %s",
			 percent(most, m->rss), name);
		return say(text, VERDICT_NOT_ALLOCATOR, elsewhere, m->rss, buf);
	}
	if (m->untold > m->unasked)
		return say(text, VERDICT_UNDECIDED, m->untold, m->rss,
			   "belong to an allocator that does not tell what of it is in use");
	if (m->unasked)
		return say(text, VERDICT_UNDECIDED, m->unasked, m->rss,
			   "belong to an allocator that only a call could ask");
	return say(text, VERDICT_UNDECIDED, m->live, m->rss,
		   "are in use, and no other part is large either");
}
