// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../agent/call_internal.h"
#include "../../agent/call_text.h"

static void brief(const char *name, const char *want)
{
	char buf[200];

	snprintf(buf, sizeof(buf), "%s", name);
	call_text_brief(buf);
	cr_assert_str_eq(buf, want, "%s: %s, not %s", name, buf, want);
}

Test(call_text, brief)
{
	brief("main", "main");
	brief("f(int, char*)", "f");
	brief("a::B<c>::f(int (*)(char), x) const", "a::B<c>::f");
	brief("operator new(unsigned long)", "operator new");
	brief("operator new[](unsigned long)", "operator new[]");
	brief("a::operator()(int) const", "a::operator()");
	brief("a::operator()", "a::operator()");
	brief("(anonymous namespace)::f(int)", "(anonymous namespace)::f");
	brief("a::(anonymous namespace)", "a::(anonymous namespace)");
	brief("f(int) [clone .isra.0]", "f");
	brief("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()");
	brief("core::ptr::drop_in_place<T>", "core::ptr::drop_in_place<T>");
	brief("", "");
	brief(")", ")");
	brief("))", "))");
	brief("()", "()");
	brief(" const", " const");
	brief("x const", "x const");
}

Test(call_text, clean)
{
	char buf[16];

	call_text_clean("a\x1b[2J\n", buf, sizeof(buf));
	cr_assert_str_eq(buf, "a\\x1b[2J\\x0a");
	call_text_clean("\xc3\xa9\xff", buf, sizeof(buf));
	cr_assert_str_eq(buf, "\\xc3\\xa9\\xff");
	call_text_clean("0123456789abcdefgh", buf, sizeof(buf));
	cr_assert_lt(strlen(buf), sizeof(buf));
	cr_assert(strncmp(buf, "0123456789", 10) == 0);
	call_text_clean("abc", buf, 3);
	cr_assert_str_eq(buf, "");
}

Test(call_text, parts)
{
	static const char names[] = "outer--a::operator--(int)--inner";
	const char *end = names + strlen(names), *at = call_text_part(names, end);

	cr_assert_str_eq(at, "--inner");
	at = call_text_part(names, at);
	cr_assert_str_eq(at, "--a::operator--(int)--inner");
	cr_assert_null(call_text_part(names, at));
	at = strrchr(names, 'i'); /* two bytes of "--inner" before it */
	cr_assert_null(call_text_part(at - 2, at));
}

Test(call_internal, names)
{
	cr_assert(call_internal("malloc"));
	cr_assert(call_internal("operator new(unsigned long)"));
	cr_assert(call_internal("operator new[]"));
	cr_assert(call_internal("malloc@@GLIBC_2.2.5"));
	cr_assert(call_internal("je_prof_backtrace"));
	cr_assert(call_internal("_rjem_malloc"));
	cr_assert(call_internal("__rust_alloc"));
	cr_assert(call_internal("a::TCMalloc_PageHeap::New"));
	cr_assert(!call_internal("malloc_all_of_it"));
	cr_assert(!call_internal("my_malloc"));
	cr_assert(!call_internal("main"));
	cr_assert(!call_internal(""));
	cr_assert(!call_internal("jeopardy"));
}

Test(call_internal, files)
{
	cr_assert(call_internal_file("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"));
	cr_assert(call_internal_file("libjemalloc.so"));
	cr_assert(call_internal_file("/x/libtcmalloc_minimal.so.4"));
	cr_assert(!call_internal_file("/x/libjemalloc.sox"));
	cr_assert(!call_internal_file("/libjemalloc.so.2/program"));
	cr_assert(!call_internal_file(""));
}
