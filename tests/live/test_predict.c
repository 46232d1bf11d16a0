// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a trim of a quiet heap is said to return, and what it returns: the same, to the page.
 *
 * What came back is measured here, in /proc/PID/smaps, as Anonymous + Swap of the break area and of
 * unnamed private memory without the stacks of threads. Rss of the process would not do: the call
 * itself maps pages of libc's code that nobody had needed so far (some 40 of them the first time),
 * and the thread that is borrowed or held may touch a page of its stack for the first time.
 * returned_bytes of heapmedic counts anonymous memory, so that only the latter is left in it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "heap.h"
#include "program.h"
#include "victim.h"

#define PAGE  4096ll
#define MIB   (1024ll * 1024)
#define STACK (2 * PAGE) /* so much of a stack may be new */

#define THP	 "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
#define HUGETLB	 "GLIBC_TUNABLES=glibc.malloc.hugetlb=2"
#define NO_CACHE "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"

struct subject {
	const char *shape, *env, *pad;
	long long least; /* bytes that come back at least; 0: nothing at all comes back */
	bool locked;	 /* a part is not returned, and that is said */
	bool pool;	 /* the same of huge pages of the pool */
	bool fixed;	 /* a static program */
	long long swap;	 /* so many bytes at the end of the break area are swapped out before */
};

struct mapping {
	unsigned long long start, end;
	char prot[8], name[256];
};

static bool read_mapping(const char *line, struct mapping *m)
{
	m->name[0] = '\0';
	return sscanf(line, "%llx-%llx %7s %*s %*s %*s %255s", &m->start, &m->end, m->prot,
		      m->name) >= 3;
}

/*
 * A stack of pthread_create has a page below it that nobody may touch. So may a heap, whose
 * neighbour is full but for a page; but that begins at a multiple of its size. What lies right
 * behind a file is the zeroed part of a library's data: the end of a thread writes to that of
 * libpthread.
 */
static bool of_heap(const struct mapping *m, const struct mapping *below)
{
	bool guarded = below->end == m->start && below->end - below->start == PAGE &&
		       !strncmp(below->prot, "---p", 4) && m->start % (8 * MIB) != 0;

	bool data = below->end == m->start && below->name[0] == '/';

	return !strcmp(m->name, "[heap]") ||
	       (!m->name[0] && !guarded && !data && m->prot[3] == 'p');
}

static long long heap_bytes(pid_t pid)
{
	struct mapping m = { 0 }, below;
	char path[64], line[512];
	long long sum = 0, kb;
	bool counts = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct mapping next;

		if (read_mapping(line, &next)) {
			below = m;
			m = next;
			counts = of_heap(&m, &below);
		} else if (counts && (sscanf(line, "Anonymous: %lld", &kb) == 1 ||
				      sscanf(line, "Swap: %lld", &kb) == 1)) {
			sum += kb * 1024;
		}
	}
	fclose(f);
	cr_assert_gt(sum, 0);
	return sum;
}

static json_t *trim(struct run *r, const struct victim *v, const char *pad, bool dry)
{
	char pid[16];
	const char *args[] = { "-p", pid, "--json", "trim", pad, NULL, NULL };
	const struct run_opts o = { 0 };

	snprintf(pid, sizeof(pid), "%d", (int)v->pid);
	if (dry) {
		args[5] = args[4];
		args[4] = args[3];
		args[3] = "--dry-run";
	}
	run_with(r, &o, args);
	run_expect(r, 0);
	return run_json(r, 0, v->pid, "trim");
}

static void start(struct victim *v, const struct subject *s)
{
	const struct victim_plan plan = {
		.argv = { s->fixed ? "@shapesstatic" : "@shapes", s->shape },
		.env = s->env,
	};

	victim_start(v, &plan);
}

/* ---- swap */

static long long swapped(pid_t pid)
{
	return proc_number(pid, "smaps_rollup", "Swap:") * 1024ll;
}

static long long swap_free(void)
{
	long long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SwapFree: %lld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* process_madvise(2), MADV_PAGEOUT, of the last bytes of the break area. */
static void page_out(pid_t pid, long long bytes)
{
	struct mapping m = { 0 };
	char path[64], line[512];
	struct iovec range = { 0 };
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	cr_assert(f && fd >= 0);
	while (!range.iov_len && fgets(line, sizeof(line), f))
		if (read_mapping(line, &m) && !strcmp(m.name, "[heap]")) {
			long long whole = (long long)(m.end - m.start);

			range.iov_len = (size_t)(bytes < whole ? bytes : whole);
			range.iov_base = (void *)(uintptr_t)(m.end - range.iov_len);
		}
	fclose(f);
	cr_assert_gt(range.iov_len, 0, "no [heap]");
	cr_assert_gt(syscall(SYS_process_madvise, fd, &range, 1, MADV_PAGEOUT, 0), 0, "%s",
		     strerror(errno));
	close(fd);
	cr_assert_gt(swapped(pid), 0, "nothing was swapped out");
}

static void needs_swap(long long bytes)
{
	if (swap_free() < bytes + 8 * MIB)
		cr_skip_test("no %lld MiB of swap (mkswap, swapon)", bytes / MIB + 8);
}

/* The reading changes nothing; then the call returns what was read, and a second one nothing. */
static void exact(const struct subject *s)
{
	long long before, after, again, planned, predicted, returned;
	struct run r[3];
	struct victim v;
	json_t *o[3];

	start(&v, s);
	if (s->swap)
		page_out(v.pid, s->swap);
	before = heap_bytes(v.pid);
	o[0] = trim(&r[0], &v, s->pad, true);
	cr_assert_eq(heap_bytes(v.pid), before, "the prediction has touched the heap");
	o[1] = trim(&r[1], &v, s->pad, false);
	after = heap_bytes(v.pid);
	planned = json_int(o[0], "result.predicted_bytes");
	predicted = json_int(o[1], "result.predicted_bytes");
	returned = json_int(o[1], "result.returned_bytes");
	fprintf(stderr, "   %s %s %s: %lld pages, %lld us predicted, %lld us taken\n", s->shape,
		s->env ? s->env : "", s->pad ? s->pad : "", planned / PAGE,
		json_int(o[0], "result.allocators.0.predicted_us"),
		json_int(o[1], "result.allocators.0.duration_us"));
	cr_assert_eq(before - after, predicted, "%s: %lld pages predicted, %lld came back",
		     s->shape, predicted / PAGE, (before - after) / PAGE);
	/* the few bytes that glibc allocates for our thread may be on a page that was free */
	cr_assert(predicted <= planned && predicted >= planned - PAGE,
		  "%s: %lld, then %lld predicted", s->shape, planned, predicted);
	cr_assert(returned <= predicted && returned >= predicted - STACK,
		  "%s: %lld predicted, %lld said to have come back", s->shape, predicted, returned);
	if (s->least)
		cr_assert_geq(planned, s->least, "%s: only %lld", s->shape, planned);
	else
		cr_assert_eq(planned, 0, "%s: %lld", s->shape, planned);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(json_warned(o[i], "locked"), s->locked, "%s: %s", s->shape, r[i].out);
		cr_assert_eq(json_warned(o[i], "hugetlb"), s->pool, "%s: %s", s->shape, r[i].out);
		cr_assert(!json_warned(o[i], "heap-moving") && !json_warned(o[i], "heap-partial"),
			  "%s: %s", s->shape, r[i].out);
	}
	o[2] = trim(&r[2], &v, s->pad, false);
	/* but for that page, which is free again now */
	cr_assert_leq(json_int(o[2], "result.predicted_bytes"), planned - predicted, "%s: again %s",
		      s->shape, r[2].out);
	again = heap_bytes(v.pid);
	cr_assert(llabs(again - after) <= PAGE, "%lld bytes, then %lld", after, again);
	for (int i = 0; i < 3; i++) {
		json_decref(o[i]);
		run_free(&r[i]);
	}
	victim_stop(&v);
}

#define EXACT(name, ...)                                                                           \
	Test(predict, name, .timeout = 120)                                                        \
	{                                                                                          \
		const struct subject s = { __VA_ARGS__ };                                          \
		exact(&s);                                                                         \
	}

EXACT(pinned_arenas, .shape = "arenas", .least = 95 * MIB)
EXACT(one_arena_for_all_threads, .shape = "onearena", .least = 45 * MIB)
EXACT(one_arena_by_environment, .shape = "many", .env = "MALLOC_ARENA_MAX=1", .least = 90 * MIB)
EXACT(sixty_four_threads, .shape = "many", .least = 90 * MIB)
EXACT(sixty_four_arenas, .shape = "arenas64", .least = 290 * MIB)
EXACT(arenas_of_several_heaps, .shape = "heaps", .least = 190 * MIB)
EXACT(every_second_block, .shape = "second")
EXACT(pins_among_blocks, .shape = "pins", .least = 40 * MIB)
EXACT(without_thread_caches, .shape = "pins", .env = NO_CACHE, .least = 40 * MIB)
EXACT(thread_caches_full, .shape = "cachefull", .least = 4 * PAGE)
EXACT(mmapped_chunks, .shape = "mmapped", .least = 4 * MIB)
EXACT(more_than_4_GiB, .shape = "vast", .least = 2 * PAGE)
EXACT(many_ranges, .shape = "ranges", .least = 30 * MIB)
EXACT(fastbins, .shape = "fast", .least = 5 * MIB)
EXACT(fastbins_before_top, .shape = "fasttop", .least = 4 * MIB)
EXACT(many_small_chunks, .shape = "crumbs", .least = 40 * MIB)
EXACT(top_alone, .shape = "top", .least = 50 * MIB)
EXACT(after_an_earlier_trim, .shape = "again", .least = MIB)
/* ---- after mallopt(3): PAD is what counts, not M_TOP_PAD; free() has trimmed to the threshold */
EXACT(top_pad, .shape = "toppad", .least = 40 * MIB)
EXACT(top_pad_and_pad, .shape = "toppad", .pad = "2M", .least = 40 * MIB)
EXACT(trim_threshold, .shape = "threshold", .least = 45 * MIB)
EXACT(thresholds_that_have_risen, .shape = "risen", .least = 45 * MIB)
/* ---- */
EXACT(never_touched, .shape = "untouched", .least = 8 * MIB)
EXACT(thp_never_touched, .shape = "untouched", .env = THP, .least = 8 * MIB)
/* ---- somebody else around the break */
EXACT(foreign_sbrk_in_between, .shape = "foreign", .least = 30 * MIB)
EXACT(foreign_sbrk_at_the_end, .shape = "behind", .least = 30 * MIB)
EXACT(no_room_for_the_break, .shape = "blocked", .least = 30 * MIB)
/* the break area does not end where the kernel's [heap] does */
EXACT(mapping_merged_with_the_break, .shape = "merged", .least = 50 * MIB)
/* ---- locked: madvise(2) ends where it meets such memory, brk(2) does not mind */
EXACT(all_locked, .shape = "lockall", .least = 8 * MIB, .locked = true)
EXACT(a_part_locked, .shape = "lockpart", .least = 30 * MIB, .locked = true)
/* ---- huge pages */
EXACT(thp_advised, .shape = "advised", .least = 40 * MIB)
EXACT(thp_advised_everywhere, .shape = "alladvised", .least = 90 * MIB)
EXACT(thp_ranges, .shape = "pins", .env = THP, .least = 40 * MIB)
EXACT(thp_top, .shape = "top", .env = THP, .least = 50 * MIB)
EXACT(thp_ranges_and_top, .shape = "huge", .env = THP, .least = 40 * MIB)
EXACT(thp_merged, .shape = "merged", .env = THP, .least = 50 * MIB)
EXACT(thp_a_part_locked, .shape = "lockpart", .env = THP, .least = 30 * MIB, .locked = true)
EXACT(thp_foreign_sbrk, .shape = "foreign", .env = THP, .least = 30 * MIB)
EXACT(thp_arenas, .shape = "arenas", .env = THP, .least = 95 * MIB)
EXACT(thp_pad, .shape = "top", .env = THP, .pad = "1M", .least = 50 * MIB)
/* ---- what this machine may or may not give */

/* A trim drops what is in swap as well; what lies there is not needed to tell how much. */
Test(predict, swapped_top, .timeout = 120)
{
	const struct subject s = { .shape = "top", .swap = 40 * MIB, .least = 50 * MIB };

	needs_swap(s.swap);
	exact(&s);
}

/* All of the heap is in swap: nothing is brought back to look at it, and that is said. */
Test(predict, swapped_heap, .timeout = 120)
{
	const struct subject s = { .shape = "pins" };
	static const char *const look[] = { "diagnose", "arenas", "threads", "maps", "facts" };
	long long before, rss;
	struct victim v;
	struct run r;
	json_t *o;

	needs_swap(64 * MIB);
	start(&v, &s);
	page_out(v.pid, 1024 * MIB);
	before = swapped(v.pid);
	rss = proc_number(v.pid, "smaps_rollup", "Rss:");
	cr_assert_gt(before, 40 * MIB);
	o = trim(&r, &v, NULL, true);
	cr_assert(json_warned(o, "heap-partial"), "%s", r.out);
	json_decref(o);
	run_free(&r);
	for (size_t i = 0; i < sizeof(look) / sizeof(look[0]); i++) {
		run_ok(v.pid, look[i], NULL);
		cr_assert_eq(swapped(v.pid), before, "%s brings memory back", look[i]);
	}
	cr_assert_eq(proc_number(v.pid, "smaps_rollup", "Rss:"), rss);
	victim_stop(&v);
}

static bool file_says(const char *path, const char *want)
{
	char line[128] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, want) != NULL;
}

/* As the kernel itself does it everywhere, without a word of the program's or glibc's. */
static void always(const struct subject *s)
{
	if (!file_says("/sys/kernel/mm/transparent_hugepage/enabled", "[always]"))
		cr_skip_test("transparent huge pages are not set to always here; "
			     "thp_advised_everywhere has the same heap");
	exact(s);
}

#define ALWAYS(name, ...)                                                                          \
	Test(predict, name, .timeout = 120)                                                        \
	{                                                                                          \
		const struct subject s = { __VA_ARGS__ };                                          \
		always(&s);                                                                        \
	}

ALWAYS(thp_always_ranges, .shape = "pins", .least = 40 * MIB)
ALWAYS(thp_always_top, .shape = "top", .least = 50 * MIB)
ALWAYS(thp_always_arenas, .shape = "arenas", .least = 95 * MIB)
ALWAYS(thp_always_many_ranges, .shape = "ranges", .least = 30 * MIB)

static long free_huge_pages(void)
{
	char line[128];
	long have = 0;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "HugePages_Free: %ld", &have) == 1)
			break;
	if (f)
		fclose(f);
	return have;
}

/* Without a pool of huge pages too: no break, heaps of 8 MiB. */
static void no_pool(const struct subject *s)
{
	if (free_huge_pages())
		cr_skip_test("there are huge pages in the pool: see hugetlb_pool");
	exact(s);
}

Test(predict, hugetlb_ranges, .timeout = 120)
{
	const struct subject s = { .shape = "pins", .env = HUGETLB, .least = 40 * MIB };

	no_pool(&s);
}

Test(predict, hugetlb_arenas, .timeout = 120)
{
	const struct subject s = { .shape = "arenas", .env = HUGETLB, .least = 50 * MIB };

	no_pool(&s);
}

/* Pages of the pool are in no RSS, and madvise(2) refuses ranges that do not begin with one. */
static void pool(const struct subject *s, long pages)
{
	const long have = free_huge_pages();

	if (have < pages)
		cr_skip_test("%ld huge pages in the pool, %ld would do (vm.nr_hugepages)", have,
			     pages);
	exact(s);
}

Test(predict, hugetlb_pool, .timeout = 120)
{
	const struct subject s = { .shape = "pins", .env = HUGETLB, .pool = true };

	pool(&s, 40);
}

Test(predict, hugetlb_pool_arenas, .timeout = 120)
{
	const struct subject s = { .shape = "arenas", .env = HUGETLB, .pool = true };

	pool(&s, 100);
}

/* ---- PAD is of the main arena's top only */
EXACT(pad, .shape = "top", .pad = "1M", .least = 50 * MIB)
EXACT(pad_of_a_part_of_a_page, .shape = "fasttop", .pad = "100001", .least = 4 * MIB)
EXACT(pad_larger_than_top, .shape = "top", .pad = "64M")
EXACT(pad_and_ranges, .shape = "pins", .pad = "64M", .least = 40 * MIB)
EXACT(pad_and_fastbins, .shape = "fasttop", .pad = "1M", .least = 4 * MIB)
/* ---- */
EXACT(static_single, .shape = "pins", .fixed = true, .least = 40 * MIB)
EXACT(static_top, .shape = "top", .fixed = true, .least = 50 * MIB)
EXACT(static_merged, .shape = "merged", .fixed = true, .least = 50 * MIB)
EXACT(static_one_arena, .shape = "onearena", .fixed = true, .least = 45 * MIB)
EXACT(static_arenas, .shape = "arenas", .fixed = true, .least = 95 * MIB)

/* A heap that changes while it is read: that is said, and nothing worse happens. */
Test(predict, busy_heap_is_told_as_about, .timeout = 120)
{
	unsigned moving = 0, about = 0;
	struct victim v;

	victim_start_named(&v, "busy", "4", NULL);
	/* which reading meets a change is chance */
	for (int i = 0; i < 10 || (i < 300 && !(moving && about)); i++) {
		struct run r;
		json_t *o = trim(&r, &v, NULL, i % 2);

		moving += json_warned(o, "heap-moving");
		json_int(o, "result.predicted_bytes");
		json_decref(o);
		run_free(&r);
		run(&r, v.pid, "--dry-run", "trim", NULL);
		run_expect(&r, 0);
		about += strstr(r.out, "predicted about ") != NULL;
		run_free(&r);
		victim_check(&v);
	}
	cr_assert_gt(moving, 0, "no reading has met a change");
	cr_assert_gt(about, 0);
	victim_stop(&v);
}

/* How long the prediction alone takes; it stops by itself after 2 s. */
static void timed(const char *shape, const char *what)
{
	uint64_t best = UINT64_MAX;
	struct victim v;

	victim_start_named(&v, "shapes", shape, NULL);
	for (int i = 0; i < 3; i++) {
		struct run r;

		json_decref(trim(&r, &v, NULL, true));
		best = r.ns < best ? r.ns : best;
		run_free(&r);
	}
	victim_check(&v);
	victim_kill(&v);
	fprintf(stderr, "   predicted in %.1f ms: %s\n", (double)best / 1e6, what);
	cr_assert_lt(best, UINT64_C(20) * 1000000000, "the limit was passed over");
}

Test(predict, time_of_a_large_heap, .timeout = 120)
{
	timed("gigabyte", "1 GiB with 500,000 free chunks");
}

Test(predict, time_of_many_arenas, .timeout = 120)
{
	timed("arenas64", "64 arenas, 300 MiB");
}

Test(predict, time_of_an_ordinary_heap, .timeout = 120)
{
	timed("pins", "46 MiB in 300 ranges");
}
