// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/metrics.h"

static char *written(const struct metrics *m)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	metrics_write(m, f);
	cr_assert_eq(fclose(f), 0);
	return text;
}

Test(metrics, a_family_stands_there_once)
{
	struct metrics m = { 0 };
	const struct timespec first = { 1764590400, 7000000 }, second = { 1764590401, 0 };
	struct facts f = { 0 };
	char *text;

	facts_set(&f, FACT_RSS, FROM_KERNEL, UINT64_MAX);
	facts_set(&f, FACT_MINFLT, FROM_KERNEL, 7);
	cr_assert_eq(metrics_add(&m, 4711, "redis-server", &f, &first), 0);
	facts_set(&f, FACT_RSS, FROM_KERNEL, 5);
	facts_set_share(&f, FACT_CGROUP_FRACTION, FROM_KERNEL, 1, 4);
	facts_set_text(&f, FACT_GLIBC_VERSION, FROM_PASSIVE, "2.36");
	facts_set(&f, FACT_JEMALLOC_PROF_ACTIVE, FROM_CALL, 1);
	cr_assert_eq(metrics_add(&m, 4712, "a\"b\\x0a", &f, &second), 0);
	text = written(&m);
	cr_expect_str_eq(text,
			 "# HELP heapmedic_rss resident memory, as smaps_rollup counts it\n"
			 "# TYPE heapmedic_rss gauge\n"
			 "heapmedic_rss{pid=\"4711\",comm=\"redis-server\"} 18446744073709551615\n"
			 "heapmedic_rss{pid=\"4712\",comm=\"a\\\"b\\\\x0a\"} 5\n"
			 "# HELP heapmedic_minflt_total minor page faults so far\n"
			 "# TYPE heapmedic_minflt_total counter\n"
			 "heapmedic_minflt_total{pid=\"4711\",comm=\"redis-server\"} 7\n"
			 "heapmedic_minflt_total{pid=\"4712\",comm=\"a\\\"b\\\\x0a\"} 7\n"
			 "# HELP heapmedic_cgroup_fraction cgroup.used of cgroup.limit\n"
			 "# TYPE heapmedic_cgroup_fraction gauge\n"
			 "heapmedic_cgroup_fraction{pid=\"4712\",comm=\"a\\\"b\\\\x0a\"} 0.25\n"
			 "# HELP heapmedic_glibc_version_info version of glibc\n"
			 "# TYPE heapmedic_glibc_version_info gauge\n"
			 "heapmedic_glibc_version_info{pid=\"4712\",comm=\"a\\\"b\\\\x0a\",text="
			 "\"2.36\"} 1\n"
			 "# HELP heapmedic_jemalloc_prof_active is heap profiling switched on\n"
			 "# TYPE heapmedic_jemalloc_prof_active gauge\n"
			 "heapmedic_jemalloc_prof_active{pid=\"4712\",comm=\"a\\\"b\\\\x0a\"} 1\n"
			 "# HELP heapmedic_look_timestamp_seconds when it was looked at\n"
			 "# TYPE heapmedic_look_timestamp_seconds gauge\n"
			 "heapmedic_look_timestamp_seconds{pid=\"4711\",comm=\"redis-server\"} "
			 "1764590400.007\n"
			 "heapmedic_look_timestamp_seconds{pid=\"4712\",comm=\"a\\\"b\\\\x0a\"} "
			 "1764590401.000\n");
	free(text);
	metrics_free(&m);
	text = written(&m);
	cr_expect_str_eq(text, "");
	free(text);
}

/* ---- what is built on it */

static bool is_name(const char *name, size_t len)
{
	char known[64];

	for (unsigned id = 0; id < FACT_COUNT; id++) {
		metrics_name((enum fact_id)id, known);
		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return true;
	}
	return strlen(METRICS_TIME) == len && memcmp(METRICS_TIME, name, len) == 0;
}

/* How many names of metrics are in this file; each is one that there is. */
static unsigned check_names(const char *path)
{
	static char text[262144];
	FILE *f = fopen(path, "r");
	unsigned n = 0;
	size_t len;

	cr_assert_not_null(f, "%s: tests are run in the directory of the sources", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	cr_assert(feof(f), "%s is too long", path);
	fclose(f);
	for (char *at = text; (at = strstr(at, "heapmedic_")); at += len) {
		len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
		cr_expect(is_name(at, len), "%s: no metric is named %.*s", path, (int)len, at);
		n++;
	}
	return n;
}

Test(metrics, alerts_and_dashboard_name_what_there_is)
{
	static const char *const patterns[] = { "scripts/prometheus/*.yml",
						"scripts/grafana/*.json",
						"tests/fixtures/automation/rules-test.yml" };

	cr_expect(is_name("heapmedic_minflt_total", 22));
	cr_expect_not(is_name("heapmedic_minflt", 16));
	cr_expect_not(is_name("heapmedic_", 10));
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		glob_t g;

		cr_assert_eq(glob(patterns[i], 0, NULL, &g), 0, "%s", patterns[i]);
		for (size_t k = 0; k < g.gl_pathc; k++)
			cr_expect_gt(check_names(g.gl_pathv[k]), 10, "%s", g.gl_pathv[k]);
		globfree(&g);
	}
}
