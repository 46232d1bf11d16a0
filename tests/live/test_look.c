// SPDX-License-Identifier: GPL-3.0-or-later
/* What the commands say about each kind of program, and what a trim does to it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define MIB (1024 * 1024)

/* One kind of program, and what must be found out about it. */
struct subject {
	struct victim_plan plan;
	const char *malloc;  /* the allocator that owns malloc */
	const char *linkage; /* how it got there */
	const char *via;     /* how calls are made by default */
	long long returned;  /* a trim gives back at least this much */
	enum state_freedom freedom;
};

static const struct subject retained = {
	{ .argv = { "@retained" } }, "glibc", "dynamic", "proxy", 200ll * MIB, STATE_EXACT
};
static const struct subject single = {
	{ .argv = { "@single" } }, "glibc", "dynamic", "direct", 20ll * MIB, STATE_EXACT
};
static const struct subject python = {
	{ .argv = { "python3", "@py.py" } }, "glibc", "dynamic", "direct", 50ll * MIB, STATE_EXACT
};
static const struct subject go = {
	{ .argv = { "@gocgo" } }, "glibc", "dynamic", "proxy", 50ll * MIB, STATE_THREADS_VARY
};
/* How much a JVM keeps in its C heap is its own affair. */
static const struct subject jvm = { { .argv = { "java", "-Xmx64m", "-XX:-UsePerfData", "-cp", "@",
						"Jvm" } },
				    "glibc",
				    "dynamic",
				    "proxy",
				    0,
				    STATE_THREADS_VARY };
static const struct subject preload = { { .argv = { "@retained" },
					  .env = "LD_PRELOAD=libjemalloc.so.2" },
					"jemalloc",
					"preload",
					"proxy",
					200ll * MIB,
					STATE_EXACT };
static const struct subject linked = {
	{ .argv = { "@jemlinked" } }, "jemalloc", "dynamic", "proxy", 200ll * MIB, STATE_EXACT
};

static bool is_glibc(const struct subject *s)
{
	return !strcmp(s->malloc, "glibc");
}

/* The entry of a list of objects whose name is this. */
static json_t *named(json_t *list, const char *name)
{
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) if (!strcmp(json_text(o, "name"), name)) return o;
	cr_assert_fail("there is no entry named %s", name);
	return NULL;
}

static void try_check(const struct subject *s, const struct victim *v)
{
	struct run r;
	json_t *o, *a;

	run(&r, v->pid, "--json", "check", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 1);
	o = run_json(&r, 0, v->pid, "check");
	cr_assert(json_bool(o, "result.attachable"));
	cr_assert(json_bool(o, "result.injectable"));
	cr_assert_str_eq(json_text(o, "result.arch"), "x86_64");
	cr_assert_str_eq(json_text(o, "result.libc.name"), "glibc");
	cr_assert_gt(strlen(json_text(o, "result.libc.version")), 0);
	cr_assert_gt(json_array_size(json_at(o, "result.candidates")), 0);
	a = named(json_at(o, "result.allocators"), s->malloc);
	cr_assert(json_bool(a, "owns_malloc"), "%s does not own malloc", s->malloc);
	cr_assert_str_eq(json_text(a, "linkage"), s->linkage);
	json_decref(o);
	run_free(&r);
	/* And as text, where the allocator has to be named. */
	run(&r, v->pid, "check", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, s->malloc), "check does not name %s: %s", s->malloc,
			   r.out);
	cr_assert_null(strstr(r.out, "\nheld "), "nothing was to be held: %s", r.out);
	run_free(&r);
	run(&r, v->pid, "check", "--hold", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "\nheld        one thread for "), "%s", r.out);
	run_free(&r);
}

static void try_stats(const struct subject *s, const struct victim *v)
{
	const char *word = is_glibc(s) ? "system bytes" : "jemalloc statistics";
	struct run r;
	json_t *o;

	run(&r, v->pid, "stats", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, word), "no \"%s\" in: %s", word, r.out);
	run_free(&r);
	run(&r, v->pid, "--json", "stats", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "stats");
	cr_assert_not_null(strstr(json_text(o, "result.text"), word));
	json_decref(o);
	run_free(&r);
}

static void try_info(const struct victim *v)
{
	struct run r;
	json_t *o, *a;
	long long sum = 0;
	size_t i;

	run(&r, v->pid, "info", "--raw", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "<malloc version="), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "</malloc>"), "%s", r.out);
	run_free(&r);
	run(&r, v->pid, "--json", "info", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "info");
	cr_assert_gt(json_array_size(json_at(o, "result.arenas")), 0);
	json_array_foreach(json_at(o, "result.arenas"), i, a)
	{
		cr_assert_eq(json_int(a, "system_bytes"),
			     json_int(a, "in_use_bytes") + json_int(a, "free_bytes"));
		sum += json_int(a, "system_bytes");
	}
	cr_assert_eq(sum, json_int(o, "result.total.system_bytes"));
	json_decref(o);
	run_free(&r);
}

static long long resident(const struct victim *v)
{
	return 1024ll * proc_number(v->pid, "smaps_rollup", "Rss:");
}

static long long apart(long long a, long long b)
{
	return a > b ? a - b : b - a;
}

static void try_trim(const struct subject *s, const struct victim *v)
{
	long long before = resident(v), after, slack = 8 * MIB, returned;
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", "trim", NULL);
	run_expect(&r, 0);
	after = resident(v);
	cr_assert_eq(run_lines(&r), 1);
	o = run_json(&r, 0, v->pid, "trim");
	returned = json_int(o, "result.returned_bytes");
	cr_assert_geq(returned, s->returned, "it says that %lld bytes came back", returned);
	cr_assert_leq(apart(json_int(o, "result.rss_before_bytes"), before), slack);
	cr_assert_leq(apart(json_int(o, "result.rss_after_bytes"), after), slack);
	cr_assert_leq(apart(returned, before - after), 2 * slack, "it says %lld, the kernel %lld",
		      returned, before - after);
	cr_assert_str_eq(json_text(o, "result.via"), s->via);
	cr_assert_geq(json_int(o, "result.held.threads"), 1);
	cr_assert_geq(json_int(o, "result.held.max_us"), 0);
	cr_assert_geq(json_int(o, "result.minflt_delta"), 0);
	json_int(o, "result.swap_before_bytes");
	json_int(o, "result.swap_after_bytes");
	cr_assert_geq(json_int(named(json_at(o, "result.allocators"), s->malloc), "returned_bytes"),
		      s->returned);
	json_decref(o);
	run_free(&r);
}

/* The one line for people, on a second trim, where nothing much can come back. */
static void try_trim_again(const struct victim *v)
{
	struct run r;

	run(&r, v->pid, "trim", NULL);
	run_expect(&r, 0);
	cr_assert_eq(strncmp(r.out, "rss ", 4), 0, "%s", r.out);
	cr_assert_not_null(strstr(r.out, " -> "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "held"), "%s", r.out);
	run_free(&r);
}

static void try_threads(const struct victim *v)
{
	pid_t tid[STATE_MAX];
	size_t n;
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", "threads", NULL);
	run_expect(&r, 0);
	n = proc_tids(v->pid, tid, STATE_MAX);
	o = run_json(&r, 0, v->pid, "threads");
	/* A runtime may start or end one in between. */
	cr_assert_leq(apart((long long)json_array_size(json_at(o, "result.threads")), (long long)n),
		      2);
	json_decref(o);
	run_free(&r);
	run(&r, v->pid, "bt", NULL);
	run_expect(&r, 0);
	cr_assert_geq(run_lines(&r), n, "%s", r.out);
	run_free(&r);
}

static void try_all(const struct subject *s)
{
	static struct state before;
	struct victim v;

	victim_start(&v, &s->plan);
	state_take(&v, &before);
	try_check(s, &v);
	state_same(&v, &before, s->freedom);
	try_stats(s, &v);
	state_same(&v, &before, s->freedom);
	if (is_glibc(s)) {
		try_info(&v);
		state_same(&v, &before, s->freedom);
	}
	try_threads(&v);
	state_same(&v, &before, s->freedom);
	victim_check(&v);
	try_trim(s, &v);
	state_same(&v, &before, s->freedom);
	try_trim_again(&v);
	state_same(&v, &before, s->freedom);
	victim_stop(&v);
}

Test(look, eight_arenas_of_glibc)
{
	try_all(&retained);
}

Test(look, one_thread)
{
	try_all(&single);
}

Test(look, python)
{
	try_all(&python);
}

Test(look, go_with_cgo)
{
	try_all(&go);
}

Test(look, jvm)
{
	try_all(&jvm);
}

Test(look, jemalloc_preloaded)
{
	try_all(&preload);
}

Test(look, jemalloc_linked)
{
	try_all(&linked);
}

Test(look, info_is_refused_where_glibc_does_not_own_malloc)
{
	struct victim v;
	struct run r;

	victim_start(&v, &linked.plan);
	run(&r, v.pid, "info", NULL);
	run_expect(&r, 5);
	run_free(&r);
	victim_stop(&v);
}

Test(look, dry_run_changes_nothing)
{
	struct victim v;
	struct run r;
	long before, after;

	victim_start(&v, &retained.plan);
	before = proc_number(v.pid, "smaps_rollup", "Rss:");
	run(&r, v.pid, "--dry-run", "trim", NULL);
	run_expect(&r, 0);
	after = proc_number(v.pid, "smaps_rollup", "Rss:");
	cr_assert_lt(apart(before, after), 4 * 1024);
	run_free(&r);
	victim_stop(&v);
}

Test(look, mallopt_says_what_stays)
{
	static struct state state;
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, &retained.plan);
	state_take(&v, &state);
	run(&r, v.pid, "--json", "-y", "mallopt", "M_ARENA_MAX", "2", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "mallopt");
	/* The nine arenas that there are do not go away. */
	cr_assert_gt(json_array_size(json_at(o, "warnings")), 0);
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "-y", "mallopt", "M_NO_SUCH_THING", "2", NULL);
	run_expect(&r, 2);
	run_free(&r);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(look, mallctl_types)
{
	static struct state state;
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, &preload.plan);
	state_take(&v, &state);
	run(&r, v.pid, "--json", "-e", "mallctl arenas.narenas", "-e",
	    "mallctl opt.background_thread", "-e", "mallctl version", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 3);
	o = run_json(&r, 0, v.pid, "mallctl");
	cr_assert_gt(json_int(o, "result.value"), 0);
	json_decref(o);
	o = run_json(&r, 1, v.pid, "mallctl");
	cr_assert_not(json_bool(o, "result.value"));
	json_decref(o);
	o = run_json(&r, 2, v.pid, "mallctl");
	cr_assert_eq(json_text(o, "result.value")[0], '5');
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "mallctl", "no.such.name", NULL);
	run_expect(&r, 1);
	run_free(&r);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(look, several_targets_one_after_another)
{
	struct victim a, b;
	struct run r;
	char other[16];

	victim_start(&a, &single.plan);
	victim_start(&b, &single.plan);
	snprintf(other, sizeof(other), "%d", b.pid);
	run(&r, a.pid, "-p", other, "--json", "trim", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 2);
	json_decref(run_json(&r, 0, a.pid, "trim"));
	json_decref(run_json(&r, 1, b.pid, "trim"));
	run_free(&r);
	victim_stop(&a);
	victim_stop(&b);
}

/* The parent of vfork(2) waits where no stop reaches it until its child has ended. */
static void *stuck(void *unused)
{
	(void)unused;
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return NULL;
}

static pid_t start_stuck(void)
{
	pid_t parent = getpid(), pid = fork();
	pthread_t t;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || pthread_create(&t, NULL, stuck, NULL))
		_exit(1);
	for (;;)
		pause();
}

Test(look, bt_leaves_out_a_thread_that_does_not_stop)
{
	pid_t pid = start_stuck(), tid[2] = { 0 };
	struct run r;
	json_t *json;

	for (int i = 0; i < 1000 && (proc_tids(pid, tid, 2) < 2 || proc_state(tid[1]) != 'D'); i++)
		sleep_ns(10000000);
	cr_assert_eq(proc_state(tid[1]), 'D');
	run(&r, pid, "bt", "--json", NULL);
	run_expect(&r, 0);
	json = run_json(&r, 0, pid, "bt");
	cr_assert_eq(json_array_size(json_at(json, "result.threads")), 1);
	cr_assert_eq(json_array_size(json_at(json, "warnings")), 1);
	json_decref(json);
	run_free(&r);
	cr_assert_eq(proc_state(tid[1]), 'D');
	cr_assert_eq(proc_state(pid), 'S');
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
