// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>

#include "../../agent/mimalloc.h"

Test(mimalloc, version_of_its_code)
{
	static const unsigned char plain[] = { 0xb8, 0xd1, 0, 0, 0, 0xc3 };
	static const unsigned char marked[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 0x3b, 1, 0, 0, 0xc3 };
	static const unsigned char other[] = { 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x8b, 0, 0xc3 };

	cr_assert_eq(mimalloc_version_decode(plain, sizeof(plain)), 209);
	cr_assert_eq(mimalloc_version_decode(marked, sizeof(marked)), 315);
	cr_assert_eq(mimalloc_version_decode(other, sizeof(other)), 0);
	/* cut: no byte behind them is looked at */
	cr_assert_eq(mimalloc_version_decode(plain, sizeof(plain) - 1), 0);
	cr_assert_eq(mimalloc_version_decode(marked, sizeof(marked) - 1), 0);
	cr_assert_eq(mimalloc_version_decode(marked, 4), 0);
}

Test(mimalloc, version_in_words)
{
	static const struct {
		unsigned number;
		const char *text;
	} cases[] = {
		{ 164, "1.6.4" }, { 209, "2.0.9" }, { 315, "3.1.5" },
		{ 99, "" },	  { 1000, "" },	    { 0, "" },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mimalloc_version_format(cases[i].number, text, sizeof(text));
		cr_assert_str_eq(text, cases[i].text, "%u", cases[i].number);
	}
}
