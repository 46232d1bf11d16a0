// SPDX-License-Identifier: GPL-3.0-or-later
/* tcmalloc, mimalloc and musl: each is found wherever it is, asked, trimmed with its effect
 * measured, and left as it was; what is only mapped is not asked. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "victim.h"

#define MIB (1024ll * 1024)
#define KIB 1024ll
/* Plugins with an allocator need room in static TLS (tls_model initial-exec). */
#define ROOM	"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536"
#define MINIMAL "LD_PRELOAD=libtcmalloc_minimal.so.4"
#define FULL	"LD_PRELOAD=libtcmalloc.so.4"
#define MI	"LD_PRELOAD=libmimalloc.so.2"

/* ---- answers */

/* heapmedic -p PID --json WORD...; exit 0. The caller ends it with json_decref. */
static json_t *ask(const struct victim *v, const char *a, const char *b, const char *c)
{
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", a, b, c, NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, a);
	run_free(&r);
	return o;
}

/* A fact by its name, which has a dot in it; -1: not known. */
static long long fact(json_t *o, const char *name)
{
	json_t *v = json_object_get(json_at(o, "result"), name);

	cr_assert_not_null(v, "%s", name);
	return json_is_null(v) ? -1 : json_integer_value(v);
}

static long long fact_now(const struct victim *v, const char *name)
{
	json_t *o = ask(v, "facts", name, NULL);
	long long n = fact(o, name);

	json_decref(o);
	return n;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

/* The row of `diagnose` for an owner; fails without one. */
static json_t *row_of(json_t *diagnose, const char *owner)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(diagnose, "result.rows"), i, row)
	{
		if (!strcmp(json_text(row, "owner"), owner))
			return row;
	}
	cr_assert(false, "no row %s", owner);
	return NULL;
}

/* ---- wherever it is */

struct expected {
	const char *name, *linkage;
	bool owns, in_use, callable;
	const char *file;      /* the end of it */
	long long least, most; /* what a trim returns of it; 0, 0: not asked for */
	const char *call;      /* what that is */
};
#define FOUND_MAX 3
struct find_case {
	struct victim_plan plan;
	struct expected found[FOUND_MAX]; /* until one without a name */
	int exit;			  /* of check and trim */
};

/* `retained 4 2000` keeps 125 MiB free, of which tcmalloc's thread caches hold at most 32 MiB; a
 * plugin keeps 64 MiB. */
#define RELEASE "MallocExtension_ReleaseFreeMemory()"
#define LEAST	(80 * MIB)
#define MOST	(126 * MIB)
#define LIBC                                                                                       \
	{                                                                                          \
		"glibc", "dynamic", false, false, true, "/libc.so.6", 0, 0, NULL                   \
	}

static const struct find_case cases[] = {
	{ .plan = { .argv = { "@tcm-linked", "4", "2000" } },
	  .found = { { "tcmalloc", "dynamic", true, true, true, "/libtcmalloc_minimal.so.4.5.10",
		       LEAST, MOST, RELEASE },
		     LIBC } },
	{ .plan = { .argv = { "@retained", "4", "2000" }, .env = FULL },
	  .found = { { "tcmalloc", "preload", true, true, true, "/libtcmalloc.so.4.5.10", LEAST,
		       MOST, RELEASE },
		     LIBC } },
	{ .plan = { .argv = { "@tcm-static", "4", "2000" } },
	  .found = { { "tcmalloc", "static", true, true, true, "/tcm-static", LEAST, MOST,
		       RELEASE },
		     LIBC } },
	/* glibc's malloc is not in it */
	{ .plan = { .argv = { "@tcm-whole", "4", "2000" } },
	  .found = { { "tcmalloc", "static", true, true, true, "/tcm-whole", LEAST, MOST,
		       RELEASE } } },
	/* only C++ names */
	{ .plan = { .argv = { "@tcm-cxx", "4", "2000" } },
	  .found = { { "tcmalloc", "static", true, true, true, "/tcm-cxx", LEAST, MOST,
		       "MallocExtension::ReleaseFreeMemory()" },
		     LIBC } },
	/* none at all */
	{ .plan = { .argv = { "@tcm-bare", "4", "2000" } },
	  .exit = 5,
	  .found = { LIBC, { "tcmalloc", "static", true, true, false, "/tcm-bare", 0, 0, NULL } } },
	/* the functions that Google's has; its page heap is made up */
	{ .plan = { .argv = { "@fakegoogle" } },
	  .found = { { "tcmalloc", "static", false, true, true, "/fakegoogle", 31 * MIB, 32 * MIB,
		       "ReleaseMemoryToSystem(SIZE_MAX)" },
		     { "glibc", "dynamic", true, true, true, "/libc.so.6", -MIB, MIB,
		       "malloc_trim(0)" } } },
	/* three in one process; of mimalloc's, whose thread lives, only segments that it has ended
	 * with */
	{ .plan = { .argv = { "@jem-host", "@tcm-plugin.so", "@mi-plugin.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", true, true, true, "/libc.so.6", -MIB, MIB,
		       "malloc_trim(0)" },
		     { "tcmalloc", "dynamic", false, true, true, "/libtcmalloc_minimal.so.4.5.10",
		       30 * MIB, 66 * MIB, RELEASE },
		     { "mimalloc", "dynamic", false, true, true, "/libmimalloc.so.2.0", -MIB,
		       66 * MIB, "mi_collect(true)" } } },
	/* mapped, and reached by nobody */
	{ .plan = { .argv = { "@jem-host", "libmimalloc.so.2", "libtcmalloc_minimal.so.4" },
		    .env = ROOM },
	  .found = { { "glibc", "dynamic", true, true, true, "/libc.so.6", -MIB, MIB,
		       "malloc_trim(0)" },
		     { "mimalloc", "dynamic", false, false, true, "/libmimalloc.so.2.0", 0, 0,
		       NULL },
		     { "tcmalloc", "dynamic", false, false, true, "/libtcmalloc_minimal.so.4.5.10",
		       0, 0, NULL } } },
	/* handed on to glibc's */
	{ .plan = { .argv = { "@retained", "4", "1000" }, .env = "LD_PRELOAD=@wrapper.so" },
	  .found = { { "glibc", "dynamic", false, true, true, "/libc.so.6", 55 * MIB, 64 * MIB,
		       "malloc_trim(0)" },
		     { "unknown", "preload", true, true, true, "/wrapper.so", 0, 0, NULL } } },
	{ .plan = { .argv = { "@retained", "4", "1000" }, .env = MI },
	  .found = { { "mimalloc", "preload", true, true, true, "/libmimalloc.so.2.0", -MIB, MIB,
		       "mi_collect(true)" },
		     LIBC } },
};

static void check_found(const struct victim *v, const struct find_case *f)
{
	struct run r;
	json_t *o, *list;
	size_t n = 0;

	run(&r, v->pid, "--json", "check", NULL);
	run_expect(&r, f->exit);
	o = run_json(&r, 0, v->pid, "check");
	list = json_at(o, "result.allocators");
	for (; n < FOUND_MAX && f->found[n].name; n++) {
		const struct expected *x = &f->found[n];
		json_t *a = json_array_get(list, n);

		cr_assert_not_null(a, "%s", r.out);
		cr_assert_str_eq(json_text(a, "name"), x->name, "%s", r.out);
		cr_assert_str_eq(json_text(a, "linkage"), x->linkage, "%s", r.out);
		cr_assert_eq(json_bool(a, "owns_malloc"), x->owns, "%s", r.out);
		cr_assert_eq(json_bool(a, "in_use"), x->in_use, "%s", r.out);
		cr_assert_eq(json_bool(a, "callable"), x->callable, "%s", r.out);
		cr_assert(ends_with(json_text(a, "file"), x->file), "%s", r.out);
	}
	cr_assert_eq(json_array_size(list), n, "%s", r.out);
	json_decref(o);
	run_free(&r);
}

/* The part of a trim that is of allocator x, or NULL. */
static json_t *part_of(json_t *trim, const char *name)
{
	json_t *part;
	size_t i;

	json_array_foreach(json_at(trim, "result.allocators"), i, part)
	{
		if (!strcmp(json_text(part, "name"), name))
			return part;
	}
	return NULL;
}

static void check_part(json_t *part, const struct expected *x)
{
	long long got = json_int(part, "returned_bytes");
	json_t *predicted = json_object_get(part, "predicted_bytes");

	cr_assert_str_eq(json_text(part, "call"), x->call);
	cr_assert_geq(got, x->least, "%s: %lld", x->name, got);
	cr_assert_leq(got, x->most, "%s: %lld", x->name, got);
	/* of free spans nearly all pages are resident, and no more than these come back */
	if (!strcmp(x->name, "tcmalloc")) {
		cr_assert_geq(json_integer_value(predicted), got - MIB / 4);
		cr_assert_leq(json_integer_value(predicted), got + 4 * MIB);
	}
	if (!strcmp(x->name, "mimalloc"))
		cr_assert(json_is_null(predicted));
	cr_assert_eq(json_is_null(json_object_get(part, "rc")), strcmp(x->name, "glibc") != 0);
}

static void check_trimmed(const struct victim *v, const struct find_case *f)
{
	json_t *o = ask(v, "trim", NULL, NULL);
	size_t parts = 0;

	for (size_t i = 0; i < FOUND_MAX && f->found[i].name; i++) {
		json_t *part = part_of(o, f->found[i].name);

		cr_assert_eq(part != NULL, f->found[i].call != NULL, "%s", f->found[i].name);
		if (part)
			check_part(part, &f->found[i]);
		parts += part != NULL;
	}
	cr_assert_eq(json_array_size(json_at(o, "result.allocators")), parts);
	json_decref(o);
}

static void check_refused(const struct victim *v, const char *command)
{
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", command, NULL);
	run_expect(&r, 5);
	o = run_json(&r, 0, v->pid, command);
	cr_assert_str_eq(json_text(o, "error.code"), "no-symbol", "%s", r.out);
	cr_assert_not_null(strstr(json_text(o, "error.hint"), "strip --strip-debug"));
	json_decref(o);
	run_free(&r);
}

Test(allocators, wherever_it_is, .timeout = 300)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct state state;
		struct victim v;

		victim_start(&v, &cases[i].plan);
		state_take(&v, &state);
		check_found(&v, &cases[i]);
		if (cases[i].exit) {
			check_refused(&v, "trim");
			check_refused(&v, "stats");
		} else {
			check_trimmed(&v, &cases[i]);
		}
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
}

/* ---- what they say of themselves */

/* "MALLOC: +     55894016 (   53.3 MiB) Bytes in page heap freelist" */
static long long printed(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	cr_assert_not_null(at, "%s in %s", what, text);
	while (at > text && at[-1] != '\n')
		at--;
	at += strcspn(at, "0123456789");
	return strtoll(at, NULL, 10);
}

static void check_figures(const struct victim *v)
{
	json_t *facts = ask(v, "facts", "tcmalloc.", NULL);
	json_t *stats = ask(v, "stats", NULL, NULL);
	const char *text = json_text(stats, "result.text");

	cr_assert_eq(fact(facts, "tcmalloc.pageheap_free"),
		     printed(text, "Bytes in page heap freelist"));
	cr_assert_eq(fact(facts, "tcmalloc.unmapped"), printed(text, "Bytes released to OS"));
	/* the call's own thread comes and goes in between */
	cr_assert_leq(llabs(fact(facts, "tcmalloc.thread_caches") -
			    printed(text, "Bytes in thread cache freelists")),
		      64 * KIB);
	cr_assert_eq(fact(facts, "tcmalloc.thread_caches_max"), 32 * MIB);
	cr_assert_geq(fact(facts, "tcmalloc.heap"), fact(facts, "tcmalloc.pageheap_free") +
							    fact(facts, "tcmalloc.unmapped") +
							    fact(facts, "tcmalloc.allocated"));
	cr_assert_str_eq(
		json_string_value(json_object_get(json_at(facts, "result"), "tcmalloc.version")),
		"2.10");
	json_decref(facts);
	json_decref(stats);
}

static void check_diagnosis(const struct victim *v)
{
	json_t *o = ask(v, "diagnose", NULL, NULL), *facts = json_at(o, "result.facts");

	cr_assert_str_eq(json_text(o, "result.verdict"), "retained");
	cr_assert_str_eq(json_text(row_of(o, "tcmalloc"), "origin"), "called");
	cr_assert_str_eq(json_text(o, "result.advice.0.action"), "trim");
	cr_assert_eq(json_int(o, "result.advice.0.expected_bytes"),
		     json_integer_value(json_object_get(facts, "tcmalloc.pageheap_free")));
	cr_assert_not_null(strstr(json_text(o, "result.advice.1.text"), "TCMALLOC_RELEASE_RATE"));
	json_decref(o);
}

/* Nobody is asked, and that is said. */
static void check_passive(const struct victim *v)
{
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", "--passive", "diagnose", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "diagnose");
	cr_assert_str_eq(json_text(o, "result.verdict"), "undecided");
	cr_assert_str_eq(json_text(row_of(o, "tcmalloc"), "detail"), "not asked");
	cr_assert(json_is_null(json_object_get(json_at(o, "result.facts"), "tcmalloc.allocated")));
	json_decref(o);
	run_free(&r);
}

Test(allocators, tcmalloc_tells_what_it_has, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "@retained", "4" }, .env = MINIMAL };
	struct victim v;

	victim_start(&v, &plan);
	check_figures(&v);
	check_diagnosis(&v);
	check_passive(&v);
	run_ok(v.pid, "trim", NULL);
	check_figures(&v);
	cr_assert_eq(fact_now(&v, "tcmalloc.pageheap_free"), 0);
	victim_stop(&v);
}

/* A trim that is only planned makes no call. */
Test(allocators, a_plan_is_no_call)
{
	const struct victim_plan plan = { .argv = { "@retained", "2", "400" }, .env = MINIMAL };
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, &plan);
	run(&r, v.pid, "--json", "--dry-run", "trim", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "trim");
	cr_assert(json_is_null(json_at(o, "result.predicted_bytes")));
	cr_assert_str_eq(json_text(o, "result.allocators.0.name"), "tcmalloc");
	json_decref(o);
	run_free(&r);
	cr_assert_gt(fact_now(&v, "tcmalloc.pageheap_free"), MIB);
	victim_stop(&v);
}

/* ---- mimalloc: each thread collects its own heap */

static long long trim_on(const struct victim *v, pid_t tid)
{
	char thread[16];
	long long got;
	struct run r;
	json_t *o;

	snprintf(thread, sizeof(thread), "%d", tid);
	run(&r, v->pid, "--json", "--via", "direct", "--thread", thread, "trim", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "trim");
	got = json_int(o, "result.returned_bytes");
	json_decref(o);
	run_free(&r);
	return got;
}

Test(allocators, mimalloc_thread_by_thread, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "@retained", "4" }, .env = MI };
	struct victim v;
	struct run r;
	pid_t tid[8];
	size_t n;
	json_t *o;

	victim_start(&v, &plan);
	run(&r, v.pid, "trim", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "mi_collect does not reach the heaps of other threads"));
	run_free(&r);
	n = proc_tids(v.pid, tid, 8);
	cr_assert_eq(n, 5);
	/* 2400 blocks of 16 KiB each, nearly all of them free */
	for (size_t i = 0; i < n; i++)
		if (tid[i] != v.pid)
			cr_assert_geq(trim_on(&v, tid[i]), 30 * MIB);
	/* of 150 MiB; what has been free for less than MIMALLOC_DECOMMIT_DELAY may stay */
	o = ask(&v, "diagnose", NULL, NULL);
	cr_assert_leq(json_int(row_of(o, "mimalloc"), "resident_bytes"), 16 * MIB);
	json_decref(o);
	victim_stop(&v);
}

Test(allocators, mimalloc_tells_what_it_has)
{
	const struct victim_plan plan = { .argv = { "@retained", "4" }, .env = MI };
	struct victim v;
	json_t *o;

	victim_start(&v, &plan);
	o = ask(&v, "facts", "mimalloc.", NULL);
	cr_assert_str_eq(
		json_string_value(json_object_get(json_at(o, "result"), "mimalloc.version")),
		"2.0.9");
	cr_assert_geq(fact(o, "mimalloc.committed"), 150 * MIB);
	cr_assert_geq(fact(o, "mimalloc.committed_peak"), fact(o, "mimalloc.committed"));
	json_decref(o);
	o = ask(&v, "stats", NULL, NULL);
	cr_assert_not_null(strstr(json_text(o, "result.text"), "committed:"));
	json_decref(o);
	o = ask(&v, "diagnose", NULL, NULL);
	cr_assert_str_eq(json_text(o, "result.verdict"), "undecided");
	cr_assert_str_eq(json_text(row_of(o, "mimalloc"), "detail"),
			 "does not tell what is in use");
	cr_assert_not_null(
		strstr(json_text(o, "result.advice.1.text"), "MIMALLOC_DECOMMIT_DELAY=0"));
	json_decref(o);
	victim_stop(&v);
}

/* ---- nothing is left */

/* What the first few runs leave (books of the allocator's about one thread more) is used again. */
Test(allocators, runs_do_not_add_up, .timeout = 120)
{
	static const char *const env[] = { MINIMAL, MI };

	for (size_t i = 0; i < sizeof(env) / sizeof(env[0]); i++) {
		const struct victim_plan plan = { .argv = { "@retained", "2", "100" },
						  .env = env[i] };
		static struct state state;
		struct victim v;
		long anon;

		victim_start(&v, &plan);
		state_take(&v, &state);
		for (int k = 0; k < 4; k++)
			run_ok(v.pid, "trim", NULL);
		anon = proc_number(v.pid, "smaps_rollup", "Anonymous:");
		for (int k = 0; k < 12; k++)
			run_ok(v.pid, k % 2 ? "trim" : "stats", NULL);
		cr_assert_leq(proc_number(v.pid, "smaps_rollup", "Anonymous:"), anon + 16, "%s",
			      env[i]);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
}

/* ---- while all of its threads allocate and free */

enum { SESSIONS = 4, IN_EACH = 26, KILLS = 6 };

/* So many trims, one after another, in one session; of the thread tid, or of a proxy's. */
static size_t trims(const struct victim *v, pid_t tid, int times)
{
	static char script[IN_EACH * sizeof("trim\n")];
	struct run_opts opts = { .input = script };
	char pid[16], thread[16];
	const char *args[] = { "-p", pid,  "--json", "--deadline", "20s",
			       NULL, NULL, NULL,     NULL,	   NULL };
	struct run r;
	size_t n;

	script[0] = '\0';
	for (int i = 0; i < times; i++)
		strcat(script, "trim\n");
	snprintf(pid, sizeof(pid), "%d", v->pid);
	snprintf(thread, sizeof(thread), "%d", tid);
	if (tid) {
		args[5] = "--via";
		args[6] = "direct";
		args[7] = "--thread";
		args[8] = thread;
	}
	run_with(&r, &opts, args);
	run_expect(&r, 0);
	n = run_lines(&r);
	run_free(&r);
	return n;
}

static void kill_at(const struct victim *v, uint64_t ns)
{
	const struct run_opts opts = { .kill_after_ns = ns };
	char pid[16];
	const char *const args[] = { "-p", pid, "trim", NULL };
	struct run r;

	snprintf(pid, sizeof(pid), "%d", v->pid);
	run_with(&r, &opts, args);
	run_free(&r);
	victim_check((struct victim *)v);
}

static void under_load(const char *env)
{
	const struct victim_plan plan = { .argv = { "@surge", "4", "eintr" }, .env = env };
	struct victim v;
	size_t n = 0;

	victim_start(&v, &plan);
	for (int i = 0; i < SESSIONS; i++)
		n += trims(&v, 0, IN_EACH);
	cr_assert_geq(n, 100, "%zu", n);
	for (unsigned i = 0; i < KILLS; i++)
		kill_at(&v, 4000000ull + i * 6000000ull);
	/* a last one takes away what these have left */
	run_ok(v.pid, "stats", NULL);
	victim_report(&v, NULL, 0);
	state_await_threads(&v, 5);
	victim_stop(&v);
}

Test(allocators, tcmalloc_minimal_under_load, .timeout = 300)
{
	under_load(MINIMAL);
}

Test(allocators, tcmalloc_under_load, .timeout = 300)
{
	under_load(FULL);
}

Test(allocators, mimalloc_under_load, .timeout = 300)
{
	under_load(MI);
}

/* Calls on a thread that does little but allocate: it is met outside of the allocator, also where
 * only names tell what of a program that is, and goes on with what it had. */
static void on_a_busy_thread(const struct victim_plan *plan, size_t threads, int times)
{
	struct victim v;
	pid_t tid[8];

	victim_start(&v, plan);
	cr_assert_eq(proc_tids(v.pid, tid, 8), threads);
	cr_assert_eq(trims(&v, tid[threads - 1], times), (size_t)times);
	victim_check(&v);
	victim_stop(&v);
}

Test(allocators, on_the_only_thread, .timeout = 300)
{
	const struct victim_plan names = { .argv = { "@tcm-busy", "busy" } };
	const struct victim_plan minimal = { .argv = { "@single", "busy" }, .env = MINIMAL };
	const struct victim_plan mi = { .argv = { "@single", "busy" }, .env = MI };

	on_a_busy_thread(&names, 1, IN_EACH);
	on_a_busy_thread(&minimal, 1, IN_EACH);
	on_a_busy_thread(&mi, 1, IN_EACH);
}

Test(allocators, on_one_of_many_threads, .timeout = 300)
{
	const struct victim_plan mi = { .argv = { "@surge", "2" }, .env = MI };

	on_a_busy_thread(&mi, 3, 5);
}

/* ---- musl */

Test(allocators, musl_is_looked_at_only)
{
	struct victim v;
	struct run r;
	json_t *o;

	victim_start_named(&v, "muslretained", "4", "2000");
	run(&r, v.pid, "--json", "check", NULL);
	run_expect(&r, 5);
	o = run_json(&r, 0, v.pid, "check");
	cr_assert_str_eq(json_text(o, "result.allocators.0.name"), "musl");
	cr_assert(json_bool(o, "result.allocators.0.owns_malloc"));
	cr_assert_not_null(strstr(json_text(o, "error.hint"), "another malloc"));
	json_decref(o);
	run_free(&r);
	o = ask(&v, "diagnose", NULL, NULL);
	cr_assert_geq(json_int(row_of(o, "musl"), "resident_bytes"), 4 * KIB);
	/* where a thread waits tells where its stack is: of one that runs it is not known */
	cr_assert_geq(json_int(row_of(o, "thread-stack"), "resident_bytes"), 4 * KIB);
	json_decref(o);
	victim_stop(&v);
}
