// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../repl/tally.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *print(const struct tally_row *v, size_t n, bool bytes)
{
	struct sink s;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	sink_init(&s, f, f, COLOR_NEVER);
	cr_assert_eq(tally_print(v, n, bytes, &s), 0);
	cr_assert_eq(fclose(f), 0);
	return text;
}

Test(tally, a_line_for_each_and_one_for_all)
{
	static const struct tally_row rows[] = {
		{ .pid = 4711,
		  .comm = "redis-server",
		  .reached = true,
		  .before = 300 << 20,
		  .after = 100 << 20 },
		{ .pid = 12,
		  .comm = "a",
		  .reached = true,
		  .exit = HM_UNSAFE,
		  .code = "no-safe-point",
		  .before = 50 << 20,
		  .after = 51 << 20 },
		{ .pid = 13, .comm = "?", .reached = true, .exit = HM_GONE, .code = "gone" },
		{ .pid = 14, .comm = "b" },
	};
	char *text = print(rows, 4, false);

	cr_expect_str_eq(
		text,
		"\n"
		"  PID  NAME          EXIT  RESULT         RSS BEFORE  RSS AFTER      CHANGE\n"
		" 4711  redis-server     0  ok              300.0 MiB  100.0 MiB  -200.0 MiB\n"
		"   12  a                6  no-safe-point    50.0 MiB   51.0 MiB    +1.0 MiB\n"
		"   13  ?                3  gone                    -          -           -\n"
		"   14  b                -  not reached             -          -           -\n"
		"total  4 processes      6  3 failed        350.0 MiB  151.0 MiB  -199.0 MiB\n",
		"%s", text);
	free(text);
}

Test(tally, bytes_and_success)
{
	static const struct tally_row rows[] = {
		{ .pid = 1, .comm = "x", .reached = true, .before = 8192, .after = 4096 },
		{ .pid = 2, .comm = "y", .reached = true, .before = 4096, .after = 4096 },
	};
	char *text = print(rows, 2, true);

	cr_expect_not_null(
		strstr(text, "total  2 processes     0  ok           12288       8192   -4096"),
		"%s", text);
	free(text);
}
