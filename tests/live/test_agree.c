// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The numbers that are read from outside, against what malloc says of itself in the victim:
 * mallinfo2() and malloc_info(), to the byte. What is not equal by its nature is said at the place
 * (own.c: the flags that malloc_info adds up; before 2.33 numbers modulo 2^32).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"
#include "own.h"
#include "program.h"
#include "victim.h"

#define NO_CACHE "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"
#define THP	 "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
#define HUGETLB	 "GLIBC_TUNABLES=glibc.malloc.hugetlb=2"
#define ONE	 "MALLOC_ARENA_MAX=1"

/* The victim is left as it was by all that only looks; then `info` says the same once more. */
static void agree(const char *program, const char *arg, const char *env)
{
	const struct victim_plan plan = { .argv = { program, arg }, .env = env };
	static struct state before;
	struct victim v;

	victim_start(&v, &plan);
	state_take(&v, &before);
	own_check(&v);
	state_same(&v, &before, STATE_EXACT);
	heap_check_info(v.pid);
	victim_stop(&v);
}

#define AGREE(name, program, arg, env)                                                             \
	Test(agree, name, .timeout = 120)                                                          \
	{                                                                                          \
		agree("@" program, arg, env);                                                      \
	}

AGREE(one_arena_in_pieces, "shapes", "pins", NULL)
AGREE(every_second_block_free, "shapes", "halves", NULL)
AGREE(several_arenas, "shapes", "arenas", NULL)
AGREE(arenas_of_several_heaps, "shapes", "heaps", NULL)
AGREE(sixty_four_threads, "shapes", "many", NULL)
AGREE(sixty_four_arenas, "shapes", "arenas64", NULL)
AGREE(one_arena_for_sixty_four_threads, "shapes", "many", ONE)
AGREE(fastbins_full, "shapes", "fast", NULL)
AGREE(fastbins_before_top, "shapes", "fasttop", NULL)
AGREE(thread_caches_full, "shapes", "cachefull", NULL)
AGREE(thread_caches_of_threads, "cached", NULL, NULL)
AGREE(thread_caches_off, "shapes", "cachefull", NO_CACHE)
AGREE(mmapped_chunks, "shapes", "mmapped", NULL)
AGREE(more_than_4_GiB, "shapes", "vast", NULL)
AGREE(after_an_earlier_trim, "shapes", "again", NULL)
AGREE(top_alone, "shapes", "top", NULL)
AGREE(foreign_sbrk_in_between, "shapes", "foreign", NULL)
AGREE(foreign_sbrk_at_the_end, "shapes", "behind", NULL)
AGREE(no_room_for_the_break, "shapes", "blocked", NULL)
AGREE(break_merged_with_a_mapping, "shapes", "merged", NULL)
AGREE(locked, "shapes", "lockall", NULL)
AGREE(never_touched, "shapes", "untouched", NULL)
AGREE(thresholds_that_have_risen, "shapes", "risen", NULL)
AGREE(top_pad, "shapes", "toppad", NULL)
AGREE(huge_pages_advised, "shapes", "alladvised", NULL)
AGREE(huge_pages_of_glibc, "shapes", "arenas", THP)
AGREE(no_break_at_all, "shapes", "mmapped", HUGETLB)
AGREE(small_heaps, "shapes", "arenas", HUGETLB)
AGREE(static_program, "shapesstatic", "pins", NULL)
AGREE(static_program_mmapped, "shapesstatic", "mmapped", NULL)
AGREE(static_program_arenas, "shapesstatic", "arenas", NULL)
AGREE(static_program_threads, "cachedstatic", NULL, NULL)

/* ---- a busy one: a number is right, or its row says that it moved */

#define THREADS 3
#define CHUNK	2016 /* of the victim pulse's blocks */
#define BLOCKS	200
#define LONG_NS 20000000000ull

#ifdef __SANITIZE_ADDRESS__
enum { LOOKS = 20 };
#else
enum { LOOKS = 200 };
#endif

struct seen {
	unsigned still, moving; /* rows */
	unsigned facts;		/* answers of `facts` that are not said to be near */
};

static bool is_pulse(long long more, long long most)
{
	return more >= 0 && more % CHUNK == 0 && more <= most * CHUNK;
}

/* What an arena has in use is what it had when it was quiet, and some blocks of one size. */
static void check_pulse(json_t *o, json_t *quiet, struct seen *seen)
{
	unsigned moved = seen->moving;
	json_t *row;
	size_t i;

	heap_check_rows(o);
	cr_assert_eq(json_int(o, "result.total.arenas"), THREADS + 1);
	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		long long index = json_int(row, "index");
		long long more =
			json_int(row, "in_use") - json_int(heap_arena(quiet, index), "in_use");

		cr_assert(!heap_flag(row, "damaged"));
		if (heap_flag(row, "moving")) {
			seen->moving++;
			continue;
		}
		seen->still++;
		cr_assert(!heap_flag(row, "cut"), "arena %lld", index);
		cr_assert(is_pulse(more, index ? BLOCKS : 0),
			  "arena %lld: %lld bytes more in use, and it is not said to move", index,
			  more);
	}
	cr_assert_eq(heap_flag(json_at(o, "result.total"), "moving"), seen->moving > moved);
}

static void check_pulse_facts(json_t *o, json_t *quiet, struct seen *seen)
{
	long long more = heap_fact_int(o, "glibc.in_use") - json_int(quiet, "result.total.in_use");

	cr_assert(!json_warned(o, "damaged-heap"));
	if (json_warned(o, "moving"))
		return;
	seen->facts++;
	cr_assert(is_pulse(more, THREADS * BLOCKS), "%lld bytes more in use, and no warning", more);
}

Test(agree, what_moves_says_so, .timeout = 300)
{
	const uint64_t until = now_ns() + LONG_NS;
	struct seen seen = { 0 };
	json_t *quiet, *o;
	struct victim v;

	victim_start_named(&v, "pulse", "3", NULL);
	own_check(&v);
	quiet = heap_ask(v.pid, "arenas", NULL);
	heap_check_quiet(quiet);
	cr_assert_eq(write(v.in, "g", 1), 1);
	/* on a busy machine fewer, once both have been seen */
	for (int i = 0; i < LOOKS && (now_ns() < until || !seen.moving || !seen.still); i++) {
		o = heap_ask(v.pid, "arenas", NULL);
		check_pulse(o, quiet, &seen);
		json_decref(o);
		if (i % 4)
			continue;
		o = heap_ask(v.pid, "facts", NULL);
		check_pulse_facts(o, quiet, &seen);
		json_decref(o);
	}
	fprintf(stderr, "   %u rows stood still, %u moved; %u answers of facts stood still\n",
		seen.still, seen.moving, seen.facts);
	cr_assert_gt(seen.moving, 0, "no reading has met a change");
	cr_assert_gt(seen.still, 0);
	json_decref(quiet);
	victim_stop(&v);
}
