// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../agent/allocator_choice.h"

static const struct allocator_ops glibc = { .name = "glibc", .callable = true };
static const struct allocator_ops jemalloc = { .name = "jemalloc", .callable = true };

static struct process p;

static struct allocator *add(const struct allocator_ops *ops, const char *file, const char *prefix)
{
	struct allocator *a = &p.allocs.v[p.allocs.n++];

	a->ops = ops;
	a->in_use = true;
	snprintf(a->file, sizeof(a->file), "%s", file);
	snprintf(a->prefix, sizeof(a->prefix), "%s", prefix);
	return a;
}

/* A program with two plugins of one name, one of which has two jemallocs. */
static void setup(void)
{
	memset(&p, 0, sizeof(p));
	add(&jemalloc, "/opt/a/plugin.so", "_rjem_");
	add(&jemalloc, "/opt/a/plugin.so", "je_");
	add(&jemalloc, "/opt/b/plugin.so", "je_");
	add(&glibc, "/lib/libc.so.6", "")->owns_malloc = true;
	add(&jemalloc, "/lib/libjemalloc.so.2", "")->in_use = false;
}

TestSuite(allocator_choice, .init = setup);

static void only(const char *word)
{
	snprintf(p.only, sizeof(p.only), "%s", word);
}

Test(allocator_choice, names)
{
	static const struct {
		const char *word;
		unsigned which; /* a bit for each */
	} cases[] = {
		{ "", 0 },
		{ "glibc", 8 },
		{ "jemalloc", 7 + 16 },
		{ "_rjem_", 1 },
		{ "je_", 6 },
		{ "plugin.so", 7 },
		{ "/opt/a/plugin.so", 3 },
		{ "plugin.so:je_", 6 },
		{ "/opt/b/plugin.so:je_", 4 },
		{ "/opt/b/plugin.so:_rjem_", 0 },
		{ "libc.so.6", 8 },
		{ "libc.so.6:", 8 }, /* no prefix */
		{ "plugin", 0 },
		{ "plugin.so:", 0 },
		{ ":je_", 0 },
		{ ":", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned got = 0;

		for (size_t k = 0; k < p.allocs.n; k++)
			got |= allocator_is(&p.allocs.v[k], cases[i].word) ? 1u << k : 0;
		cr_expect_eq(got, cases[i].which, "%s: %u", cases[i].word, got);
	}
}

/* What a label says chooses that one, and no other. */
Test(allocator_choice, labels)
{
	for (size_t i = 0; i < p.allocs.n; i++) {
		char label[ALLOCATOR_LABEL];
		size_t n = 0;

		allocator_label(&p.allocs, &p.allocs.v[i], label, sizeof(label));
		cr_expect(allocator_is(&p.allocs.v[i], label), "%s", label);
		for (size_t k = 0; k < p.allocs.n; k++)
			n += allocator_is(&p.allocs.v[k], label);
		cr_expect_eq(n, 1, "%s", label);
	}
	cr_expect_str_eq(allocator_label(&p.allocs, &p.allocs.v[3], (char[160]){ "" }, 160),
			 "libc.so.6");
}

Test(allocator_choice, one_is_chosen)
{
	const struct allocator *a;
	struct diag d = { 0 };
	size_t others;

	cr_assert_eq(allocator_choose(&p, "jemalloc", &a, &others, &d), -EINVAL);
	cr_assert_eq(d.exit, HM_USAGE);
	cr_assert_str_eq(d.code, "several-allocators");
	cr_assert_not_null(strstr(d.hint, "plugin.so:_rjem_"), "%s", d.hint);
	cr_assert_not_null(strstr(d.hint, "/opt/b/plugin.so:je_"), "%s", d.hint);
	/* one that is not in use is none of them */
	cr_assert_null(strstr(d.hint, "libjemalloc"), "%s", d.hint);
	only("_rjem_");
	cr_assert_eq(allocator_choose(&p, "jemalloc", &a, &others, &d), 0);
	cr_assert_eq(a, &p.allocs.v[0]);
	cr_assert_eq(others, 0);
	cr_assert_eq(process_allocator(&p, "jemalloc"), a);
	/* of another kind than what was named: the safety of a call depends on it */
	cr_assert_eq(process_allocator(&p, "glibc"), &p.allocs.v[3]);
	only("");
	p.allocs.v[3].owns_malloc = false;
	p.allocs.v[1].owns_malloc = true;
	cr_assert_eq(allocator_choose(&p, "jemalloc", &a, &others, &d), 0);
	cr_assert_eq(a, &p.allocs.v[1]);
	cr_assert_eq(others, 2);
	cr_assert_eq(allocator_choose(&p, "mimalloc", &a, &others, &d), -ENOENT);
}

Test(allocator_choice, a_name_of_nobody)
{
	struct diag d = { 0 };

	cr_assert_eq(allocator_choice_check(&p, &d), 0);
	only("je_");
	cr_assert_eq(allocator_choice_check(&p, &d), 0);
	cr_assert_not(allocator_asked(&p, &p.allocs.v[0]));
	cr_assert(allocator_asked(&p, &p.allocs.v[1]));
	only("libjemalloc.so.2"); /* there, but not in use */
	cr_assert_eq(allocator_choice_check(&p, &d), -ENOENT);
	cr_assert_eq(d.exit, HM_UNSUPPORTED);
	cr_assert_str_eq(d.code, "no-such-allocator");
	cr_assert_not_null(strstr(d.hint, "libc.so.6"), "%s", d.hint);
}
