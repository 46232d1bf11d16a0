// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../repl/progress.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect(const struct phase *p, unsigned columns, const char *want)
{
	char buf[64];

	cr_expect_eq(progress_text("trim", p, 3, columns, buf, sizeof(buf)), strlen(want), "%s",
		     buf);
	cr_expect_str_eq(buf, want);
}

Test(progress, text)
{
	expect(&(struct phase){ 0 }, 80, "trim, 3 s");
	expect(&(struct phase){ .what = "reading" }, 80, "trim: reading, 3 s");
	expect(&(struct phase){ .what = "asking", .done = 12, .total = 64 }, 80,
	       "trim: asking, 12 of 64, 3 s");
	expect(&(struct phase){ .what = "asking", .done = 12 }, 80, "trim: asking, 12, 3 s");
	/* the cursor stands behind it: one column is left */
	expect(&(struct phase){ .what = "asking" }, 10, "trim: ask");
	expect(&(struct phase){ .what = "0123456789012345678901234567890123456789"
					"0123456789012345678901234567890123456789" },
	       0, "trim: 012345678901234567890123456789012345678901234567890123456");
}

Test(phase, a_counted_one_lasts_until_its_end)
{
	struct phase p;

	phase_end();
	cr_expect_null(phase_read().what);
	phase_begin("all", 10);
	phase_step(3);
	phase_begin("a part", 0);
	p = phase_read();
	cr_expect_str_eq(p.what, "all");
	cr_expect_eq(p.done, 3u);
	cr_expect_eq(p.total, 10u);
	phase_end();
	phase_begin("a part", 0);
	p = phase_read();
	cr_expect_str_eq(p.what, "a part");
	cr_expect_eq(p.done, 0u);
	phase_end();
	cr_expect_null(phase_read().what);
}
