// SPDX-License-Identifier: GPL-3.0-or-later
/* Runbooks that decide: require, when, on-error. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

/* Runs the text with -f on v, with these words before it; what it said is in r. */
static void runbook(struct run *r, const struct victim *v, const char *option, const char *text)
{
	char path[] = "/tmp/heapmedic-control-XXXXXX", pid[16];
	const struct run_opts o = { 0 };
	const char *args[] = { "-p", pid, "-f", path, option, NULL };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(pid, sizeof(pid), "%d", v->pid);
	/* an option stands before the file's arguments */
	if (option) {
		args[2] = option;
		args[3] = "-f";
		args[4] = path;
	}
	run_with(r, &o, args);
	unlink(path);
}

static void start(struct victim *v)
{
	victim_start_named(v, "retained", "1", NULL);
}

Test(control, a_requirement_that_is_met)
{
	struct victim v;
	struct run r;

	start(&v);
	run(&r, v.pid, "require", "rss > 1M and", "not glibc.trimmable < 1M", NULL);
	run_expect(&r, 0);
	cr_expect_str_eq(r.out, "");
	run_free(&r);
	run(&r, v.pid, "-v", "require", "rss", ">", "1M", NULL);
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.err, "required, and so it is: rss "), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

Test(control, a_requirement_that_is_not_met)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v);
	run(&r, v.pid, "require", "rss > 100G", NULL);
	run_expect(&r, 7);
	cr_expect_not_null(strstr(r.err, "<= 100.0 GiB"), "%s", r.err);
	run_free(&r);
	run(&r, v.pid, "--json", "require", "jemalloc.dirty > 1", NULL);
	o = run_json(&r, 0, v.pid, "require");
	cr_expect_eq(r.exit, 7);
	cr_expect_str_eq(json_text(o, "error.code"), "not-known");
	cr_expect_not_null(strstr(json_text(o, "error.text"), "jemalloc is not in use"));
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "require", "rsss > 1", NULL);
	run_expect(&r, 2);
	cr_expect_not_null(strstr(r.err, "did you mean rss?"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

/* The kernel's numbers need nobody's permission but that to read: nothing is held for them. */
Test(control, what_is_quick_holds_nobody)
{
	const struct run_opts o = { .program = victim_path("filtered"), .may_not_trace = true };
	const char *path = getenv("HEAPMEDIC");
	char pid[16];
	const char *args[] = { "ptrace",
			       "--",
			       path ? path : "./heapmedic",
			       "-p",
			       pid,
			       "require",
			       "rss > 1M and threads >= 1 and uptime < 1d",
			       NULL };
	struct victim v;
	struct run r;

	start(&v);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_with(&r, &o, args);
	run_expect(&r, 0);
	run_free(&r);
	/* what is quick has decided: that it is no jemalloc's process does not matter */
	args[6] = "jemalloc.dirty > 1 or rss > 1M";
	run_with(&r, &o, args);
	run_expect(&r, 0);
	run_free(&r);
	victim_stop(&v);
	/* one who is asked by a call, but not for this */
	victim_start_named(&v, "jemlinked", "2", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	args[6] = "not (jemalloc.dirty > 1 and rss > 100G)";
	run_with(&r, &o, args);
	run_expect(&r, 0);
	run_free(&r);
	victim_stop(&v);
}

Test(control, when_it_holds_the_command_runs)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v);
	/* options of the command are its own */
	run(&r, v.pid, "--json", "when", "glibc.trimmable > 20% of rss", "then", "trim",
	    "--min-yield", "32M", NULL);
	cr_expect_eq(r.exit, 0);
	cr_expect_eq(run_lines(&r), 1);
	o = run_json(&r, 0, v.pid, "trim");
	cr_expect_gt(json_int(o, "result.returned_bytes"), 32ll << 20);
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "--json", "when", "glibc.trimmable > 20% of rss", "then", "trim", NULL);
	cr_expect_eq(r.exit, 0);
	cr_expect_eq(run_lines(&r), 0, "there is nothing left: %s", r.out);
	run_free(&r);
	run(&r, v.pid, "when", "rss > 1", "then", "trim", "--min-yield", "100G", NULL);
	run_expect(&r, 7);
	run_free(&r);
	victim_stop(&v);
}

Test(control, a_dry_run_tells_the_decisions)
{
	static struct state before;
	struct victim v;
	struct run r;

	start(&v);
	state_take(&v, &before);
	runbook(&r, &v, "--dry-run",
		"when rss > 1M then trim\nwhen rss > 100G then trim\nwhen jemalloc.dirty > 1 then "
		"trim\n"
		"require rss > 1M\n");
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.err, "when: true (rss "), "%s", r.err);
	cr_expect_not_null(strstr(r.err, "trim would run"), "%s", r.err);
	cr_expect_not_null(strstr(r.err, "when: false (rss "), "%s", r.err);
	cr_expect_not_null(strstr(r.err, "when: not known (jemalloc.dirty "), "%s", r.err);
	run_free(&r);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
}

#define NESTED "rss > 1 then when rss > 1 then when rss > 1 then when rss > 1 then when "

Test(control, errors_have_their_place_before_anything_runs)
{
	static const struct {
		const char *text, *place;
	} cases[] = {
		{ "echo a\nwhen rss > 1X then trim\n", ":2: '1X'" },
		{ "echo a\n\nwhen rss > 1 then trimm\n", ":3: no command is named 'trimm'" },
		{ "echo a\nwhen rss > 1 then trim --min-yeld 1\n", ":2: trim has no option" },
		{ "echo a\nwhen rss > 1\n", ":2: when: " },
		{ "echo a\nwhen rss > 1 then\n", ":2: when: no command follows" },
		{ "echo a\nwhen rss > 1 trim it\n", ":2: when: `then` is missing" },
		{ "echo a\nwhen " NESTED NESTED NESTED NESTED "rss > 1 then echo b\n",
		  ":2: 17 `when` stand in one another" },
		{ "echo a\nrequire rss >\n", ":2: the condition ends" },
		{ "echo a\non-error sometimes\n", ":2: on-error: 'sometimes'" },
	};
	struct victim v;

	start(&v);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;

		runbook(&r, &v, NULL, cases[i].text);
		run_expect(&r, 2);
		cr_expect_not_null(strstr(r.err, cases[i].place), "%s", r.err);
		cr_expect_str_eq(r.out, "", "%s", cases[i].text);
		run_free(&r);
	}
	victim_stop(&v);
}

Test(control, on_error)
{
	static const struct {
		const char *text;
		int exit;
		const char *out;
	} cases[] = {
		{ "mallctl version\necho a\n", 5, "" },
		{ "on-error continue\nmallctl version\necho a\n", 5, "a\n" },
		/* the highest of all */
		{ "on-error continue\nwhen rss > 1 then require rss < 1\n", 7, "" },
		{ "on-error continue\nmallctl version\ntrim --min-yield 100G\necho a\n", 7, "a\n" },
		{ "on-error continue\nmallctl version\non-error stop\nmallctl version\necho a\n", 5,
		  "" },
		/* a condition that is not met stops in any case */
		{ "on-error continue\nrequire rss < 1\necho a\n", 7, "" },
		{ "on-error continue\nwhen rss > 1 then require rss < 1\necho a\n", 7, "" },
		{ "on-error continue\nmallctl version\nquit\necho a\n", 5, "" },
	};
	struct victim v;

	start(&v);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *said;
		struct run r;

		runbook(&r, &v, NULL, cases[i].text);
		cr_expect_eq(r.exit, cases[i].exit, "%s: exit %d, %s", cases[i].text, r.exit,
			     r.err);
		said = strncmp(r.out, "rss ", 4) ? r.out : strchrnul(r.out, '\n') + 1;
		cr_expect_str_eq(said, cases[i].out, "%s", cases[i].text);
		run_free(&r);
	}
	victim_stop(&v);
}

/* The same in -e and on standard input, which are read piece by piece. */
Test(control, on_error_elsewhere)
{
	const struct run_opts in = { .input = "on-error continue\nmallctl version\necho a\n"
					      "require rss < 1\necho b\n" };
	const struct run_opts none = { 0 };
	char pid[16];
	const char *stream[] = { "-p", pid, NULL };
	const char *exprs[] = { "-p", pid,	"-e", "on-error continue", "-e", "mallctl version",
				"-e", "echo a", "-e", "require rss < 1",   "-e", "echo b",
				NULL };
	struct victim v;
	struct run r;

	start(&v);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_with(&r, &in, stream);
	cr_expect_eq(r.exit, 7);
	cr_expect_str_eq(r.out, "a\n");
	run_free(&r);
	run_with(&r, &none, exprs);
	cr_expect_eq(r.exit, 7);
	cr_expect_str_eq(r.out, "a\n");
	run_free(&r);
	victim_stop(&v);
}

/* A snapshot decides as its process did. */
Test(control, of_a_snapshot)
{
	const struct run_opts none = { 0 };
	char path[] = "/tmp/heapmedic-control-XXXXXX";
	const char *args[] = { "--load", path, "require", "rss > 1M and glibc.trimmable > 1M",
			       NULL };
	struct victim v;
	struct run r;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	start(&v);
	run_ok(v.pid, "snapshot", "--force", path, NULL);
	victim_stop(&v);
	run_with(&r, &none, args);
	run_expect(&r, 0);
	run_free(&r);
	args[3] = "rss > 100G";
	run_with(&r, &none, args);
	run_expect(&r, 7);
	run_free(&r);
	unlink(path);
}
