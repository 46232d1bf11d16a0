// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/size.h"

static const struct {
	const char *text;
	int rc;
	uint64_t value;
} sizes[] = {
	{ "0", 0, 0 },
	{ "4096", 0, 4096 },
	{ "4096B", 0, 4096 },
	{ "1k", 0, 1024 },
	{ "512M", 0, 512ULL << 20 },
	{ "512MiB", 0, 512ULL << 20 },
	{ "512 MiB", 0, 512ULL << 20 },
	{ "512mb", 0, 512ULL << 20 },
	{ "1.5G", 0, 3ULL << 29 },
	{ "0.5T", 0, 1ULL << 39 },
	{ "1.3K", 0, 1331 }, /* 1331.2: part of a byte is cut off */
	{ "1.0000000000000000000009K", 0, 1024 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "16383P", 0, 16383ULL << 50 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "16384P", -ERANGE, 0 },
	{ "99999999999999999999999G", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "M", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1.5", -EINVAL, 0 },
	{ "1.5B", -EINVAL, 0 },
	{ "1.G", -EINVAL, 0 },
	{ ".5G", -EINVAL, 0 },
	{ "1  G", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "1Mx", -EINVAL, 0 },
	{ "1MiBs", -EINVAL, 0 },
	{ "1E", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1,5G", -EINVAL, 0 },
};

Test(size, parse)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t v = 77;
		int rc = size_parse(sizes[i].text, &v);

		cr_expect_eq(rc, sizes[i].rc, "'%s' gave %d", sizes[i].text, rc);
		if (!sizes[i].rc)
			cr_expect_eq(v, sizes[i].value, "'%s' is %llu", sizes[i].text,
				     (unsigned long long)v);
	}
}

static const struct {
	const char *text;
	int rc;
	uint64_t value;
} times[] = {
	{ "500us", 0, 500000 },
	{ "20ns", 0, 20 },
	{ "15ms", 0, 15000000 },
	{ "2s", 0, 2000000000ULL },
	{ "2", 0, 2000000000ULL },
	{ "0.25", 0, 250000000ULL },
	{ "10m", 0, 600000000000ULL },
	{ "1.5h", 0, 5400000000000ULL },
	{ "1d", 0, 86400000000000ULL },
	{ "10000000d", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "-2s", -EINVAL, 0 },
	{ "2S", -EINVAL, 0 },
	{ "2min", -EINVAL, 0 },
	{ "2 s ", -EINVAL, 0 },
};

Test(size, parse_time)
{
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		uint64_t v = 77;
		int rc = time_parse(times[i].text, &v);

		cr_expect_eq(rc, times[i].rc, "'%s' gave %d", times[i].text, rc);
		if (!times[i].rc)
			cr_expect_eq(v, times[i].value, "'%s' is %llu", times[i].text,
				     (unsigned long long)v);
	}
}

Test(size, arg_says_what_is_wrong)
{
	struct diag d = { 0 };
	uint64_t v;

	cr_assert_eq(size_parse_arg("pad", "12Q", &v, &d), -EINVAL);
	cr_expect_eq(d.exit, HM_USAGE);
	cr_expect_str_eq(d.code, "bad-size");
	cr_expect(strstr(d.text, "pad") && strstr(d.text, "12Q"));
	cr_assert_eq(time_parse_arg("--timeout", "soon", &v, &d), -EINVAL);
	cr_expect_str_eq(d.code, "bad-time");
	cr_assert_eq(time_parse_arg("--timeout", "3s", &v, &d), 0);
	cr_expect_eq(v, 3000000000ULL);
}

Test(size, format)
{
	char b[SIZE_TEXT];

	cr_expect_str_eq(size_format(0, b), "0 B");
	cr_expect_str_eq(size_format(1023, b), "1023 B");
	cr_expect_str_eq(size_format(1024, b), "1.0 KiB");
	cr_expect_str_eq(size_format(1536, b), "1.5 KiB");
	cr_expect_str_eq(size_format((1 << 20) - 1, b), "1.0 MiB");
	cr_expect_str_eq(size_format(537184666, b), "512.3 MiB");
	cr_expect_str_eq(size_format(4230542917, b), "3.9 GiB");
	cr_expect_str_eq(size_format_fine(4230542917, b), "3.94 GiB");
	cr_expect_str_eq(size_format_fine(537184666, b), "512.3 MiB");
	cr_expect_str_eq(size_format(UINT64_MAX, b), "16.0 EiB");
	cr_expect_str_eq(size_format_delta(-3693671874, b), "-3.44 GiB");
	cr_expect_str_eq(size_format_delta(12288, b), "+12.0 KiB");
	cr_expect_str_eq(size_format_delta(0, b), "0 B");
	cr_expect_str_eq(size_format_delta(INT64_MIN, b), "-8.00 EiB");
}

Test(size, format_time)
{
	char b[SIZE_TEXT];

	cr_expect_str_eq(time_format(0, b), "0 us");
	cr_expect_str_eq(time_format(42000, b), "42 us");
	cr_expect_str_eq(time_format(300000, b), "0.3 ms");
	cr_expect_str_eq(time_format(61000000, b), "61 ms");
	cr_expect_str_eq(time_format(2000000000, b), "2.0 s");
	cr_expect_str_eq(time_format(630000000000, b), "10.5 m");
	cr_expect_str_eq(time_format(10800000000000, b), "3.0 h");
}

/* What is printed in tables can be typed again and comes out the same to the digits shown. */
Test(size, printed_sizes_can_be_read)
{
	for (uint64_t v = 1; v < UINT64_MAX / 7; v = v * 5 + 3) {
		char b[SIZE_TEXT], again[SIZE_TEXT];
		uint64_t back = 0;

		size_format(v, b);
		if (strchr(b, 'E')) /* no E among the units that are typed */
			break;
		cr_assert_eq(size_parse(b, &back), 0, "%s", b);
		cr_expect_str_eq(size_format(back, again), b);
	}
}
