// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * heapmedic is killed at any instant of a dump and of `prof on --for`. The victim lives, none of
 * its descriptors and threads is one more, the file is there whole or not at all, and the sampling
 * that was to end has ended.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "crash.h"
#include "torture.h"

enum { MOST_POINTS = 2000 };
/* What is left of a killed run ends by itself within this. */
#define LIFE_NS 5000000000ull

static void await_same(struct victim *v, const struct state *before)
{
	static struct state now;
	const uint64_t until = now_ns() + LIFE_NS;
	char why[512] = "";

	do {
		victim_check(v);
		state_look(v, &now);
		if (!state_differs(before, &now, STATE_EXACT, why, sizeof(why)) && !now.our_threads)
			return;
		sleep_ns(1000000);
	} while (now_ns() < until);
	cr_assert_fail("5 s after the kill: %s, %zu threads of ours", why, now.our_threads);
}

/* There or not: if it is, then it begins and ends as a profile does. */
static bool is_whole(const char *path)
{
	FILE *f = fopen(path, "re");
	static char text[16 << 20];
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	cr_assert_eq(strncmp(text, "heap_v2/1\n", 10), 0, "%.40s", text);
	cr_assert_not_null(strstr(text, "\nMAPPED_LIBRARIES:\n"));
	cr_assert_eq(text[n - 1], '\n');
	return true;
}

static void dump_at_every_point(const char *threads, const char *via)
{
	static struct state before;
	struct victim_plan plan = { .argv = { "@sampled", threads, "500", "eintr" },
				    .env = "MALLOC_CONF=prof:true,lg_prof_sample:0" };
	const unsigned step = torture_full() ? 1 : 15;
	unsigned point = 1 + (unsigned)getpid() % step, kills = 0, files = 0;
	char path[64], pid[16];
	const char *args[] = { "-p",   pid,    "--via", via,  "--deadline", "20s",
			       "prof", "dump", "--raw", path, NULL };
	struct victim v;

	snprintf(path, sizeof(path), "/tmp/heapmedic-torture-%d.heap", (int)getpid());
	unlink(path);
	victim_start(&v, &plan);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_ok(v.pid, "--via", via, "prof", "status", NULL);
	state_take(&v, &before);
	for (; point < MOST_POINTS && crash_run_at(point, args); point += step) {
		kills++;
		await_same(&v, &before);
		files += is_whole(path);
		unlink(path);
		victim_report(&v, NULL, 0);
	}
	cr_assert_lt(point, MOST_POINTS);
	cr_assert_gt(point, 25);
	cr_assert(is_whole(path), "the whole run has left no file");
	unlink(path);
	run_ok(v.pid, "--via", via, "prof", "status", NULL);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
	torture_figure("prof dump, %s threads, --via %s: %u kills, %u files were whole, none in "
		       "pieces",
		       threads, via, kills, files);
}

Test(prof, dump_killed_with_a_proxy, .timeout = 3600)
{
	dump_at_every_point("2", "auto");
}

Test(prof, dump_killed_on_the_only_thread, .timeout = 3600)
{
	dump_at_every_point("0", "auto");
}

Test(prof, dump_killed_on_one_thread_of_several, .timeout = 3600)
{
	dump_at_every_point("2", "direct");
}

/*
 * `prof on --for`: at whatever instant heapmedic dies, its thread in the victim leaves the sampling
 * switched off.
 */
Test(prof, on_for_killed, .timeout = 3600)
{
	static struct state before;
	struct victim_plan plan = { .argv = { "@sampled", "2", "100", "eintr" },
				    .env = "MALLOC_CONF=prof:true,prof_active:false" };
	const unsigned step = torture_full() ? 1 : 11;
	unsigned point = 1 + (unsigned)getpid() % step, kills = 0;
	char pid[16];
	const char *args[] = { "-p", pid, "--deadline", "20s", "prof", "on", "--for", "1ms", NULL };
	struct victim v;
	struct run r;

	victim_start(&v, &plan);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_ok(v.pid, "prof", "status", NULL);
	state_take(&v, &before);
	for (; point < MOST_POINTS && crash_run_at(point, args); point += step) {
		json_t *o;

		kills++;
		await_same(&v, &before);
		run(&r, v.pid, "--json", "prof", "status", NULL);
		run_expect(&r, 0);
		o = run_json(&r, 0, v.pid, "prof");
		cr_assert_not(json_bool(o, "result.active"),
			      "killed in front of request %u it is on", point);
		json_decref(o);
		run_free(&r);
		victim_report(&v, NULL, 0);
	}
	cr_assert_lt(point, MOST_POINTS);
	cr_assert_gt(point, 40);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
	torture_figure("prof on --for: %u kills, the sampling was off after each", kills);
}
