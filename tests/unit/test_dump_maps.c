// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/dump_maps.h"

#define HEAD  "heap_v2/524288\n  t*: 1: 64 [0: 0]\n@ 0x1000 0x2000\n  t*: 1: 64 [0: 0]\n"
#define MAPS  "1000-3000 r-xp 00000000 08:01 7 /bin/x\n7f00-8000 rw-p 00000000 00:00 0 \n"
#define TITLE "\nMAPPED_LIBRARIES:\n"

static bool have(const char *text, uint64_t addr)
{
	return dump_maps_have(text, strlen(text), addr);
}

Test(dump_maps, says_whether_a_mapping_holds_an_address)
{
	cr_expect(have(HEAD TITLE MAPS, 0x1000));
	cr_expect(have(HEAD TITLE MAPS, 0x2fff));
	cr_expect(have(HEAD TITLE MAPS, 0x7fff));
	cr_expect_not(have(HEAD TITLE MAPS, 0xfff));
	cr_expect_not(have(HEAD TITLE MAPS, 0x3000));
	cr_expect_not(have(HEAD TITLE MAPS, 0));
	/* no section, an empty one, lines that are none, a line that is cut */
	cr_expect_not(have(HEAD MAPS, 0x1000));
	cr_expect_not(have(HEAD TITLE, 0x1000));
	cr_expect_not(have(TITLE "1000 3000 r-xp\n-\n1000-\n", 0x1000));
	cr_expect_not(have(TITLE "1000-3000", 0x1000));
	cr_expect(have(TITLE "1000-3000 ", 0x1000));
	cr_expect_not(have("", 0x1000));
	/* the last section counts: one line of a stack can look like a title */
	cr_expect_not(have(TITLE MAPS TITLE "9000-a000 r-xp\n", 0x1000));
}

static void expect_put(const char *text, const char *maps, const char *want)
{
	char *v = strdup(text);
	size_t len = strlen(text);

	cr_assert_eq(dump_maps_put(&v, &len, maps), 0);
	cr_expect_str_eq(v, want);
	cr_expect_eq(len, strlen(want));
	free(v);
}

Test(dump_maps, puts_them_in_the_place_of_others)
{
	expect_put(HEAD, MAPS, HEAD TITLE MAPS);
	expect_put(HEAD TITLE "1-2 r-xp\n", MAPS, HEAD TITLE MAPS);
	expect_put(HEAD TITLE MAPS MAPS MAPS, MAPS, HEAD TITLE MAPS);
	expect_put(HEAD TITLE MAPS, "", HEAD TITLE);
	expect_put("", MAPS, TITLE MAPS);
}
