// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
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
