// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a look costs: the process nothing (no page, no page table, no thread that is held), and
 * ourselves little.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "program.h"
#include "victim.h"

#define MOST_KIB (64l * 1024) /* of our own memory */
#define THREADS	 64
/* kB: the first page of the program and of a library is read; the kernel may have taken it away. */
#define HEADS 16

static const char *const looks[][4] = {
	{ "arenas" },
	{ "maps", "--all" },
	{ "diagnose", "--passive" },
	{ "check" },
	{ "trim", "--dry-run" },
	{ "facts", "--passive" },
	{ "threads" },
	{ "--json", "arenas" },
	{ "maps" },
	{ "facts", "--json", "--passive" },
};
#define LOOKS	    (sizeof(looks) / sizeof(looks[0]))
#define LARGE_LOOKS 5 /* of large victims the first ones, each of another kind */

/* What grows where somebody touches the process. */
struct trace {
	long tables, rss, swap, anon, lazy;
	long minflt;
	long switches[THREADS]; /* of each thread: it has had to do something */
	size_t threads;
};

static long minor_faults(pid_t pid)
{
	char path[64], line[1024] = "", *p;
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	cr_assert_not_null(fgets(line, sizeof(line), f));
	fclose(f);
	p = strrchr(line, ')');
	cr_assert_not_null(p);
	/* field 10; the state is field 3 */
	cr_assert_eq(sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %ld", &v), 1);
	return v;
}

static void take_trace(pid_t pid, struct trace *t)
{
	pid_t tid[THREADS];

	memset(t, 0, sizeof(*t));
	t->tables = proc_number(pid, "status", "VmPTE:");
	t->rss = proc_number(pid, "smaps_rollup", "Rss:");
	t->swap = proc_number(pid, "smaps_rollup", "Swap:");
	t->anon = proc_number(pid, "smaps_rollup", "Anonymous:");
	t->lazy = proc_number(pid, "smaps_rollup", "LazyFree:");
	t->minflt = minor_faults(pid);
	t->threads = proc_tids(pid, tid, THREADS);
	for (size_t i = 0; i < t->threads; i++) {
		char file[64];

		snprintf(file, sizeof(file), "task/%d/status", (int)tid[i]);
		t->switches[i] = proc_number(pid, file, "voluntary_ctxt_switches:") +
				 proc_number(pid, file, "nonvoluntary_ctxt_switches:");
		cr_assert_gt(t->switches[i], 0);
	}
}

/* Until nobody has anything left to do. */
static void await_rest(pid_t pid, struct trace *t)
{
	struct trace before;

	take_trace(pid, t);
	for (int i = 0; i < 100; i++) {
		before = *t;
		sleep_ns(20000000);
		take_trace(pid, t);
		if (!memcmp(before.switches, t->switches, sizeof(before.switches)))
			return;
	}
	cr_assert_fail("the victim does not come to rest");
}

static void same_trace(const struct trace *a, const struct trace *b, const char *what)
{
	cr_expect_eq(b->tables, a->tables, "%s: page tables %ld kB, then %ld", what, a->tables,
		     b->tables);
	cr_expect_leq(b->rss, a->rss + HEADS, "%s: Rss %ld kB, then %ld", what, a->rss, b->rss);
	cr_expect_eq(b->swap, a->swap, "%s: Swap %ld kB, then %ld", what, a->swap, b->swap);
	cr_expect_eq(b->anon, a->anon, "%s: Anonymous %ld kB, then %ld", what, a->anon, b->anon);
	/* the kernel may not yet have got round to all of them */
	cr_expect_geq(b->lazy, a->lazy, "%s: LazyFree %ld kB, then %ld", what, a->lazy, b->lazy);
	cr_expect_eq(b->minflt, a->minflt, "%s: %ld minor faults, then %ld", what, a->minflt,
		     b->minflt);
	cr_assert_eq(b->threads, a->threads, "%s", what);
	for (size_t i = 0; i < a->threads; i++)
		cr_expect_eq(b->switches[i], a->switches[i], "%s: thread %zu was woken", what, i);
}

/* Under a filter that kills heapmedic as soon as it wants to hold a thread. */
static void look(pid_t pid, const char *const words[4])
{
	char number[16], filter[512];
	const char *args[] = { "ptrace", "--",	   NULL,     "-p",     number,
			       words[0], words[1], words[2], words[3], NULL };
	const struct run_opts o = { .program = filter, .may_not_trace = true };
	struct run r;

	args[2] = getenv("HEAPMEDIC") ? getenv("HEAPMEDIC") : "./heapmedic";
	snprintf(number, sizeof(number), "%d", (int)pid);
	snprintf(filter, sizeof(filter), "%s", victim_path("filtered"));
	run_with(&r, &o, args);
	run_expect(&r, 0);
	cr_expect_gt(strlen(r.out), 0, "%s", words[0]);
	run_free(&r);
}

static void leaves_no_trace(const char *shape, const char *number)
{
	struct trace before, after;
	struct victim v;

	victim_start_named(&v, "vast", shape, number);
	await_rest(v.pid, &before);
	for (size_t i = 0; i < LOOKS; i++) {
		take_trace(v.pid, &before);
		look(v.pid, looks[i]);
		take_trace(v.pid, &after);
		same_trace(&before, &after, looks[i][0]);
	}
	victim_stop(&v);
}

/* Blocks that nobody has written, pages that the kernel may take, and pages that it has taken. */
Test(light, a_heap_with_holes, .timeout = 120)
{
	struct victim v;

	victim_start_named(&v, "vast", "holes", "100");
	cr_assert_gt(proc_number(v.pid, "smaps_rollup", "LazyFree:"), 1024);
	cr_assert_lt(proc_number(v.pid, "smaps_rollup", "Rss:"),
		     proc_number(v.pid, "status", "VmData:") / 3);
	victim_kill(&v);
	leaves_no_trace("holes", "100");
}

Test(light, a_heap_of_small_chunks, .timeout = 120)
{
	leaves_no_trace("shuffled", "200");
}

Test(light, arenas_of_threads, .timeout = 120)
{
	leaves_no_trace("arenas", "50");
}

/* A process whose own threads would never all rest: it is stopped, so that what changes is our
 * doing. */
static void runtime_leaves_no_trace(const struct victim_plan *plan)
{
	/* whatever is said of a process without glibc's arenas, and of one that is stopped */
	static const char *const all[][4] = { { "maps", "--all" },
					      { "diagnose", "--passive" },
					      { "facts", "--passive" },
					      { "threads" } };
	struct trace before, after;
	struct victim v;
	int status = 0;

	victim_start(&v, plan);
	cr_assert_eq(kill(v.pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(v.pid, &status, WUNTRACED), v.pid);
	cr_assert(WIFSTOPPED(status));
	await_rest(v.pid, &before);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		take_trace(v.pid, &before);
		look(v.pid, all[i]);
		take_trace(v.pid, &after);
		same_trace(&before, &after, all[i][0]);
	}
	cr_assert_eq(kill(v.pid, SIGCONT), 0);
	victim_stop(&v);
}

Test(light, a_jvm, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "java", "-Xmx64m", "-cp", "@", "Jvm" } };

	runtime_leaves_no_trace(&plan);
}

Test(light, a_go_program, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "@gopure" } };

	runtime_leaves_no_trace(&plan);
}

/* It holds a thread: that is what the filter and the trace tell. */
Test(light, a_call_is_noticed, .timeout = 120)
{
	const struct run_opts o = { .program = victim_path("filtered"), .may_not_trace = true };
	const char *args[] = {
		"ptrace", "--", getenv("HEAPMEDIC") ? getenv("HEAPMEDIC") : "./heapmedic",
		"-p",	  NULL, "trim",
		NULL
	};
	struct trace before, after;
	struct victim v;
	struct run r;
	char number[16];

	victim_start_named(&v, "vast", "arenas", "2");
	await_rest(v.pid, &before);
	snprintf(number, sizeof(number), "%d", (int)v.pid);
	args[4] = number;
	run_with(&r, &o, args);
	cr_expect_neq(r.exit, 0);
	run_free(&r);
	take_trace(v.pid, &before);
	run_ok(v.pid, "trim", NULL);
	take_trace(v.pid, &after);
	cr_expect_gt(after.switches[0] + after.switches[1] + after.switches[2],
		     before.switches[0] + before.switches[1] + before.switches[2]);
	victim_stop(&v);
}

/* ---- ourselves */

static void is_small(const char *shape, const char *number)
{
	struct victim v;
	long most = 0;

	if (getenv("SAN"))
		cr_skip_test("a program with sanitizers needs more");
	victim_start_named(&v, "vast", shape, number);
	for (size_t i = 0; i < LARGE_LOOKS; i++) {
		struct run r;

		run(&r, v.pid, looks[i][0], looks[i][1], looks[i][2], NULL);
		run_expect(&r, 0);
		cr_expect_lt(r.peak_kib, MOST_KIB, "%s: %ld KiB", looks[i][0], r.peak_kib);
		most = r.peak_kib > most ? r.peak_kib : most;
		run_free(&r);
	}
	fprintf(stderr, "   %s %s: %ld KiB of our own at most\n", shape, number, most);
	victim_check(&v);
	victim_kill(&v);
}

Test(light, a_gigabyte_in_order, .timeout = 120)
{
	is_small("ordered", "1024");
}

Test(light, a_gigabyte_at_random, .timeout = 120)
{
	is_small("shuffled", "1024");
}

Test(light, a_gigabyte_in_fastbins, .timeout = 120)
{
	is_small("cached", "1024");
}

Test(light, many_mappings, .timeout = 120)
{
	is_small("mappings", "50000");
}
