// SPDX-License-Identifier: GPL-3.0-or-later
/* `guard`, beside processes that grow, end and are started anew. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "stream.h"
#include "victim.h"

#define MIB (1024ll * 1024)

static void grow(struct victim *v, char how)
{
	char said[8] = "";
	struct pollfd p = { .fd = v->out, .events = POLLIN };

	cr_assert_eq(write(v->in, &how, 1), 1);
	cr_assert_gt(poll(&p, 1, STREAM_MS), 0);
	cr_assert_eq(read(v->out, said, sizeof(said) - 1), 5, "%s", said);
}

static void guard(struct stream *s, pid_t pid, const char *when, const char *action,
		  const char *const *more)
{
	const char *words[16] = { "guard", "--when", when, "--do", action, "--every", "1s" };
	char number[16];

	for (size_t i = 0; more[i]; i++)
		words[7 + i] = more[i];
	snprintf(number, sizeof(number), "%d", (int)pid);
	stream_start(s, "-p", number, words);
}

static bool is(json_t *o, const char *decision)
{
	bool same = json_object_get(json_at(o, "result"), "decision") &&
		    !strcmp(json_text(o, "result.decision"), decision);

	json_decref(o);
	return same;
}

/* Lines up to one with that decision. */
static void await(struct stream *s, const char *decision)
{
	for (int i = 0; i < STREAM_LINES; i++)
		if (is(stream_line(s, s->target), decision))
			return;
	cr_assert_fail("it never decides %s", decision);
}

Test(guard, acts_once_and_again_when_it_was_cleared, .timeout = 200)
{
	static const char *const more[] = { "--cooldown", "1s", NULL };
	struct victim v;
	struct stream s;
	json_t *o;

	victim_start_named(&v, "growing", "64", NULL);
	guard(&s, v.pid, "glibc.trimmable > 32M", "echo acted", more);
	await(&s, "wait");
	grow(&v, 't');
	await(&s, "act");
	/* echo has given nothing back: to do it again would not either */
	cr_assert(is(stream_line(&s, s.target), "hold"));
	cr_assert(is(stream_line(&s, s.target), "hold"));
	run_ok(v.pid, "trim", NULL);
	await(&s, "wait");
	grow(&v, 't');
	await(&s, "act");
	o = stream_stop(&s, SIGTERM);
	cr_expect_eq(json_int(o, "result.summary.actions"), 2);
	cr_expect_eq(json_int(o, "result.summary.failed"), 0);
	json_decref(o);
	victim_stop(&v);
}

/* What it does is a command like any other, with its own answer. */
Test(guard, trims)
{
	const struct run_opts none = { 0 };
	char pid[16];
	const char *args[] = { "--json",  "-p",
			       pid,	  "guard",
			       "--when",  "glibc.trimmable > 32M and rss > 20% of rss",
			       "--do",	  "trim --min-yield 32M",
			       "--every", "1s",
			       "--max",	  "1",
			       NULL };
	static struct state before;
	struct victim v;
	struct run r;
	json_t *o;

	victim_start_named(&v, "growing", "64", NULL);
	grow(&v, 't');
	state_take(&v, &before);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &none, args);
	cr_assert_eq(r.exit, 0, "%s", r.err);
	cr_assert_eq(run_lines(&r), 3, "%s", r.out);
	o = run_json(&r, 0, v.pid, "guard");
	cr_expect_str_eq(json_text(o, "result.decision"), "act");
	cr_expect_str_eq(json_text(o, "result.action"), "trim");
	cr_expect_gt(json_int(o, "result.facts.rss"), 32 * MIB);
	json_decref(o);
	o = run_json(&r, 1, v.pid, "trim");
	cr_expect_geq(json_int(o, "result.returned_bytes"), 32 * MIB);
	json_decref(o);
	o = run_json(&r, 2, v.pid, "guard");
	cr_expect_eq(json_int(o, "result.summary.actions"), 1);
	json_decref(o);
	run_free(&r);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
}

Test(guard, two_of_them_do_not_act_at_once, .timeout = 200)
{
	static const char *const more[] = { "--cooldown", "1m", NULL };
	struct victim v;
	struct stream a, b;

	victim_start_named(&v, "growing", "64", NULL);
	guard(&a, v.pid, "rss > 1", "sleep 5s", more);
	await(&a, "act");
	guard(&b, v.pid, "rss > 1", "sleep 5s", more);
	await(&b, "busy");
	/* what the other one did counts as an action */
	await(&b, "cool");
	json_decref(stream_stop(&b, SIGINT));
	json_decref(stream_stop(&a, SIGINT));
	victim_stop(&v);
}

/* Who is killed in the middle of an action, again and again, would act each time that it is started
 * anew. */
Test(guard, an_action_counts_from_its_beginning, .timeout = 200)
{
	static const char *const more[] = { "--cooldown", "1h", NULL };
	struct victim v;
	struct stream a, b;
	int status;

	victim_start_named(&v, "growing", "64", NULL);
	guard(&a, v.pid, "rss > 1", "sleep 1m", more);
	await(&a, "act");
	cr_assert_eq(kill(a.pid, SIGKILL), 0);
	cr_assert_eq(waitpid(a.pid, &status, 0), a.pid);
	guard(&b, v.pid, "rss > 1", "sleep 1m", more);
	cr_assert(is(stream_line(&b, b.target), "cool"));
	json_decref(stream_stop(&b, SIGTERM));
	victim_stop(&v);
}

/* Of processes that are gone nothing stays for ever. */
Test(guard, what_is_left_of_others_is_removed)
{
	const char *dir = "/run/heapmedic";
	char path[64], kept[64];
	struct victim v, w;
	struct run r;
	FILE *f;

	if (geteuid() != 0)
		cr_skip_test("for another user than root the directory is another one");
	victim_start_named(&v, "single", NULL, NULL);
	victim_start_named(&w, "single", NULL, NULL);
	/* makes the directory, and a file of v */
	run_ok(v.pid, "guard", "--when", "rss > 1", "--do", "facts rss", "--max", "1", NULL);
	snprintf(path, sizeof(path), "%s/%d-1", dir, (int)v.pid);
	snprintf(kept, sizeof(kept), "%s/%d-1", dir, (int)w.pid);
	for (int i = 0; i < 2; i++) {
		f = fopen(i ? kept : path, "w");
		cr_assert_not_null(f);
		cr_assert_eq(fclose(f), 0);
	}
	victim_stop(&v);
	run(&r, w.pid, "guard", "--when", "rss > 1", "--do", "facts rss", "--max", "1", NULL);
	run_expect(&r, 0);
	run_free(&r);
	cr_expect_neq(access(path, F_OK), 0);
	cr_expect_eq(access(kept, F_OK), 0);
	cr_expect_eq(unlink(kept), 0);
	victim_stop(&w);
}

Test(guard, a_dry_run_does_nothing)
{
	const struct run_opts none = { 0 };
	char pid[16];
	const char *args[] = { "--dry-run", "-p",   pid,     "guard", "--when", "rss > 1",
			       "--do",	    "trim", "--max", "1",     NULL };
	struct victim v;
	struct run r;
	long rss;

	victim_start_named(&v, "growing", "64", NULL);
	grow(&v, 't');
	rss = victim_settle(&v);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &none, args);
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, " act: rss "), "%s", r.out);
	cr_expect_not_null(strstr(r.out, "would call malloc_trim(0)"), "%s", r.out);
	cr_expect_gt(victim_settle(&v), rss - 1024);
	run_free(&r);
	victim_stop(&v);
}

/* ---- processes that end */

Test(guard, the_process_ends)
{
	static const char *const more[] = { NULL };
	struct victim v;
	struct stream s;
	json_t *o;

	victim_start_named(&v, "growing", NULL, NULL);
	guard(&s, v.pid, "rss > 100G", "trim", more);
	await(&s, "wait");
	close(v.in);
	v.in = -1;
	victim_wait_exit(&v, 0);
	o = stream_end(&s, 3);
	cr_expect_str_eq(json_text(o, "error.code"), "gone");
	json_decref(o);
}

/* A copy under a name that nobody else has, so that the name means it alone. */
static void start_named(struct victim *v, char *path)
{
	const struct victim_plan plan = { .argv = { path, "64" } };

	victim_start(v, &plan);
}

Test(guard, a_service_that_is_started_anew, .timeout = 200)
{
	static const char *const words[] = { "guard", "--when", "glibc.trimmable > 32M",
					     "--do",  "trim",	"--every",
					     "1s",    NULL };
	char path[64], copy[300];
	struct victim v;
	struct stream s;
	json_t *o;

	snprintf(path, sizeof(path), "/tmp/hmg%d", (int)getpid());
	snprintf(copy, sizeof(copy), "cp %s %s", victim_path("growing"), path);
	cr_assert_eq(system(copy), 0);
	start_named(&v, path);
	stream_start(&s, "-n", path + strlen("/tmp/"), words);
	s.target = v.pid;
	await(&s, "wait");
	close(v.in);
	v.in = -1;
	victim_wait_exit(&v, 0);
	await(&s, "gone");
	start_named(&v, path);
	s.target = v.pid;
	await(&s, "found");
	grow(&v, 't');
	await(&s, "act");
	s.command = "trim";
	o = stream_line(&s, v.pid);
	cr_expect_geq(json_int(o, "result.returned_bytes"), 32 * MIB);
	json_decref(o);
	s.command = "guard";
	json_decref(stream_stop(&s, SIGTERM));
	victim_stop(&v);
	unlink(path);
}

/* One guard of the process, with options before it and words behind it, that ends by itself. */
static void guard_once(struct run *r, const struct victim *v, const char *option,
		       const char *action)
{
	const struct run_opts none = { 0 };
	char pid[16];
	const char *args[] = { option, "-p",	     pid,  "guard", "--when", "rss > 1", "--do",
			       action, "--cooldown", "0s", "--max", "1",      NULL };

	snprintf(pid, sizeof(pid), "%d", (int)v->pid);
	run_with(r, &none, args);
}

/* The change that is told to begin is told to have ended, of the same process, also if that is
 * gone. */
Test(guard, its_records_are_of_one_process, .timeout = 200)
{
	char path[64], log[80], copy[300], text[4096] = "", want[64];
	const char *words[] = { "guard",   "--when", "rss > 100G", "--do", "trim",
				"--every", "1s",     "--audit",	   log,	   NULL };
	struct victim v;
	struct stream s;
	FILE *in;

	snprintf(path, sizeof(path), "/tmp/hma%d", (int)getpid());
	snprintf(log, sizeof(log), "%s.log", path);
	snprintf(copy, sizeof(copy), "cp %s %s", victim_path("growing"), path);
	cr_assert_eq(system(copy), 0);
	start_named(&v, path);
	stream_start(&s, "-n", path + strlen("/tmp/"), words);
	s.target = v.pid;
	await(&s, "wait");
	close(v.in);
	v.in = -1;
	victim_wait_exit(&v, 0);
	await(&s, "gone");
	json_decref(stream_stop(&s, SIGTERM));
	in = fopen(log, "r");
	cr_assert_not_null(in);
	cr_expect_gt(fread(text, 1, sizeof(text) - 1, in), 0);
	fclose(in);
	snprintf(want, sizeof(want), "\"pid\":%d,", (int)v.pid);
	cr_expect_not_null(strstr(text, "\"phase\":\"before\""), "%s", text);
	cr_assert_not_null(strstr(text, "\n{"), "%s", text);
	cr_expect_not_null(strstr(strstr(text, "\n{"), want), "%s", text);
	cr_expect_not_null(strstr(text, "\"phase\":\"after\""), "%s", text);
	unlink(log);
	unlink(path);
}

/* It may do what its action may. */
Test(guard, what_is_refused_is_the_action)
{
	static const struct {
		const char *option, *action;
		int exit;
	} cases[] = {
		{ "--read-only", "facts", 0 },
		{ "--read-only", "trim", 4 },
		{ "--read-only", "when rss > 1 then trim", 4 },
		{ "--passive", "facts", 0 },
		{ "--passive", "stats", 4 },
		{ "--passive", "trim", 4 },
	};
	struct victim v;

	victim_start_named(&v, "single", NULL, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;

		guard_once(&r, &v, cases[i].option, cases[i].action);
		cr_expect_eq(r.exit, cases[i].exit, "%s %s: %d, %s", cases[i].option,
			     cases[i].action, r.exit, r.err);
		/* at once, and not when it is time */
		cr_expect(!r.exit || !strstr(r.out, " act: "), "%s", r.out);
		run_free(&r);
	}
	victim_stop(&v);
}

/* That has not failed to help: it is tried again, and the guard does not end as if it were done. */
Test(guard, an_action_that_is_refused, .timeout = 200)
{
	const struct run_opts none = { 0 };
	char pid[16];
	const char *args[] = { "-p",   pid,	"guard", "--when",  "rss > 1", "--do",
			       "trim", "--max", "2",	 "--every", "1s",      "--cooldown",
			       "1s",   "--for", "1m",	 NULL };
	struct victim v;
	struct run r;

	victim_start_named(&v, "growing", "64", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	cr_assert_eq(kill(v.pid, SIGSTOP), 0);
	run_with(&r, &none, args);
	cr_assert_eq(kill(v.pid, SIGCONT), 0);
	cr_expect_eq(r.exit, 6, "exit %d: %s%s", r.exit, r.out, r.err);
	cr_expect_not_null(strstr(r.out, "2 actions, 2 of them failed"), "%s", r.out);
	cr_expect_not_null(strstr(r.err, "2 of 2 actions failed"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

/* The condition of its action is not one of the runbook that it stands in. */
Test(guard, a_requirement_in_its_action)
{
	const struct run_opts in = {
		.input = "on-error continue\n"
			 "guard --when 'rss > 1' --do 'require rss < 1' --max 1\n"
			 "echo behind\n"
	};
	char pid[16];
	const char *args[] = { "-p", pid, "-f", "-", NULL };
	struct victim v;
	struct run r;

	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &in, args);
	cr_expect_eq(r.exit, 7);
	cr_expect_not_null(strstr(r.out, "\nbehind\n"), "%s%s", r.out, r.err);
	run_free(&r);
	victim_stop(&v);
}

/* A time that goes beyond what a clock can say is not over at once. */
Test(guard, a_very_long_time)
{
	const struct run_opts none = { 0 };
	char pid[16];
	const char *args[] = { "-p",   pid,    "guard",	  "--when",	  "rss > 1000000G",
			       "--do", "trim", "--every", "18446744073s", "--for",
			       "2s",   NULL };
	struct victim v;
	struct run r;

	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &none, args);
	run_expect(&r, 0);
	cr_expect_not_null(strstr(r.out, "guard ends: 1 looks"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* Its parent has not waited for the one before it yet: the new one is the one that is meant. */
Test(guard, one_that_has_ended_has_the_name_too)
{
	const struct run_opts none = { 0 };
	char path[64], copy[300];
	const char *args[] = { "-n", path + strlen("/tmp/"), "facts", NULL };
	struct victim ended, v;
	struct run r;
	siginfo_t si;

	snprintf(path, sizeof(path), "/tmp/hmz%d", (int)getpid());
	snprintf(copy, sizeof(copy), "cp %s %s", victim_path("growing"), path);
	cr_assert_eq(system(copy), 0);
	start_named(&ended, path);
	cr_assert_eq(kill(ended.pid, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)ended.pid, &si, WEXITED | WNOWAIT), 0);
	start_named(&v, path);
	run_with(&r, &none, args);
	cr_expect_eq(r.exit, 0, "exit %d: %s", r.exit, r.err);
	/* one alone has no heading with its pid */
	cr_expect_null(strstr(r.out, "=="), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
	victim_kill(&ended);
	unlink(path);
}

Test(guard, usage)
{
	static const struct {
		const char *option, *value, *text;
	} cases[] = {
		{ "--when", "rss >", "the condition ends" },
		{ "--do", "trimm", "no command is named" },
		{ "--do", "trim; trim", "--do takes one command" },
		{ "--do", "", "--do takes one command" },
		{ "--do", "watch", "--do cannot run watch" },
		{ "--do", "guard --when 'rss > 1' --do trim", "--do cannot run guard" },
		{ "--do", "when rss > 1 then watch", "--do cannot run watch" },
		{ "--do", "when rss > 1 then when rss > 1 then quit", "--do cannot run quit" },
		{ "--do", "when rss > 1", "`then` is missing" },
		{ "--do", "trim --foo", "trim has no option" },
		{ "--every", "10ms", "too short" },
		{ "--every", "x", "--every" },
		{ "--cooldown", "x", "--cooldown" },
		{ "--max", "0", "--max" },
		{ "--clear", "rsss > 1", "no fact is named" },
	};
	struct victim v;

	victim_start_named(&v, "single", NULL, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;

		run(&r, v.pid, "guard", "--when", "rss > 1", "--do", "trim", "--max", "1",
		    cases[i].option, cases[i].value, NULL);
		run_expect(&r, 2);
		cr_expect_not_null(strstr(r.err, cases[i].text), "%s", r.err);
		run_free(&r);
	}
	victim_stop(&v);
}

/* That is one error, not one for each of them. */
Test(guard, watches_over_one_process)
{
	const struct run_opts none = { 0 };
	char a[16], b[16];
	const char *args[] = {
		"-p", a, "-p", b, "guard", "--when", "rss > 1", "--do", "trim", NULL
	};
	struct victim v, w;
	struct run r;

	victim_start_named(&v, "single", NULL, NULL);
	victim_start_named(&w, "single", NULL, NULL);
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	run_with(&r, &none, args);
	run_expect(&r, 2);
	cr_expect_str_eq(r.out, "");
	cr_assert_not_null(strstr(r.err, "2 are given"), "%s", r.err);
	cr_expect_eq(strchr(r.err, '\n'), r.err + strlen(r.err) - 1, "%s", r.err);
	run_free(&r);
	victim_stop(&v);
	victim_stop(&w);
}
