// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/expr.h"

#define GIB (1ull << 30)

static void some_facts(struct facts *f)
{
	memset(f, 0, sizeof(*f));
	facts_set(f, FACT_RSS, FROM_KERNEL, 4 * GIB);
	facts_set(f, FACT_SWAP, FROM_KERNEL, 0);
	facts_set(f, FACT_THREADS, FROM_KERNEL, 12);
	facts_set(f, FACT_MINFLT, FROM_KERNEL, UINT64_MAX);
	facts_set(f, FACT_UPTIME, FROM_KERNEL, 600);
	facts_set(f, FACT_GO_HEAP_RESIDENT, FROM_PASSIVE, GIB);
	facts_set(f, FACT_GLIBC_TRIMMABLE, FROM_PREDICTION, GIB);
	facts_set_share(f, FACT_CGROUP_FRACTION, FROM_KERNEL, 9, 10);
	facts_set_text(f, FACT_GLIBC_VERSION, FROM_PASSIVE, "2.36");
	facts_set_text(f, FACT_JEMALLOC_VERSION, FROM_PASSIVE, "5.3.0-113");
	facts_set(f, FACT_JEMALLOC_PROF_ACTIVE, FROM_CALL, 1);
	facts_set(f, FACT_JEMALLOC_BACKGROUND_THREAD, FROM_CALL, 0);
}

static enum expr_truth truth(const char *text)
{
	struct facts f;
	struct expr *e;
	struct diag d;
	enum expr_truth t;

	some_facts(&f);
	diag_clear(&d);
	cr_assert_eq(expr_parse(text, &e, &d), 0, "%s: %s", text, d.text);
	t = expr_eval(e, &f);
	expr_free(e);
	return t;
}

Test(expr, comparisons)
{
	static const struct {
		const char *text;
		enum expr_truth truth;
	} cases[] = {
		{ "rss > 1.5G", EXPR_TRUE },
		{ "rss>1.5G", EXPR_TRUE },
		{ "1.5G < rss", EXPR_TRUE },
		{ "rss > 4G", EXPR_FALSE },
		{ "rss >= 4G", EXPR_TRUE },
		{ "rss <= 4GiB", EXPR_TRUE },
		{ "rss < 4294967296", EXPR_FALSE },
		{ "rss = 4294967296", EXPR_TRUE },
		{ "rss == 4G", EXPR_TRUE },
		{ "rss != 4G", EXPR_FALSE },
		{ "swap = 0", EXPR_TRUE },
		{ "threads > 11.5", EXPR_TRUE },
		{ "threads > minflt", EXPR_FALSE },
		/* no digit is lost: 2^64 - 1 against 2^64 - 2 */
		{ "minflt > 18446744073709551614", EXPR_TRUE },
		{ "minflt >= 18446744073709551615", EXPR_TRUE },
		{ "uptime > 9m", EXPR_TRUE },
		{ "uptime > 10m", EXPR_FALSE },
		{ "uptime > 599", EXPR_TRUE },
		{ "cgroup.fraction > 0.85", EXPR_TRUE },
		{ "cgroup.fraction > 95%", EXPR_FALSE },
		{ "rss > 300% of go.heap_resident", EXPR_TRUE },
		{ "rss > 400% of go.heap_resident", EXPR_FALSE },
		{ "glibc.trimmable > 20% of rss", EXPR_TRUE },
		{ "glibc.trimmable > 25% of rss", EXPR_FALSE },
		{ "glibc.trimmable >= 25% of rss", EXPR_TRUE },
		{ "20% of rss < glibc.trimmable", EXPR_TRUE },
		{ "rss > glibc.trimmable", EXPR_TRUE },
		{ "glibc.version >= 2.9", EXPR_TRUE },
		{ "glibc.version < 2.100", EXPR_TRUE },
		{ "glibc.version = 2.36", EXPR_TRUE },
		{ "jemalloc.version >= 5.3", EXPR_TRUE },
		{ "jemalloc.version < 5.4.0", EXPR_TRUE },
		{ "jemalloc.prof_active", EXPR_TRUE },
		{ "jemalloc.prof_active = false", EXPR_FALSE },
		{ "not jemalloc.background_thread", EXPR_TRUE },
		{ "!jemalloc.background_thread", EXPR_TRUE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(truth(cases[i].text), cases[i].truth, "%s", cases[i].text);
}

Test(expr, and_or_not)
{
	/* `and` binds closer than `or`, `not` closer than both */
	cr_expect_eq(truth("rss > 1 or rss < 1 and rss < 1"), EXPR_TRUE);
	cr_expect_eq(truth("(rss > 1 or rss < 1) and rss < 1"), EXPR_FALSE);
	cr_expect_eq(truth("not rss < 1 and rss > 1"), EXPR_TRUE);
	cr_expect_eq(truth("not (rss < 1 or rss > 1)"), EXPR_FALSE);
	cr_expect_eq(truth("not not rss > 1"), EXPR_TRUE);
	cr_expect_eq(truth("rss > 1.5G and (glibc.trimmable > 20% of rss or "
			   "jemalloc.fragmentation > 0.35)"),
		     EXPR_TRUE);
}

/* What is not known is neither true nor false, and stays so under `not`. */
Test(expr, not_known)
{
	cr_expect_eq(truth("jemalloc.dirty > 1"), EXPR_UNKNOWN);
	cr_expect_eq(truth("not jemalloc.dirty > 1"), EXPR_UNKNOWN);
	cr_expect_eq(truth("jemalloc.dirty > 20% of rss"), EXPR_UNKNOWN);
	cr_expect_eq(truth("rss > 20% of jemalloc.dirty"), EXPR_UNKNOWN);
	cr_expect_eq(truth("jemalloc.dirty > 1 or rss > 1"), EXPR_TRUE);
	cr_expect_eq(truth("jemalloc.dirty > 1 or rss < 1"), EXPR_UNKNOWN);
	cr_expect_eq(truth("jemalloc.dirty > 1 and rss > 1"), EXPR_UNKNOWN);
	cr_expect_eq(truth("jemalloc.dirty > 1 and rss < 1"), EXPR_FALSE);
	cr_expect_eq(truth("cgroup.limit > 1"), EXPR_UNKNOWN);
}

static void expect_wrong(const char *text, const char *code, const char *part)
{
	struct expr *e;
	struct diag d;

	diag_clear(&d);
	cr_assert_neq(expr_parse(text, &e, &d), 0, "%s", text);
	cr_expect_null(e);
	cr_expect_eq(d.exit, HM_USAGE, "%s", text);
	cr_expect_str_eq(d.code, code, "%s: %s", text, d.text);
	cr_expect_not_null(strstr(d.text, part), "%s: %s", text, d.text);
	cr_expect(d.hint[0], "%s", text);
}

Test(expr, what_is_none)
{
	expect_wrong("", "syntax", "ends where a fact or a value");
	expect_wrong("rss", "syntax", "ends where one of >");
	expect_wrong("rss >", "syntax", "ends where a fact or a value");
	expect_wrong("rss > 1G and", "syntax", "ends where");
	expect_wrong("rss > 1G rss", "syntax", "'rss' stands");
	expect_wrong("(rss > 1G", "syntax", "ends where and, or, or )");
	expect_wrong("rss > 1G)", "syntax", "')' stands");
	expect_wrong("1 < rss < 2", "syntax", "'<' stands");
	expect_wrong("rss => 1", "syntax", "'=>' stands");
	expect_wrong("rss > & 1", "syntax", "'&' stands");
	expect_wrong("1 < 2", "syntax", "on one side");
	expect_wrong("and", "syntax", "'and' stands");
	expect_wrong("rss > 20% of", "syntax", "ends where the name of a fact");
	expect_wrong("rsss > 1", "unknown-fact", "rsss");
	expect_wrong("rss > 20% of rsss", "unknown-fact", "rsss");
	expect_wrong("rss > 1X", "bad-value", "'1X' cannot be compared with rss");
	expect_wrong("rss > -1", "bad-value", "'-1'");
	expect_wrong("rss > 20%", "bad-value", "20% of what?");
	expect_wrong("rss > 20x% of swap", "bad-value", "'20x%'");
	expect_wrong("rss > threads", "bad-value", "not of one kind");
	expect_wrong("rss > true", "bad-value", "'true'");
	expect_wrong("uptime > 1G", "bad-value", "'1G'");
	expect_wrong("cgroup.fraction > 1G", "bad-value", "'1G'");
	expect_wrong("jemalloc.prof_active > true", "bad-value", "nothing is larger");
	expect_wrong("jemalloc.prof_active = 2", "bad-value", "'2'");
	expect_wrong("rss > 20% of glibc.version", "bad-value", "no percentage");
	expect_wrong("rss > 99999999999999999999", "bad-value", "99999999999999999999");
	expect_wrong("rss > 1e999999%", "bad-value", "no percentage");
}

static char *repeated(const char *before, const char *part, size_t n, const char *behind)
{
	char *text = malloc(strlen(before) + n * strlen(part) + strlen(behind) + 1);

	cr_assert_not_null(text);
	strcpy(text, before);
	for (size_t i = 0; i < n; i++)
		strcat(text, part);
	return strcat(text, behind);
}

/* Neither memory nor our stack is at the mercy of a condition's length. */
Test(expr, long_and_deep)
{
	char *text = repeated("", "(", 100000, "rss > 1"), behind[EXPR_DEPTH + 8];

	expect_wrong(text, "syntax", "levels");
	free(text);
	text = repeated("", "not ", 20000, "rss > 1");
	expect_wrong(text, "syntax", "levels");
	free(text);
	text = repeated("rss > 1", " and rss > 1", EXPR_COMPARISONS, "");
	expect_wrong(text, "syntax", "comparisons");
	free(text);
	text = repeated("rss > 1", " and rss > 1", EXPR_COMPARISONS - 1, "");
	cr_expect_eq(truth(text), EXPR_TRUE);
	free(text);
	snprintf(behind, sizeof(behind), "rss > 1%.*s", EXPR_DEPTH / 2,
		 "))))))))))))))))))))))))))))))))");
	text = repeated("", "not (", EXPR_DEPTH / 2, behind);
	cr_expect_eq(truth(text), EXPR_TRUE);
	free(text);
	text = repeated("rss > ", "1", 500, "");
	expect_wrong(text, "bad-value", "is no value");
	free(text);
}

Test(expr, says_what_decided)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "rss > 1.5G", "rss 4.0 GiB > 1.5 GiB" },
		/* as it is, not as it should be */
		{ "rss < 1.5G or swap != 0", "rss 4.0 GiB >= 1.5 GiB, swap 0 B = 0 B" },
		{ "glibc.trimmable > 30% of rss",
		  "glibc.trimmable 1.0 GiB <= 1.2 GiB (30% of rss)" },
		{ "jemalloc.dirty > 20% of rss",
		  "jemalloc.dirty (not known) > 819.2 MiB (20% of rss)" },
		{ "cgroup.fraction > 95%", "cgroup.fraction 0.900 <= 0.95" },
		{ "not jemalloc.prof_active", "jemalloc.prof_active true = true" },
		{ "uptime > 1h", "uptime 10.0 m <= 60.0 m" },
	};
	struct facts f;
	char text[EXPR_TEXT], small[24];

	some_facts(&f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr *e;
		struct diag d;

		cr_assert_eq(expr_parse(cases[i].text, &e, &d), 0, "%s", cases[i].text);
		cr_expect_str_eq(expr_explain(e, &f, false, text, sizeof(text)), cases[i].said);
		expr_explain(e, &f, false, small, sizeof(small));
		cr_expect_lt(strlen(small), sizeof(small));
		expr_free(e);
	}
}

/* What has decided, without what was not looked at. */
Test(expr, says_what_decided_of_what_is_known)
{
	struct facts f = { 0 };
	char text[EXPR_TEXT];
	struct expr *e;
	struct diag d;

	facts_set(&f, FACT_RSS, FROM_KERNEL, GIB);
	cr_assert_eq(expr_parse("glibc.trimmable > 1G and rss > 3G and swap > 1", &e, &d), 0);
	cr_expect_eq(expr_eval(e, &f), EXPR_FALSE);
	cr_expect_str_eq(expr_explain_known(e, &f, false, text, sizeof(text)),
			 "rss 1.0 GiB <= 3.0 GiB");
	expr_free(e);
}

Test(expr, names_its_facts)
{
	struct facts f;
	struct expr *e;
	struct diag d;

	some_facts(&f);
	cr_assert_eq(expr_parse("rss > 20% of anon and jemalloc.prof_active", &e, &d), 0);
	cr_expect(expr_names(e, FACT_RSS) && expr_names(e, FACT_ANON));
	cr_expect(expr_names(e, FACT_JEMALLOC_PROF_ACTIVE));
	cr_expect(!expr_names(e, FACT_SWAP));
	cr_expect_eq(expr_unknown(e, &f), FACT_ANON);
	facts_set(&f, FACT_ANON, FROM_KERNEL, 1);
	cr_expect_eq(expr_unknown(e, &f), FACT_COUNT);
	expr_free(e);
}
