// SPDX-License-Identifier: GPL-3.0-or-later
/* `watch`, beside processes that grow when they are told to. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "stream.h"
#include "victim.h"

#define MIB (1024ll * 1024)

static void watcher_start(struct stream *w, pid_t target, const char *option)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)target);
	stream_start(w, "-p", number, (const char *[]){ "watch", "-q", "100ms", option, NULL });
}

/* Makes the victim grow, and waits until it has. */
static void grow(struct victim *v, char how)
{
	char said[8] = "";
	struct pollfd p = { .fd = v->out, .events = POLLIN };

	cr_assert_eq(write(v->in, &how, 1), 1);
	cr_assert_gt(poll(&p, 1, STREAM_MS), 0);
	cr_assert_eq(read(v->out, said, sizeof(said) - 1), 5, "%s", said);
	cr_assert_str_eq(said, "done\n");
}

static void check_line(json_t *o)
{
	json_t *live = json_at(o, "result.live_bytes");

	cr_assert_gt(json_int(o, "result.rss_bytes"), 0);
	cr_assert_geq(json_int(o, "result.swap_bytes"), 0);
	cr_assert_geq(json_int(o, "result.growth_bytes"), 0);
	json_text(o, "result.text");
	if (json_is_null(live) || json_real_value(json_at(o, "result.age_seconds")) > 0)
		return;
	/* of one reading: each byte is in one place */
	cr_assert_eq(json_int(o, "result.live_bytes") + json_int(o, "result.retained_bytes") +
			     json_int(o, "result.other_bytes"),
		     json_int(o, "result.rss_bytes"));
}

/*
 * Lines until one says so. Those before it are of a moment in the middle, or between two looks at
 * the heap, and may not know yet.
 */
static void await_growth(struct stream *w, const char *growth, long long least)
{
	for (int i = 0; i < STREAM_LINES; i++) {
		json_t *o = stream_line(w, w->target), *g = json_at(o, "result.growth");
		bool is = json_is_string(g) && !strcmp(json_string_value(g), growth) &&
			  json_int(o, "result.growth_bytes") >= least;

		check_line(o);
		json_decref(o);
		if (is)
			return;
	}
	cr_assert_fail("no line says %s", growth);
}

static const struct {
	char how;
	const char *growth;
} kinds[] = { { 'l', "live" }, { 't', "retained" }, { 'm', "not-allocator" } };

Test(watch, what_it_grows_by)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct stream w;
		struct victim v;
		json_t *o;

		victim_start_named(&v, "growing", "24", NULL);
		watcher_start(&w, v.pid, NULL);
		o = stream_line(&w, w.target);
		check_line(o);
		cr_assert_str_eq(json_text(o, "result.growth"), "none");
		cr_assert(json_is_null(json_at(o, "result.minflt_per_second")));
		cr_assert(json_is_null(json_at(o, "result.after_trim")));
		json_decref(o);
		grow(&v, kinds[i].how);
		await_growth(&w, kinds[i].growth, 23 * MIB);
		o = stream_stop(&w, i % 2 ? SIGTERM : SIGINT);
		cr_assert_str_eq(json_text(o, "result.summary.growth"), kinds[i].growth);
		cr_assert_geq(json_int(o, "result.summary.growth_bytes"), 23 * MIB);
		cr_assert_geq(json_int(o, "result.summary.lines"), 2);
		cr_assert_geq(json_int(o, "result.summary.looks"), 1);
		cr_assert_gt(json_int(o, "result.summary.own_cpu_us"), 0);
		cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
		json_decref(o);
		victim_stop(&v);
	}
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text += strlen(what);
	}
	return n;
}

/* Nobody is held, no page is touched, nothing is left. */
Test(watch, as_many_lines_as_asked_for)
{
	static struct state state;
	struct victim v;
	struct run r;
	long tables, rss;

	victim_start_named(&v, "retained", "4", "256");
	rss = victim_settle(&v);
	state_take(&v, &state);
	tables = proc_number(v.pid, "status", "VmPTE:");
	run(&r, v.pid, "--passive", "-v", "watch", "100ms", "3", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 5, "%s", r.out);
	cr_assert_eq(strncmp(r.out, "TIME ", 5), 0, "%s", r.out);
	cr_assert_eq(count(r.out, "TIME"), 1);
	cr_assert_eq(count(r.out, "  none\n"), 3, "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\n3 lines in "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, ": none: RSS has not grown"), "%s", r.out);
	cr_assert_not_null(strstr(r.err, "watch: own CPU time "), "%s", r.err);
	run_free(&r);
	cr_assert_eq(proc_number(v.pid, "status", "VmPTE:"), tables);
	cr_assert_eq(proc_number(v.pid, "smaps_rollup", "Rss:"), rss);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(watch, the_process_ends)
{
	struct stream w;
	struct victim v;
	json_t *o;

	victim_start_named(&v, "growing", NULL, NULL);
	watcher_start(&w, v.pid, NULL);
	json_decref(stream_line(&w, w.target));
	close(v.in);
	v.in = -1;
	victim_wait_exit(&v, 0);
	o = stream_end(&w, 3);
	cr_assert_str_eq(json_text(o, "error.code"), "gone");
	cr_assert_geq(json_int(o, "result.summary.lines"), 1);
	cr_assert_str_eq(json_text(o, "result.summary.growth"), "none");
	json_decref(o);
}

/* Another program at the same pid: nothing of the one before it is counted from. */
Test(watch, the_process_executes_another_program)
{
	char ready[7] = "";
	struct stream w;
	struct victim v;
	json_t *o;

	victim_start_named(&v, "again", NULL, NULL);
	watcher_start(&w, v.pid, NULL);
	json_decref(stream_line(&w, w.target));
	cr_assert_eq(write(v.in, "x", 1), 1);
	cr_assert_eq(read(v.out, ready, 6), 6);
	cr_assert_str_eq(ready, "ready\n");
	for (int i = 0; i < 3; i++)
		json_decref(stream_line(&w, w.target));
	o = stream_stop(&w, SIGINT);
	cr_assert_str_eq(json_text(o, "warnings.0.code"), "program-changed");
	cr_assert_eq(json_array_size(json_at(o, "warnings")), 1);
	cr_assert_str_eq(json_text(o, "result.summary.growth"), "none");
	json_decref(o);
	victim_stop(&v);
}

/* ---- after a trim */

/* Lines until the trim is judged so, and so much is back. */
static void await_worth(struct stream *w, const char *worth, long long back)
{
	for (int i = 0; i < STREAM_LINES; i++) {
		json_t *o = stream_line(w, w->target);
		bool is;

		cr_assert_geq(json_int(o, "result.after_trim.returned_bytes"), 63 * MIB);
		cr_assert_leq(json_int(o, "result.after_trim.back_bytes"),
			      json_int(o, "result.after_trim.returned_bytes"));
		is = !strcmp(json_text(o, "result.after_trim.worth"), worth) &&
		     json_int(o, "result.after_trim.back_bytes") >= back;
		json_decref(o);
		if (is)
			return;
	}
	cr_assert_fail("no line says %s", worth);
}

Test(watch, what_comes_back_after_a_trim)
{
	struct stream w;
	struct victim v;
	json_t *o;

	victim_start_named(&v, "growing", "64", NULL);
	grow(&v, 't');
	watcher_start(&w, v.pid, "--after-trim");
	for (int i = 0; i < 2; i++) {
		o = stream_line(&w, w.target);
		check_line(o);
		cr_assert(json_is_null(json_at(o, "result.after_trim")), "it comes later");
		json_decref(o);
	}
	o = stream_line(&w, w.target);
	cr_assert_geq(json_int(o, "result.trim.returned_bytes"), 63 * MIB);
	cr_assert_eq(json_int(o, "result.trim.returned_bytes"),
		     json_int(o, "result.trim.predicted_bytes"));
	json_decref(o);
	/* nothing of heapmedic is in the process while it is watched */
	cr_assert_eq(proc_number(v.pid, "status", "Threads:"), 1);
	o = stream_line(&w, w.target);
	cr_assert_str_eq(json_text(o, "result.after_trim.worth"), "open");
	cr_assert_str_eq(json_text(o, "result.growth"), "none");
	cr_assert_lt(json_int(o, "result.after_trim.back_bytes"), MIB);
	cr_assert(json_is_real(json_at(o, "result.after_trim.minflt_per_second_before")));
	json_decref(o);
	grow(&v, 'u');
	await_worth(&w, "regrown", 63 * MIB);
	o = stream_stop(&w, SIGINT);
	cr_assert_geq(json_int(o, "result.summary.after_trim.back_bytes"), 63 * MIB);
	cr_assert_gt(json_int(o, "result.summary.after_trim.back_bytes_per_minute"), 63 * MIB);
	/* each page came by a fault of its own, or a huge one by one */
	cr_assert_gt(json_int(o, "result.summary.after_trim.minflt"), 0);
	cr_assert_str_eq(json_text(o, "warnings.0.code"), "not-worth-it");
	cr_assert_not_null(strstr(json_text(o, "warnings.0.text"), "the trim was not worth it"));
	json_decref(o);
	victim_stop(&v);
}

/* A trim of the same session is remembered; one that changes nothing is refused where it would. */
Test(watch, after_the_trim_of_this_session)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "growing", "64", NULL);
	grow(&v, 't');
	run(&r, v.pid, "-e", "watch 100ms 1", "-e", "trim", "-e", "watch 100ms 2", NULL);
	run_expect(&r, 0);
	cr_assert_eq(count(r.out, "BACK/MIN"), 1, "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\nsince the trim: "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "faulted in since"), "%s", r.out);
	run_free(&r);
	run(&r, v.pid, "--dry-run", "watch", "100ms", "2", "--after-trim", NULL);
	run_expect(&r, 0);
	cr_assert_null(strstr(r.out, "BACK"), "%s", r.out);
	cr_assert_not_null(strstr(r.err, "left out"), "%s", r.err);
	run_free(&r);
	run(&r, v.pid, "--passive", "watch", "100ms", "2", "--after-trim", NULL);
	run_expect(&r, 4);
	run_free(&r);
	run(&r, v.pid, "--read-only", "watch", "100ms", "2", "--after-trim", NULL);
	run_expect(&r, 4);
	run_free(&r);
	victim_stop(&v);
}

/* jemalloc is not called: what it has in use is not known, and not zero. */
Test(watch, what_only_a_call_could_tell)
{
	struct victim v;
	struct run r;
	json_t *o;

	victim_start_named(&v, "jemlinked", "2", "64");
	run(&r, v.pid, "--json", "watch", "100ms", "2", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 3);
	o = run_json(&r, 1, v.pid, "watch");
	cr_assert(json_is_null(json_at(o, "result.live_bytes")));
	cr_assert(json_is_null(json_at(o, "result.retained_bytes")));
	cr_assert(json_is_real(json_at(o, "result.minflt_per_second")));
	json_decref(o);
	o = run_json(&r, 2, v.pid, "watch");
	cr_assert_str_eq(json_text(o, "warnings.0.code"), "not-asked");
	json_decref(o);
	run_free(&r);
	victim_stop(&v);
}

Test(watch, usage)
{
	static const char *const wrong[][2] = {
		{ "99ms", NULL }, { "soon", NULL }, { "1s", "0" },
		{ "1s", "-1" },	  { "1s", "2x" },   { "1s", "x" },
	};
	struct victim v;

	victim_start_named(&v, "growing", NULL, NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run r;

		run(&r, v.pid, "watch", wrong[i][0], wrong[i][1], NULL);
		run_expect(&r, 2);
		cr_assert_eq(strlen(r.out), 0);
		run_free(&r);
	}
	victim_stop(&v);
}
