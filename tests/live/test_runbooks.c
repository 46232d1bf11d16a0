// SPDX-License-Identifier: GPL-3.0-or-later
/* The runbooks in scripts/, each as it is. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

/* heapmedic OPTION -p PID -f scripts/NAME.hm ARG ARG */
static void runbook(struct run *r, const struct victim *v, const char *option, const char *name,
		    const char *arg1, const char *arg2)
{
	const struct run_opts none = { 0 };
	char pid[16], path[80];
	const char *args[] = { option, "-p", pid, "-f", path, arg1, arg2, NULL };

	snprintf(pid, sizeof(pid), "%d", (int)v->pid);
	snprintf(path, sizeof(path), "scripts/%s.hm", name);
	cr_assert_eq(access(path, R_OK), 0, "tests are run in the directory of the sources");
	run_with(r, &none, args);
}

static void expect_in(const struct run *r, const char *const *parts)
{
	for (; *parts; parts++)
		cr_expect_not_null(strstr(r->out, *parts), "%s is not in: %s", *parts, r->out);
}

Test(runbooks, diagnose)
{
	static const char *const parts[] = { "total ", "ARENA", NULL };
	static struct state before;
	struct victim v;
	struct run r;

	victim_start_named(&v, "retained", "1", NULL);
	state_take(&v, &before);
	runbook(&r, &v, "--passive", "diagnose", NULL, NULL);
	run_expect(&r, 0);
	expect_in(&r, parts);
	run_free(&r);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
}

Test(runbooks, emergency_trim)
{
	static const char *const parts[] = { "rss ", "predicted", "BACK", NULL };
	struct victim v;
	struct run r;

	victim_start_named(&v, "retained", "1", NULL);
	runbook(&r, &v, "--dry-run", "emergency-trim", "32M", "100ms");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "would call malloc_trim(0)"), "%s", r.out);
	run_free(&r);
	runbook(&r, &v, "-y", "emergency-trim", "32M", "100ms");
	run_expect(&r, 0);
	expect_in(&r, parts);
	run_free(&r);
	/* it would not help any more */
	runbook(&r, &v, "-y", "emergency-trim", "32M", "100ms");
	run_expect(&r, 7);
	cr_expect_null(strstr(r.out, "BACK"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

Test(runbooks, leak_or_retained)
{
	static const char *const parts[] = { "growth", "total ", NULL };
	char base[] = "/tmp/heapmedic-runbook-XXXXXX", path[80];
	struct victim v;
	struct run r;

	cr_assert_not_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/x", base);
	victim_start_named(&v, "retained", "1", NULL);
	runbook(&r, &v, "-y", "leak-or-retained", "100ms", path);
	run_expect(&r, 0);
	expect_in(&r, parts);
	run_free(&r);
	victim_stop(&v);
	snprintf(path, sizeof(path), "%s/x.before.hms", base);
	cr_expect_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/x.after.hms", base);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(base), 0);
}

Test(runbooks, collect_for_ticket)
{
	static const char *const parts[] = { "is saved in", "total ", "glibc.trimmable", NULL };
	char base[] = "/tmp/heapmedic-runbook-XXXXXX", path[80];
	struct victim v;
	struct run r;

	cr_assert_not_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/x", base);
	victim_start_named(&v, "retained", "1", NULL);
	runbook(&r, &v, "--passive", "collect-for-ticket", path, NULL);
	run_expect(&r, 0);
	expect_in(&r, parts);
	run_free(&r);
	victim_stop(&v);
	snprintf(path, sizeof(path), "%s/x.hms", base);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(base), 0);
}

Test(runbooks, jemalloc_purge)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "jemlinked", "2", NULL);
	runbook(&r, &v, "-y", "jemalloc-purge", "0", NULL);
	/* how much there is, is jemalloc's affair: nothing, and then it says so */
	cr_expect(r.exit == 0 || r.exit == 7, "exit %d: %s", r.exit, r.err);
	cr_expect_not_null(strstr(r.out, "jemalloc.dirty"), "%s", r.out);
	run_free(&r);
	runbook(&r, &v, "-y", "jemalloc-purge", "100G", NULL);
	run_expect(&r, 7);
	run_free(&r);
	victim_stop(&v);
}

Test(runbooks, jemalloc_profile)
{
	const struct victim_plan plan = {
		.argv = { "@sampled", "1", "4" },
		.env = "MALLOC_CONF=prof:true,prof_active:false,lg_prof_sample:0"
	};
	static const char *const ends[] = { "heap", "svg" };
	char base[] = "/tmp/heapmedic-runbook-XXXXXX", path[96];
	struct victim v;
	struct stat st;
	struct run r;

	cr_assert_not_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/x", base);
	victim_start(&v, &plan);
	runbook(&r, &v, "-y", "jemalloc-profile", "1s", path);
	run_expect(&r, 0);
	run_free(&r);
	victim_stop(&v);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/x.%s", base, ends[i]);
		cr_expect(stat(path, &st) == 0 && st.st_size > 100, "%s", path);
		cr_expect_eq(unlink(path), 0);
	}
	cr_expect_eq(rmdir(base), 0);
}

/* None is without its test, and none asks for what the command line does not know. */
Test(runbooks, each_has_a_test)
{
	static const char *const tested[] = { "diagnose",	  "emergency-trim",
					      "leak-or-retained", "collect-for-ticket",
					      "jemalloc-purge",	  "jemalloc-profile" };
	size_t known = 0;
	glob_t g;

	cr_assert_eq(glob("scripts/*.hm", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++)
		for (size_t k = 0; k < sizeof(tested) / sizeof(tested[0]); k++) {
			char path[80];

			snprintf(path, sizeof(path), "scripts/%s.hm", tested[k]);
			known += strcmp(path, g.gl_pathv[i]) == 0;
		}
	cr_expect_eq(known, g.gl_pathc);
	cr_expect_eq(known, sizeof(tested) / sizeof(tested[0]));
	globfree(&g);
}
