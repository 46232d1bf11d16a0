// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/jemalloc_detect.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/jemalloc_missing.h"
#include "../../agent/process.h"

/* A process with a program and one mapping. */
static bool found_by(const char *mapping, struct allocator *out)
{
	static struct module mod[] = { { .path = (char *)"/lib/x.so" },
				       { .path = (char *)"/bin/prog", .is_main = true } };
	struct map map = { .start = 4096, .end = 8192 };
	struct process p = { .mods = { .v = mod, .n = 2 }, .maps = { .v = &map, .n = 1 } };
	bool found;

	map.name = (char *)mapping;
	memset(out, 0, sizeof(*out));
	found = jemalloc_detect_by_maps(&p, out);
	cr_expect(!found || out->mod == &mod[1]);
	return found;
}

Test(jemalloc_detect, by_the_names_of_mappings)
{
	struct allocator a;

	cr_expect(found_by("[anon:jemalloc_pg]", &a));
	cr_expect(a.in_use);
	cr_expect_eq(a.reach, ALLOCATOR_NO_SYMBOL);
	cr_expect(found_by("[anon:jemalloc_pg_overcommit]", &a));
	cr_expect_not(found_by("[anon:jemalloc]", &a));
	cr_expect_not(found_by("/tmp/[anon:jemalloc_pg]", &a));
	cr_expect_not(found_by("", &a));
}

/* Each reason is one of its own, and says what it is about. */
Test(jemalloc_detect, says_why_it_cannot_be_called)
{
	static const struct {
		enum allocator_reach reach;
		const char *code, *text, *hint;
	} cases[] = {
		{ ALLOCATOR_NO_SYMBOL, "no-mallctl", "jemalloc 5.3.0 is in /bin/prog",
		  "strip --strip-debug" },
		{ ALLOCATOR_NO_CODE, "not-jemalloc", "x_mallctl, but it is no code",
		  "cannot be trusted" },
		{ ALLOCATOR_NOTHING_ELSE, "not-jemalloc", "nothing else of jemalloc's",
		  "cannot be trusted" },
		{ ALLOCATOR_STRANGE, "unknown-prefix", "begin with x_", "_rjem_" },
		{ ALLOCATOR_APART, "other-namespace", "has a libc of its own", "`maps`" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct allocator a = { .reach = cases[i].reach,
				       .file = "/bin/prog",
				       .version = "5.3.0",
				       .prefix = "x_" };
		struct diag d = { 0 };

		cr_expect_eq(jemalloc_unreachable(&a, &d), -ENOENT);
		cr_expect_eq(d.exit, HM_UNSUPPORTED);
		cr_expect_str_eq(d.code, cases[i].code);
		cr_expect_not_null(strstr(d.text, cases[i].text), "%s", d.text);
		cr_expect_not_null(strstr(d.hint, cases[i].hint), "%s", d.hint);
	}
}
