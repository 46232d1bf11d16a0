// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Heaps that are damaged, lists that lead in a circle, arenas that come while they are read,
 * processes that go: each command that only looks answers with an error or with rows that say so,
 * soon, and never with a number that is false and does not say so.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"
#include "own.h"
#include "program.h"
#include "victim.h"

#define SOON_NS 60000000000ull /* a loop without an end, not a slow machine */

/* ---- damage: tests/victims/damaged.c */

enum where { LISTS, RING, CACHE };

static const struct scene {
	const char *kind, *place;
	enum where where;
	int last; /* release of glibc that has such a thing; 0: all */
} scenes[] = {
	{ "size", "single", LISTS, 0 },	      { "size", "thread", LISTS, 0 },
	{ "used", "main", CACHE, 0 },	      { "fd", "main", LISTS, 0 },
	{ "fd", "thread", LISTS, 0 },	      { "bk", "single", LISTS, 0 },
	{ "cycle", "single", LISTS, 0 },      { "cycle", "main", LISTS, 0 },
	{ "cycle", "thread", LISTS, 0 },      { "prev", "main", LISTS, 0 },
	{ "top", "single", LISTS, 0 },	      { "top", "thread", LISTS, 0 },
	{ "fastbin", "main", LISTS, 42 },     { "loop", "single", LISTS, 42 },
	{ "loop", "thread", LISTS, 42 },      { "info", "thread", LISTS, 0 },
	{ "info-cycle", "thread", LISTS, 0 }, { "ring", "thread", RING, 0 },
	{ "ring-cycle", "thread", RING, 0 },  { "cache", "single", CACHE, 0 },
	{ "cache", "thread", CACHE, 0 },      { "cache-loop", "main", CACHE, 0 },
	{ "cache-loop", "thread", CACHE, 0 },
};

static json_t *soon(pid_t pid, const char *command, int exit)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--passive", "--json", command, NULL);
	run_expect(&r, exit);
	cr_assert_lt(r.ns, SOON_NS);
	o = run_json(&r, 0, pid, command);
	run_free(&r);
	return o;
}

/* What looks into lists finds it; what is damaged is named, all else is whole. */
static void see_arenas(const struct victim *v, const struct scene *s)
{
	json_t *o = soon(v->pid, "arenas", 0), *row;
	unsigned damaged = 0;
	size_t i;

	heap_check_rows(o);
	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		bool flag = heap_flag(row, "damaged");

		cr_assert_eq(flag, !json_is_null(json_at(row, "damage")));
		cr_assert(!heap_flag(row, "moving"));
		damaged += flag;
	}
	cr_assert_eq(damaged, s->where == LISTS, "%s %s: %u rows", s->kind, s->place, damaged);
	cr_assert_eq(json_warned(o, "damaged-heap"), s->where == RING);
	cr_assert_eq(heap_flag(json_at(o, "result.total"), "cut"), s->where != CACHE);
	json_decref(o);
}

/* A thread's cache that cannot be walked is not known; that is not zero. */
static void see_threads(const struct victim *v, const struct scene *s)
{
	bool cache = !strncmp(s->kind, "cache", 5);
	json_t *o = soon(v->pid, "threads", 0), *row;
	unsigned unknown = 0;
	size_t i;

	json_array_foreach(json_at(o, "result.threads"), i, row)
	{
		json_t *bytes = json_at(row, "tcache_bytes");

		unknown += json_is_null(bytes);
		cr_assert(json_is_null(bytes) || json_integer_value(bytes) < 100000);
	}
	cr_assert_eq(unknown, cache, "%s %s: the caches of %u threads are not known", s->kind,
		     s->place, unknown);
	json_decref(o);
	o = soon(v->pid, "facts", 0);
	cr_assert_eq(json_is_null(heap_fact(o, "glibc.tcache")), cache);
	cr_assert_eq(json_warned(o, "damaged-heap"), s->where != CACHE);
	cr_assert_eq(json_warned(o, "partial"), s->where != CACHE);
	json_decref(o);
}

static long long sum_of_rows(json_t *o)
{
	long long sum = json_int(o, "result.remainder_bytes");
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.rows"), i, row) sum +=
		json_int(row, "resident_bytes");
	return sum;
}

static long long rss_of(pid_t pid)
{
	return 1024ll * proc_number(pid, "smaps_rollup", "Rss:");
}

/* The answer of a look in which the kernel has taken no page of a file away: its rows are RSS. */
static json_t *add_up(pid_t pid, const char *command)
{
	for (int i = 0; i < 20; i++) {
		long long before = rss_of(pid), after;
		json_t *o = soon(pid, command, 0);

		after = rss_of(pid);
		if (before == after) {
			cr_assert_eq(sum_of_rows(o), before, "%s", command);
			return o;
		}
		json_decref(o);
	}
	cr_assert_fail("%s: its RSS is another one at each look", command);
	return NULL;
}

static void see_memory(const struct victim *v, const struct scene *s)
{
	json_t *o = add_up(v->pid, "maps");

	json_decref(o);
	o = add_up(v->pid, "diagnose");
	cr_assert_eq(json_warned(o, "damaged-heap"), s->where != CACHE);
	json_decref(o);
}

/* A trim would be refused where a call could meet the damage. */
static void see_trim(const struct victim *v, const struct scene *s)
{
	json_t *o;
	struct run r;

	run(&r, v->pid, "--passive", "--json", "--dry-run", "trim", NULL);
	run_expect(&r, s->where == CACHE ? 0 : 6);
	cr_assert_lt(r.ns, SOON_NS);
	o = run_json(&r, 0, v->pid, "trim");
	if (s->where != CACHE)
		cr_assert_str_eq(json_text(o, "error.code"), "damaged-heap");
	json_decref(o);
	run_free(&r);
}

static void see_text(const struct victim *v)
{
	static const char *const commands[] = { "arenas", "threads", "facts", "maps", "diagnose" };

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		run_ok(v->pid, "--passive", commands[i], NULL);
}

static void see(const struct scene *s)
{
	static struct state before;
	struct victim v;

	victim_start_named(&v, "damaged", s->kind, s->place);
	state_take(&v, &before);
	see_arenas(&v, s);
	see_threads(&v, s);
	see_memory(&v, s);
	see_trim(&v, s);
	see_text(&v);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
}

static int this_glibc(void)
{
	struct victim v;
	int minor;

	victim_start_named(&v, "damaged", "none", "single");
	minor = heap_glibc(v.pid);
	victim_stop(&v);
	return minor;
}

Test(broken, damaged_heaps, .timeout = 300)
{
	const int minor = this_glibc();

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (!scenes[i].last || minor <= scenes[i].last)
			see(&scenes[i]);
}

/* ---- arenas that come while they are read */

enum { ARENAS = 200 };

static void other_commands(pid_t pid, int turn)
{
	static const char *const commands[] = { "threads", "facts", "maps", "diagnose" };
	struct run r;
	json_t *o;

	json_decref(soon(pid, commands[turn % 4], 0));
	if (turn % 4)
		return;
	run(&r, pid, "--passive", "--json", "--dry-run", "trim", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, pid, "trim");
	json_decref(o);
	run_free(&r);
}

/* Those that there are, each once, and never fewer than before. */
static long long count_arenas(pid_t pid, long long before)
{
	json_t *o = soon(pid, "arenas", 0), *row;
	static bool seen[ARENAS + 1];
	long long n;
	size_t i;

	heap_check_rows(o);
	memset(seen, 0, sizeof(seen));
	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		long long index = json_int(row, "index");

		cr_assert(index >= 0 && index <= ARENAS && !seen[index]);
		seen[index] = true;
		cr_assert(!heap_flag(row, "damaged"), "arena %lld", index);
	}
	cr_assert(!json_warned(o, "damaged-heap"));
	n = json_int(o, "result.total.arenas");
	cr_assert(n >= before || heap_flag(json_at(o, "result.total"), "moving"),
		  "%lld arenas, before %lld", n, before);
	json_decref(o);
	return n > before ? n : before;
}

/* How many looks saw new ones, of a victim that makes one every so many milliseconds. */
static unsigned looks_while_it_breeds(const char *ms)
{
	const struct victim_plan plan = { .argv = { "@breeder", "200", ms },
					  .env = "MALLOC_ARENA_MAX=2000" };
	long long n = 1, last = 0;
	unsigned looks = 0, grown = 0;
	char says[256] = "";
	struct victim v;

	victim_start(&v, &plan);
	cr_assert_eq(write(v.in, "g", 1), 1);
	while (n <= ARENAS) {
		last = n;
		n = count_arenas(v.pid, last);
		grown += n > last;
		if (looks++ % 3 == 0)
			other_commands(v.pid, (int)looks / 3);
		cr_assert_lt(looks, 20000, "%lld arenas", n);
	}
	fprintf(stderr, "   %u looks, %u of them saw new arenas\n", looks, grown);
	while (!says[0])
		victim_report(&v, says, sizeof(says));
	own_check(&v);
	victim_stop(&v);
	return grown;
}

/* On a busy machine a look takes so long that the victim has to take its time too. */
Test(broken, arenas_are_made_meanwhile, .timeout = 300)
{
	static const char *const ms[] = { "5", "20", "80", "300" };

	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
		if (looks_while_it_breeds(ms[i]) > 3)
			return;
	cr_assert_fail("no more than three looks saw new arenas");
}

/* ---- processes that go */

struct end {
	pid_t pid;
	uint64_t after_ns;
};

/* Killed and waited for: at once there is no such process at all. */
static void *end_it(void *arg)
{
	const struct end *e = arg;

	sleep_ns(e->after_ns);
	kill(e->pid, SIGKILL);
	waitpid(e->pid, NULL, 0);
	return NULL;
}

static const char *const looking[][3] = {
	{ "arenas" }, { "threads" },  { "facts" },
	{ "maps" },   { "diagnose" }, { "--dry-run", "trim" },
};
#define LOOKING (sizeof(looking) / sizeof(looking[0]))

/* Of a process that is gone not even its name may be known. */
static void is_told(const struct run *r, pid_t pid, const char *command)
{
	json_t *o;

	if (r->exit == 0) {
		json_decref(run_json(r, 0, pid, command));
		return;
	}
	o = json_loads(r->out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(o, "%s", r->out);
	cr_assert_eq(json_int(o, "exit"), r->exit);
	cr_assert_gt(strlen(json_text(o, "error.text")), 0);
	json_decref(o);
}

static void end_during(const char *const words[3], uint64_t after_ns, unsigned count[2])
{
	struct victim v;
	pthread_t t;
	struct end e;
	struct run r;

	victim_start_named(&v, "shapes", "second", NULL);
	e = (struct end){ v.pid, after_ns };
	cr_assert_eq(pthread_create(&t, NULL, end_it, &e), 0);
	run(&r, v.pid, "--passive", "--json", words[0], words[1], NULL);
	pthread_join(t, NULL);
	cr_assert(r.exit == 0 || r.exit == 3, "%s: exit %d: %s%s", words[0], r.exit, r.out, r.err);
	cr_assert_lt(r.ns, SOON_NS);
	is_told(&r, v.pid, words[1] ? words[1] : words[0]);
	count[r.exit == 3]++;
	run_free(&r);
	close(v.in);
	close(v.out);
	close(v.err);
}

static uint64_t length_of(const char *const words[3])
{
	struct victim v;
	struct run r;
	uint64_t ns;

	victim_start_named(&v, "shapes", "second", NULL);
	run(&r, v.pid, "--passive", "--json", words[0], words[1], NULL);
	run_expect(&r, 0);
	ns = r.ns;
	run_free(&r);
	victim_kill(&v);
	return ns;
}

Test(broken, processes_that_go, .timeout = 300)
{
	enum { TIMES = 12 };

	for (size_t i = 0; i < LOOKING; i++) {
		uint64_t ns = length_of(looking[i]);
		unsigned count[2] = { 0 };

		for (unsigned k = 0; k < TIMES; k++)
			end_during(looking[i], ns * k / TIMES, count);
		fprintf(stderr, "   %s: %u times an answer, %u times gone\n", looking[i][0],
			count[0], count[1]);
		cr_assert_gt(count[1], 0, "%s", looking[i][0]);
	}
}
