// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../repl/pager.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void expect_rows(const char *text, unsigned columns, size_t want)
{
	cr_expect_eq(pager_rows(text, strlen(text), columns), want, "'%s' has %zu rows", text,
		     pager_rows(text, strlen(text), columns));
}

Test(pager, rows)
{
	expect_rows("", 10, 0);
	expect_rows("a", 10, 1);
	expect_rows("a\n", 10, 1);
	expect_rows("a\n\nb\n", 10, 3);
	/* a full line does not wrap yet */
	expect_rows("0123456789\n", 10, 1);
	expect_rows("0123456789a\n", 10, 2);
	expect_rows("0123456789012345678901", 10, 3);
	expect_rows("0123456789a\n", 0, 1);
	/* colours, tabs, and letters of two bytes */
	expect_rows("\033[31m0123456789\033[0m\n", 10, 1);
	expect_rows("a\tb\n", 9, 1);
	expect_rows("a\tbc\n", 9, 2);
	expect_rows("\303\244\303\244\303\244\n", 3, 1);
	expect_rows("\033[", 3, 1);
}

static void expect_part(const char *text, unsigned columns, size_t max, const char *want)
{
	size_t n = pager_part(text, strlen(text), columns, max);

	cr_expect_eq(n, strlen(want), "'%.*s'", (int)n, text);
}

Test(pager, parts_are_whole_lines)
{
	expect_part("a\nb\nc\n", 10, 2, "a\nb\n");
	expect_part("a\nb\n", 10, 2, "a\nb\n");
	expect_part("a\nb", 10, 5, "a\nb");
	expect_part("a\n0123456789x\nc\n", 10, 2, "a\n");
	expect_part("a\n0123456789x\nc\n", 10, 3, "a\n0123456789x\n");
	/* but for a line that does not fit at all */
	expect_part("0123456789x\n", 10, 1, "0123456789");
	expect_part("", 10, 3, "");
}

/* Whatever the text is, one gets to its end. */
Test(pager, parts_come_to_an_end)
{
	static const char alphabet[] = "ab\n\t\033[m\303";
	unsigned seed = 3;

	for (int round = 0; round < 3000; round++) {
		char text[64];
		size_t len = (size_t)(rand_r(&seed) % 63), at = 0, turns = 0;

		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[rand_r(&seed) % (int)(sizeof(alphabet) - 1)];
		while (at < len) {
			size_t n = pager_part(text + at, len - at, 1 + (unsigned)round % 5,
					      1 + (size_t)round % 3);

			cr_assert_gt(n, 0u, "%d", round);
			cr_assert_leq(n, len - at);
			at += n;
			cr_assert_lt(turns++, 100u);
		}
	}
}
