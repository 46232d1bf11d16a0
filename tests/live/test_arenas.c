// SPDX-License-Identifier: GPL-3.0-or-later
/* What `arenas` and `threads` read of glibc's heap, held against what glibc and the program say. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"
#include "own.h"
#include "program.h"
#include "victim.h"

#define WORKERS 6 /* of the victim cached; its other numbers follow */
#define KEPT	50000
#define PAGE	4096

Test(arenas, are_what_glibc_says)
{
	static struct state before;
	struct victim v;
	struct run r;
	json_t *o, *dry;

	victim_start_named(&v, "retained", NULL, NULL);
	state_take(&v, &before);
	o = heap_ask(v.pid, "arenas", NULL);
	state_same(&v, &before, STATE_EXACT);
	heap_check_rows(o);
	heap_check_quiet(o);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), 9);
	for (int i = 0; i < 9; i++)
		cr_assert_eq(json_int(heap_arena(o, i), "threads"), 1, "arena %d", i);
	cr_assert_eq(json_int(o, "result.parameters.trim_threshold"), 128 * 1024);
	cr_assert_eq(json_int(o, "result.parameters.mmap_threshold"), 128 * 1024);
	cr_assert_str_eq(json_text(o, "result.parameters.thresholds"), "dynamic");
	cr_assert(json_is_null(json_at(o, "result.parameters.arena_max")));
	cr_assert_eq(json_int(o, "result.parameters.arena_limit"),
		     8 * sysconf(_SC_NPROCESSORS_ONLN));
	run(&r, v.pid, "--json", "--dry-run", "trim", NULL);
	run_expect(&r, 0);
	dry = run_json(&r, 0, v.pid, "trim");
	cr_assert_eq(json_int(dry, "result.predicted_bytes"),
		     json_int(o, "result.total.trimmable"));
	json_decref(dry);
	run_free(&r);
	json_decref(o);
	heap_check_info(v.pid);
	victim_stop(&v);
}

/* After a trim it is all still free, but not there any more. */
Test(arenas, after_a_trim)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "retained", "3", "400");
	run_ok(v.pid, "trim", NULL);
	o = heap_ask(v.pid, "arenas", NULL);
	heap_check_rows(o);
	cr_assert_eq(json_int(o, "result.total.trimmable"), 0);
	cr_assert_geq(json_int(o, "result.total.free"), 3ll * 400 * 16384);
	/* what shares its pages with something, at both ends of it, and the tops */
	cr_assert_leq(json_int(o, "result.total.free_resident"), 4ll * 16 * PAGE);
	cr_assert_gt(json_int(o, "result.total.stranded"), 0);
	json_decref(o);
	victim_stop(&v);
}

/* ---- threads */

static json_t *thread_named(json_t *o, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.threads"), i,
			   row) if (!strcmp(json_text(row, "name"), name)) return row;
	cr_assert_fail("there is no thread %s", name);
	return NULL;
}

static json_t *worker(json_t *o, int i)
{
	char name[24];

	snprintf(name, sizeof(name), "%s", json_text(o, "comm"));

	if (i)
		snprintf(name, sizeof(name), "worker %d", i);
	return thread_named(o, name);
}

/* What one of them has in its cache: so many chunks for blocks of 24, 100 and 1000 bytes. -1 where
 * no file tells the version, which says how many they may be. */
static long long in_cache(pid_t pid)
{
	int minor = heap_glibc(pid);

	return minor ? (minor >= 43 ? 16 : 7) * (32 + 112 + 1008) : -1;
}

/* Each worker keeps as many blocks as its number: that tells which arena is its own. */
static void own_arenas(const char *victim)
{
	static struct state before;
	struct victim v;
	json_t *list, *arenas;
	bool seen[WORKERS + 1] = { false };

	victim_start_named(&v, victim, NULL, NULL);
	state_take(&v, &before);
	list = heap_ask(v.pid, "threads", NULL);
	arenas = heap_ask(v.pid, "arenas", NULL);
	state_same(&v, &before, STATE_EXACT);
	heap_check_rows(arenas);
	for (int i = 0; i <= WORKERS; i++) {
		long long index = json_int(worker(list, i), "arena"), in_use;

		cr_assert(index >= 0 && index <= WORKERS && !seen[index], "worker %d: arena %lld",
			  i, index);
		cr_assert_eq(index == 0, i == 0, "the main thread's is the main arena");
		seen[index] = true;
		cr_assert(json_bool(worker(list, i), "has_arena"));
		in_use = json_int(heap_arena(arenas, index), "in_use");
		cr_assert(in_use >= (long long)i * KEPT && in_use < (i + 1ll) * KEPT,
			  "worker %d has %lld bytes of arena %lld in use", i, in_use, index);
		cr_assert_eq(json_int(heap_arena(arenas, index), "threads"), 1);
	}
	own_check_caches(&v, in_cache(v.pid));
	json_decref(list);
	json_decref(arenas);
	heap_check_info(v.pid);
	victim_stop(&v);
}

Test(arenas, threads_with_arenas_of_their_own)
{
	own_arenas("cached");
}

Test(arenas, threads_of_a_static_program)
{
	own_arenas("cachedstatic");
}

Test(arenas, one_arena_for_all)
{
	struct victim v;
	json_t *list, *arenas;

	victim_start(&v,
		     &(struct victim_plan){ .argv = { "@cached" }, .env = "MALLOC_ARENA_MAX=1" });
	list = heap_ask(v.pid, "threads", NULL);
	arenas = heap_ask(v.pid, "arenas", NULL);
	cr_assert_eq(json_array_size(json_at(arenas, "result.arenas")), 1);
	cr_assert_eq(json_int(arenas, "result.arenas.0.threads"), WORKERS + 1);
	cr_assert_eq(json_int(arenas, "result.parameters.arena_max"), 1);
	cr_assert_eq(json_int(arenas, "result.parameters.arena_limit"), 1);
	for (int i = 0; i <= WORKERS; i++)
		cr_assert_eq(json_int(worker(list, i), "arena"), 0);
	/* out of what others have freed a block may come 16 bytes larger: all together are counted
	 */
	own_check_caches(&v, -1);
	json_decref(list);
	json_decref(arenas);
	victim_stop(&v);
}

Test(arenas, thread_caches_off)
{
	struct victim v;
	json_t *list;

	victim_start(&v,
		     &(struct victim_plan){ .argv = { "@cached" },
					    .env = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0" });
	list = heap_ask(v.pid, "threads", NULL);
	for (int i = 0; i <= WORKERS; i++) {
		cr_assert_geq(json_int(worker(list, i), "arena"), 0);
	}
	own_check_caches(&v, 0);
	json_decref(list);
	heap_check_info(v.pid);
	victim_stop(&v);
}

/* Since 2.42 a cache takes larger blocks too, where it is told to; before, such a limit is refused.
 */
Test(arenas, thread_caches_of_large_blocks)
{
	struct victim v;
	json_t *list;
	bool takes;

	victim_start(&v, &(struct victim_plan){
				 .argv = { "@cached", "6", "large" },
				 .env = "GLIBC_TUNABLES=glibc.malloc.tcache_max=1048576" });
	takes = heap_glibc(v.pid) >= 42;
	list = heap_ask(v.pid, "threads", NULL);
	for (int i = 0; i <= WORKERS; i++)
		cr_assert_eq(json_int(worker(list, i), "tcache_bytes") > 0, takes);
	own_check_caches(&v, -1);
	json_decref(list);
	heap_check_info(v.pid);
	victim_stop(&v);
}

Test(arenas, thread_caches_that_hold_more)
{
	struct victim v;
	json_t *list;

	victim_start(&v,
		     &(struct victim_plan){ .argv = { "@cached" },
					    .env = "GLIBC_TUNABLES=glibc.malloc.tcache_count=12" });
	list = heap_ask(v.pid, "threads", NULL);
	own_check_caches(&v, 12ll * (32 + 112 + 1008));
	json_decref(list);
	victim_stop(&v);
}

Test(arenas, thresholds_that_were_set)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "cached", NULL, NULL);
	run_ok(v.pid, "mallopt", "M_TRIM_THRESHOLD", "512K", NULL);
	o = heap_ask(v.pid, "arenas", NULL);
	cr_assert_eq(json_int(o, "result.parameters.trim_threshold"), 512 * 1024);
	cr_assert_str_eq(json_text(o, "result.parameters.thresholds"), "frozen");
	json_decref(o);
	victim_stop(&v);
}

/* ---- text */

Test(arenas, of_many_the_largest_are_shown)
{
	struct victim v;
	struct run r;

	victim_start(&v, &(struct victim_plan){ .argv = { "@retained", "25", "10", "2000" },
						.env = "MALLOC_ARENA_MAX=40" });
	run(&r, v.pid, "arenas", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "and 6 more arenas (arenas --all)\n"), "%s", r.out);
	cr_assert_eq(run_lines(&r), 1 + 20 + 1 + 1 + 3, "%s", r.out);
	cr_assert_not_null(strstr(r.out, "arena_max 40"), "%s", r.out);
	run_free(&r);
	run(&r, v.pid, "arenas", "--all", NULL);
	run_expect(&r, 0);
	cr_assert_null(strstr(r.out, "more arenas"), "%s", r.out);
	cr_assert_eq(run_lines(&r), 1 + 26 + 1 + 3, "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

Test(arenas, threads_as_text)
{
	char bytes[24];
	struct victim v;
	struct run r;

	victim_start_named(&v, "cached", NULL, NULL);
	run(&r, v.pid, "--bytes", "threads", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "TCACHE"), "%s", r.out);
	snprintf(bytes, sizeof(bytes), "  %lld  ", in_cache(v.pid));
	cr_assert_not_null(strstr(r.out, bytes), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* ---- other programs */

Test(arenas, python)
{
	static struct state before;
	struct victim v;
	json_t *o;

	victim_start(&v, &(struct victim_plan){ .argv = { "python3", "@py.py" } });
	state_take(&v, &before);
	o = heap_ask(v.pid, "arenas", NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), 1);
	cr_assert_geq(json_int(o, "result.total.trimmable"), 50ll << 20);
	json_decref(o);
	o = heap_ask(v.pid, "threads", NULL);
	cr_assert_eq(json_int(o, "result.threads.0.arena"), 0);
	json_decref(o);
	state_same(&v, &before, STATE_EXACT);
	victim_stop(&v);
}

/* A server whose plain malloc is glibc's, though jemalloc is mapped. */
Test(arenas, redis_on_the_malloc_of_libc)
{
	char dir[] = "/tmp/heapmedic-arenas-XXXXXX", path[64];
	struct victim v;
	json_t *o;

	if (getenv("VICTIM_ROOT"))
		cr_skip_test("the root of another release does not have it");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	victim_start(&v, &(struct victim_plan){ .argv = { "redis-server", "--port", "0", "--save",
							  "", "--logfile", "/dev/null", "--dir",
							  dir, "--unixsocket", path },
						.env = "LD_PRELOAD=libc.so.6",
						.silent = true });
	for (int i = 0; i < 1000 && access(path, F_OK); i++)
		sleep_ns(10000000);
	o = heap_ask(v.pid, "arenas", NULL);
	cr_assert_geq(json_array_size(json_at(o, "result.arenas")), 1);
	cr_assert_gt(json_int(heap_arena(o, 0), "in_use"), 0);
	json_decref(o);
	o = heap_ask(v.pid, "threads", NULL);
	cr_assert_eq(json_int(thread_named(o, "redis-server"), "arena"), 0);
	json_decref(o);
	victim_kill(&v);
	unlink(path);
	cr_assert_eq(rmdir(dir), 0);
}

/* Its heap is found as that of any other. */
Test(arenas, static_program)
{
	struct victim v;
	json_t *o, *row;
	size_t i;

	victim_start_named(&v, "static", NULL, NULL);
	o = heap_ask(v.pid, "arenas", NULL);
	heap_check_rows(o);
	cr_assert_gt(json_int(o, "result.total.system"), 0);
	json_decref(o);
	o = heap_ask(v.pid, "threads", NULL);
	json_array_foreach(json_at(o, "result.threads"), i, row)
	{
		json_at(row, "arena");
		json_at(row, "tcache_bytes");
	}
	json_decref(o);
	victim_stop(&v);
}

Test(arenas, a_program_without_a_heap)
{
	struct victim v;
	struct run r;
	json_t *o;

	victim_start_named(&v, "heapless", NULL, NULL);
	run(&r, v.pid, "arenas", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "has not allocated anything yet"), "%s", r.out);
	run_free(&r);
	o = heap_ask(v.pid, "arenas", NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), 0);
	json_decref(o);
	o = heap_ask(v.pid, "threads", NULL);
	cr_assert(json_is_null(json_at(o, "result.threads.0.arena")));
	cr_assert(json_is_null(json_at(o, "result.threads.0.tcache_bytes")));
	json_decref(o);
	victim_stop(&v);
}

/* Who has no arenas of glibc's is told why, and where to look. */
struct other {
	const char *victim, *env, *code, *word;
	int exit;
};
static const struct other others[] = {
	{ "musl", NULL, "musl", "musl", 5 },
	{ "nolibc", NULL, "no-libc", "no C library", 5 },
	{ "gopure", NULL, "no-libc", NULL, 5 },
	/* jemalloc's are told by a call only */
	{ "jemlinked", NULL, "passive", "without --passive", 4 },
	{ "retained", "LD_PRELOAD=libjemalloc.so.2", "passive", "only a call", 4 },
};

Test(arenas, of_others)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct other *x = &others[i];
		struct victim_plan plan = { .env = x->env };
		struct victim v;
		struct run r;
		char name[32];
		json_t *o;

		snprintf(name, sizeof(name), "@%s", x->victim);
		plan.argv[0] = name;
		victim_start(&v, &plan);
		run(&r, v.pid, "--passive", "arenas", NULL);
		run_expect(&r, x->exit);
		cr_assert(!x->word || strstr(r.err, x->word), "%s", r.err);
		run_free(&r);
		run(&r, v.pid, "--passive", "--json", "arenas", NULL);
		run_expect(&r, x->exit);
		o = run_json(&r, 0, v.pid, "arenas");
		cr_assert_str_eq(json_text(o, "error.code"), x->code, "%s", x->victim);
		json_decref(o);
		run_free(&r);
		o = heap_ask(v.pid, "threads", NULL);
		cr_assert(json_is_null(json_at(o, "result.threads.0.arena")));
		json_decref(o);
		victim_stop(&v);
	}
}

Test(arenas, a_damaged_one_is_named)
{
	static const char *const places[] = { "single", "thread" };

	for (size_t i = 0; i < 2; i++) {
		struct victim v;
		json_t *o, *row;
		char comm[32];

		victim_start_named(&v, "damaged", "size", places[i]);
		o = heap_ask(v.pid, "arenas", NULL);
		row = heap_arena(o, (long long)i);
		cr_assert_not_null(row);
		cr_assert(heap_flag(row, "damaged"));
		snprintf(comm, sizeof(comm), "%s", json_text(o, "comm"));
		cr_assert_not_null(strstr(json_text(row, "damage.where"), comm), "%s: %s", comm,
				   json_text(row, "damage.where"));
		cr_assert(json_is_null(json_at(heap_arena(o, 0), "damage")) || i == 0);
		cr_assert(heap_flag(json_at(o, "result.total"), "cut"));
		json_decref(o);
		victim_stop(&v);
	}
}

/* A dry run is refused where the trim would be: that would give nothing back. */
Test(arenas, a_damaged_one_has_no_prediction)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "damaged", "top", "single");
	run(&r, v.pid, "trim", "--dry-run", NULL);
	run_expect(&r, 6);
	cr_assert_eq(r.out[0], '\0', "%s", r.out);
	cr_assert_not_null(strstr(r.err, "is damaged: arena 0, top chunk 0x"), "%s", r.err);
	run_free(&r);
	run_ok(v.pid, "trim", "--dry-run", "--force", NULL);
	victim_stop(&v);
}

/* ---- targets that do not stand still */

#ifdef __SANITIZE_ADDRESS__
enum { LOOKS = 4 };
#else
enum { LOOKS = 30 };
#endif

static void no_damage(json_t *o)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		cr_assert(!heap_flag(row, "damaged"));
		cr_assert(json_is_null(json_at(row, "damage")));
	}
}

/* What changes while it is read is not called damaged; threads that run have their arenas too. */
Test(arenas, in_the_middle_of_malloc)
{
	struct victim v;

	victim_start_named(&v, "busy", "3", NULL);
	for (int i = 0; i < LOOKS; i++) {
		json_t *o = heap_ask(v.pid, "arenas", NULL), *row;
		unsigned arenas = 0;
		size_t k;

		no_damage(o);
		json_decref(o);
		o = heap_ask(v.pid, "threads", NULL);
		json_array_foreach(json_at(o, "result.threads"), k, row)
		{
			long long index = json_int(row, "arena");

			cr_assert(index >= 0 && index <= 3 && !(arenas & 1u << index), "%lld",
				  index);
			arenas |= 1u << index;
		}
		cr_assert_eq(arenas, 15);
		json_decref(o);
	}
	victim_stop(&v);
}

Test(arenas, while_it_executes_itself)
{
	struct victim v;

	victim_start_named(&v, "restless", "two", NULL);
	for (int i = 0; i < LOOKS; i++) {
		struct run r;

		run(&r, v.pid, "--passive", i % 2 ? "arenas" : "threads", NULL);
		if (r.exit != 6)
			run_expect(&r, 0);
		cr_assert_null(strstr(r.out, "damaged"), "%s", r.out);
		run_free(&r);
	}
	victim_stop(&v);
}
