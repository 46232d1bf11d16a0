// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "../../agent/mallopt.h"

/* The numbers are those of this system's <malloc.h>. */
static const struct {
	const char *name;
	int param;
} numbers[] = {
	{ "M_MXFAST", M_MXFAST },	  { "M_TRIM_THRESHOLD", M_TRIM_THRESHOLD },
	{ "M_TOP_PAD", M_TOP_PAD },	  { "M_MMAP_THRESHOLD", M_MMAP_THRESHOLD },
	{ "M_MMAP_MAX", M_MMAP_MAX },	  { "M_PERTURB", M_PERTURB },
	{ "M_ARENA_TEST", M_ARENA_TEST }, { "M_ARENA_MAX", M_ARENA_MAX },
};

Test(mallopt, table)
{
	size_t n;
	const struct mallopt_fact *t = mallopt_table(&n);

	cr_assert_eq(n, sizeof(numbers) / sizeof(numbers[0]));
	for (size_t i = 0; i < n; i++) {
		const struct mallopt_fact *f = mallopt_find(numbers[i].name);

		cr_assert(f, "%s", numbers[i].name);
		cr_expect_eq(f->param, numbers[i].param, "%s", numbers[i].name);
		cr_expect(f->min < f->max && *f->meaning && *f->limit);
		cr_expect_eq(mallopt_find(t[i].name), &t[i]);
	}
}

Test(mallopt, find)
{
	cr_expect_eq(mallopt_find("arena_max"), mallopt_find("M_ARENA_MAX"));
	cr_expect_eq(mallopt_find("m_Arena_Max"), mallopt_find("M_ARENA_MAX"));
	cr_expect_null(mallopt_find("M_CHECK_ACTION")); /* without effect since 2.26 */
	cr_expect_null(mallopt_find("M_"));
	cr_expect_null(mallopt_find(""));
	cr_expect_null(mallopt_find("M_ARENA_MAXX"));
	cr_expect_null(mallopt_find("-8"));
}

static const struct {
	const char *name, *text;
	int rc;
	long value;
} values[] = {
	{ "M_ARENA_MAX", "2", 0, 2 },
	{ "M_ARENA_MAX", "0", -ERANGE, 0 },
	{ "M_ARENA_MAX", "2K", -EINVAL, 0 },
	{ "M_ARENA_MAX", "", -EINVAL, 0 },
	{ "M_ARENA_MAX", "+2", -EINVAL, 0 },
	{ "M_ARENA_MAX", " 2", -EINVAL, 0 },
	{ "M_ARENA_MAX", "99999999999999999999", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "-99999999999999999999", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "99999999999P", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "128K", 0, 131072 },
	{ "M_TRIM_THRESHOLD", "131072", 0, 131072 },
	{ "M_TRIM_THRESHOLD", "-1", 0, -1 },
	{ "M_TRIM_THRESHOLD", "-2", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "2G", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "16383P", -ERANGE, 0 },
	{ "M_TRIM_THRESHOLD", "99999999999999999999", -ERANGE, 0 },
	{ "M_MMAP_THRESHOLD", "32M", 0, 32L << 20 },
	{ "M_MMAP_THRESHOLD", "2G", -ERANGE, 0 },
	{ "M_TOP_PAD", "-1", -ERANGE, 0 },
	{ "M_TOP_PAD", "64k", 0, 65536 },
	{ "M_TOP_PAD", "64kk", -EINVAL, 0 },
	{ "M_MXFAST", "160", 0, 160 },
	{ "M_MXFAST", "161", -ERANGE, 0 },
	{ "M_PERTURB", "255", 0, 255 },
	{ "M_PERTURB", "256", -ERANGE, 0 },
};

Test(mallopt, values)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct mallopt_fact *f = mallopt_find(values[i].name);
		struct diag d = { 0 };
		long v = 0;
		int rc = mallopt_value_parse(f, values[i].text, &v, &d);

		cr_expect_eq(rc, values[i].rc, "%s %s: %d", values[i].name, values[i].text, rc);
		if (!values[i].rc) {
			cr_expect_eq(v, values[i].value);
			continue;
		}
		cr_expect_eq(d.exit, HM_USAGE);
		cr_expect(strstr(d.text, values[i].name) && *d.hint);
	}
}

/*
 * glibc accepts what the table accepts, and refuses a fast bin limit just above it. Says nothing
 * where another malloc stands in for glibc's.
 */
Test(mallopt, limits_are_those_of_glibc)
{
	size_t n;
	const struct mallopt_fact *t = mallopt_table(&n);

#if defined(__SANITIZE_ADDRESS__)
	cr_skip_test("AddressSanitizer's mallopt stands in for glibc's");
#endif
	for (size_t i = 0; i < n; i++) {
		/* Older versions accept no more than this as mmap threshold. */
		long max = t[i].param == M_MMAP_THRESHOLD ? 32L << 20 : t[i].max;

		cr_expect_eq(mallopt(t[i].param, (int)max), 1, "%s", t[i].name);
		cr_expect_eq(mallopt(t[i].param, (int)t[i].min), 1, "%s", t[i].name);
	}
	cr_expect_eq(mallopt(M_MXFAST, (int)mallopt_find("M_MXFAST")->max + 16), 0);
}
