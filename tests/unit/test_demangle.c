// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "../../agent/demangle.h"

struct row {
	const char *name, *full, *brief;
};

/* What the languages' own documents and tools make of them. */
static const struct row rows[] = {
	{ "_Z1fv", "f()", "f" },
	{ "_ZN3foo3barEi", "foo::bar(int)", "foo::bar" },
	{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
	  "std::vector<int, std::allocator<int> >::push_back(int&&)",
	  "std::vector<int, std::allocator<int> >::push_back" },
	{ "_ZNK1A3getEv", "A::get() const", "A::get" },
	{ "_Znwm", "operator new(unsigned long)", "operator new" },
	{ "_ZN12_GLOBAL__N_14workEv.isra.0", "(anonymous namespace)::work() [clone .isra.0]",
	  "(anonymous namespace)::work" },
	/* Rust, legacy: the hash goes */
	{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
	  "core::fmt::Write::write_fmt" },
	/* Rust, v0 (RFC 2603) */
	{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar", "mycrate::foo::bar" },
	{ "_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function",
	  "foo::example_function" },
};

Test(demangle, names)
{
	char buf[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert(demangle(rows[i].name, false, buf, sizeof(buf)), "%s", rows[i].name);
		cr_assert_str_eq(buf, rows[i].full);
		cr_assert(demangle(rows[i].name, true, buf, sizeof(buf)), "%s", rows[i].name);
		cr_assert(!strncmp(buf, rows[i].brief, strlen(rows[i].brief)), "%s is %s",
			  rows[i].name, buf);
		cr_assert(!strchr(buf, '(') || buf[0] == '(', "%s has parameters", buf);
	}
}

Test(demangle, others_stay)
{
	static const char *const names[] = { "main",	      "",     "_",	"_Z",
					     "__libc_malloc", "_Zq1", "Z1fv",	"main.main",
					     "_ZN3foo",	      "_R",   "_RNvC6", "_start" };
	char buf[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_assert(!demangle(names[i], false, buf, sizeof(buf)), "%s became %s", names[i],
			  buf);
		cr_assert_str_eq(buf, names[i]);
	}
}

Test(demangle, small_room)
{
	char buf[6] = "xxxxx";

	cr_assert(!demangle("_ZN3foo3barEi", false, buf, sizeof(buf)));
	cr_assert_str_eq(buf, "_ZN3f");
	cr_assert(!demangle("_ZN3foo3barEi", false, buf, 0));
	cr_assert_str_eq(buf, "_ZN3f");
	cr_assert(demangle("_Z3foov", true, buf, 4));
	cr_assert_str_eq(buf, "foo");
	cr_assert(!demangle("_Z3foov", true, buf, 3));
	cr_assert_str_eq(buf, "_Z");
}

/* The names of Rust that are not ASCII are decoded in a block of their own: LeakSanitizer sees
 * whether it is left behind, the heap whether anything is.
 */
Test(demangle, no_room_for_what_is_not_ascii)
{
	const char *name = "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y";
	char buf[96];
	struct mallinfo2 before, after;

	cr_assert(demangle(name, false, buf, sizeof(buf)));
	cr_assert_str_eq(buf, "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_"
			      "\u10d2\u10d4\u10db\u10e0\u10d8\u10d4\u10da\u10d8_"
			      "\u10e1\u10d0\u10d3\u10d8\u10da\u10d8");
	before = mallinfo2();
	for (size_t room = 1; room < 82; room++)
		for (unsigned i = 0; i < 100; i++)
			cr_assert(!demangle(name, false, buf, room), "%zu", room);
	after = mallinfo2();
	cr_assert_leq(after.uordblks, before.uordblks + 1024);
}

/* Each parameter is a pointer to a function that takes the one before twice: 2 to the 60th of them.
 */
Test(demangle, unfolds_without_end, .timeout = 20)
{
	char name[1024] = "_Z1fPFvPviE", buf[4096];
	size_t at = strlen(name);

	for (unsigned i = 0; i < 60; i++) {
		unsigned last = 2 * i + 1;

		/* a back reference is a number in base 36, less by one */
		at += (size_t)snprintf(name + at, sizeof(name) - at, "PFvS%c%c_S%c%c_E",
				       last / 36 ? (char)('0' + last / 36) : '0',
				       "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[last % 36],
				       last / 36 ? (char)('0' + last / 36) : '0',
				       "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[last % 36]);
	}
	demangle(name, false, buf, sizeof(buf));
	cr_assert(memchr(buf, 0, sizeof(buf)));
}

Test(demangle, long_and_deep)
{
	static char name[200000], buf[4096];

	/* pointers to pointers to pointers */
	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_Z1f", 4);
	cr_assert(!demangle(name, false, buf, sizeof(buf)));
	cr_assert_eq(strlen(buf), sizeof(buf) - 1);
	name[1000] = 'i';
	name[1001] = 0;
	demangle(name, false, buf, sizeof(buf));
	/* the same for Rust: references to references */
	memset(name, 'R', 1000);
	memcpy(name, "_RINvC1a1f", 10);
	demangle(name, false, buf, sizeof(buf));
}
