// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/verdict.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB  ((uint64_t)1 << 20)
#define NONE .limit = UINT64_MAX, .room = UINT64_MAX

static const struct {
	enum verdict verdict;
	struct makeup m; /* in MiB; see below */
	const char *says;
} table[] = {
	{ VERDICT_RETAINED,
	  { .rss = 300, .retained = 290, NONE },
	  "290.0 MiB of 300.0 MiB (97 %)" },
	/* what can be returned is said even when most is in use */
	{ VERDICT_RETAINED, { .rss = 4000, .retained = 500, .live = 3400, NONE }, "(13 %)" },
	{ VERDICT_LIVE, { .rss = 4000, .retained = 300, .live = 3400, NONE }, "leak or a cache" },
	{ VERDICT_FRAGMENTED,
	  { .rss = 4000, .fragmented = 1500, .live = 2200, NONE },
	  "live blocks" },
	{ VERDICT_LIVE, { .rss = 4000, .fragmented = 900, .live = 2200, NONE }, "in use" },
	{ VERDICT_GO_HEAP, { .rss = 4000, .go = 2500, .live = 1000, NONE }, "GOMEMLIMIT" },
	{ VERDICT_NOT_ALLOCATOR,
	  { .rss = 1000, .stacks = 500, .files = 200, NONE },
	  "thread stacks" },
	{ VERDICT_NOT_ALLOCATOR, { .rss = 1000, .jvm = 700, .live = 200, NONE }, "JVM" },
	{ VERDICT_NOT_ALLOCATOR, { .rss = 1000, .shm = 900, NONE }, "90 %, are shared memory" },
	{ VERDICT_NOT_ALLOCATOR, { .rss = 1000, .other = 600, NONE }, "no known allocator" },
	{ VERDICT_LOCKED, { .rss = 300, .locked = 250, .live = 50, NONE }, "locked" },
	{ VERDICT_HEALTHY, { .rss = 20, .live = 12, .files = 8, NONE }, "small process" },
	{ VERDICT_LIVE, { .rss = 20, .live = 15, .limit = 25, .room = 4 }, "in use" },
	{ VERDICT_HEALTHY, { .rss = 20, .live = 15, .limit = 25, .room = 10 }, "small" },
	{ VERDICT_UNDECIDED, { .rss = 1000, .unasked = 900, NONE }, "only a call" },
	{ VERDICT_UNDECIDED, { .rss = 1000, .untold = 900, NONE }, "does not tell" },
	{ VERDICT_UNDECIDED, { .rss = 1000, .live = 400, .files = 300, .go = 300, NONE }, "40 %" },
	{ VERDICT_UNDECIDED, { .rss = 1000, NONE }, "0 B" },
	/* ten megabytes are not worth a word */
	{ VERDICT_LIVE, { .rss = 90, .retained = 10, .live = 80, NONE }, "in use" },
};

static struct makeup in_bytes(struct makeup m)
{
	uint64_t *v[] = { &m.rss,   &m.limit,  &m.room,	 &m.retained, &m.fragmented,
			  &m.live,  &m.locked, &m.go,	 &m.jvm,      &m.stacks,
			  &m.files, &m.shm,    &m.other, &m.unasked,  &m.untold };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (*v[i] != UINT64_MAX)
			*v[i] *= MIB;
	return m;
}

Test(verdict, each_kind)
{
	unsigned seen = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct makeup m = in_bytes(table[i].m);
		char text[VERDICT_TEXT];
		enum verdict v = verdict_of(&m, text);

		cr_expect_eq(v, table[i].verdict, "row %zu: %s, %s", i, verdict_name(v), text);
		cr_expect_not_null(strstr(text, table[i].says), "row %zu: %s", i, text);
		cr_expect_lt(strlen(text), VERDICT_TEXT - 1);
		seen |= 1u << v;
	}
	cr_assert_eq(seen, (1u << (VERDICT_UNDECIDED + 1)) - 1, "a verdict without a row");
}

Test(verdict, nothing_at_all)
{
	struct makeup m = { NONE };
	char text[VERDICT_TEXT];

	cr_assert_eq(verdict_of(&m, text), VERDICT_HEALTHY);
	cr_assert_eq(makeup_rest(&m), 0);
	m.rss = 10;
	m.live = 4;
	m.files = 3;
	cr_assert_eq(makeup_rest(&m), 3);
	m.files = 30;
	cr_assert_eq(makeup_rest(&m), 0);
}
