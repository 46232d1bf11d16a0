// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/after_trim.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define SEC ((uint64_t)1000000000)

/* 300 MiB were returned, 100 MiB are left, at second 1000. */
static struct trim_mark mark(void)
{
	return (struct trim_mark){
		.made = true,
		.at = 1000 * SEC,
		.held = 100 * MIB,
		.returned = 300 * MIB,
		.minflt = 5000,
		.rate_known = true,
		.rate = 20,
	};
}

static const struct {
	uint64_t second, held; /* MiB */
	uint64_t faults;
	enum trim_worth worth;
	const char *says;
} table[] = {
	{ 1000, 100, 0, TRIM_OPEN, "since the trim: 0 B of the 300.0 MiB that it returned (0 %)" },
	{ 1010, 130, 8000, TRIM_OPEN, "30.0 MiB of the 300.0 MiB that it returned (10 %)" },
	{ 1010, 249, 8000, TRIM_OPEN, "(50 %)" },
	{ 1010, 250, 8000, TRIM_REGROWN, "not worth it: 150.0 MiB of the 300.0 MiB" },
	{ 1060, 400, 8000, TRIM_REGROWN, "(100 %) are back after 60.0 s" },
	{ 1061, 400, 8000, TRIM_LATER, "lasted a while" },
	{ 4600, 130, 8000, TRIM_HOLDS, "the trim holds: 30.0 MiB" },
	/* more than was returned is growth of another kind */
	{ 1010, 900, 8000, TRIM_REGROWN, "300.0 MiB of the 300.0 MiB" },
	{ 1010, 50, 0, TRIM_OPEN, "0 B of" },
	/* a thousand a second, and ten times what it was */
	{ 1010, 110, 10000, TRIM_FAULTS,
	  "not worth it: 1000 minor faults a second since, 20 before" },
	{ 1010, 110, 9999, TRIM_OPEN, "10.0 MiB" },
	{ 5000, 110, 9000000, TRIM_FAULTS, "2250 minor faults" },
};

Test(after_trim, was_it_worth_it)
{
	unsigned seen = 1u << TRIM_NOTHING;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct trim_mark m = mark();
		struct after_trim a;
		char text[AFTER_TRIM_TEXT];
		enum trim_worth w;

		after_trim_of(&m, table[i].second * SEC, table[i].held * MIB,
			      5000 + table[i].faults, &a);
		w = after_trim_judge(&m, &a, text);
		cr_expect_eq(w, table[i].worth, "row %zu: %s, %s", i, trim_worth_name(w), text);
		cr_expect_not_null(strstr(text, table[i].says), "row %zu: %s", i, text);
		cr_expect_lt(strlen(text), AFTER_TRIM_TEXT - 1);
		cr_expect_eq(a.faults, table[i].faults);
		cr_expect_eq(a.faulted, table[i].faults * 4096);
		seen |= 1u << w;
	}
	cr_assert_eq(seen, (1u << (TRIM_NOTHING + 1)) - 1, "a judgement without a row");
}

Test(after_trim, rates)
{
	struct trim_mark m = mark();
	struct after_trim a;
	char text[AFTER_TRIM_TEXT];

	after_trim_of(&m, 1030 * SEC, 160 * MIB, 5600, &a);
	cr_assert_eq(a.seconds, 30);
	cr_assert_eq(a.back, 60 * MIB);
	cr_assert_float_eq(a.back_share, 0.2, 1e-9);
	cr_assert_float_eq(a.per_minute, (double)(120 * MIB), 1);
	cr_assert_float_eq(a.rate, 20, 1e-9);
	/* the fault rate before it is not known: nothing is said of it */
	m.rate_known = false;
	after_trim_of(&m, 1010 * SEC, 110 * MIB, 5000 + 900000, &a);
	cr_assert_eq(after_trim_judge(&m, &a, text), TRIM_OPEN);
}

Test(after_trim, little_was_returned)
{
	struct trim_mark m = mark();
	struct after_trim a;
	char text[AFTER_TRIM_TEXT];

	m.returned = MIB - 1;
	after_trim_of(&m, 1010 * SEC, 900 * MIB, 900000, &a);
	cr_assert_eq(after_trim_judge(&m, &a, text), TRIM_NOTHING);
	m.returned = 0;
	after_trim_of(&m, 1010 * SEC, 900 * MIB, 900000, &a);
	cr_assert_eq(a.back, 0);
	cr_assert_eq(a.back_share, 0);
	cr_assert_eq(after_trim_judge(&m, &a, text), TRIM_NOTHING);
}

Test(after_trim, any_number_does)
{
	static const uint64_t v[] = { 0, 1, UINT64_MAX / 2, UINT64_MAX };

	for (unsigned i = 0; i < 4 * 4 * 4 * 4 * 4; i++) {
		struct trim_mark m = mark();
		struct after_trim a;
		char text[AFTER_TRIM_TEXT];

		m.at = v[i % 4];
		m.held = m.minflt = v[i / 4 % 4];
		m.returned = v[i / 16 % 4];
		after_trim_of(&m, v[i / 64 % 4], v[i / 256], v[i / 256], &a);
		cr_assert(a.per_minute >= 0 && a.per_minute <= 9e18);
		cr_assert(a.back_share >= 0 && a.back_share <= 1);
		cr_assert_leq(after_trim_judge(&m, &a, text), TRIM_NOTHING);
		cr_assert_lt(strlen(text), AFTER_TRIM_TEXT - 1);
	}
}
