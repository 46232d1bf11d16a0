// SPDX-License-Identifier: GPL-3.0-or-later
/* Who owns the memory of each kind of program, held against what the kernel and the programs say.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define KIB 1024ll
#define MIB (1024ll * KIB)

/* ---- what the kernel says, by a parser of the test's own */

struct mapping {
	unsigned long long start, end;
	long long rss, swap, anon;
};

struct mappings {
	struct mapping *v;
	size_t n;
};

static void kernel_says(pid_t pid, struct mappings *m)
{
	char path[64], line[8192];
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	*m = (struct mappings){ 0 };
	while (fgets(line, sizeof(line), f)) {
		struct mapping *last = m->n ? &m->v[m->n - 1] : NULL;
		unsigned long long start, end;
		long long kb;

		if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
			if (m->n == cap) {
				cap = cap ? cap * 2 : 64;
				m->v = realloc(m->v, cap * sizeof(*m->v));
				cr_assert_not_null(m->v);
			}
			m->v[m->n++] = (struct mapping){ .start = start, .end = end };
		} else if (last && sscanf(line, "Rss: %lld kB", &kb) == 1) {
			last->rss = kb * KIB;
		} else if (last && sscanf(line, "Swap: %lld kB", &kb) == 1) {
			last->swap = kb * KIB;
		} else if (last && sscanf(line, "Anonymous: %lld kB", &kb) == 1) {
			last->anon = kb * KIB;
		}
	}
	fclose(f);
}

/* ---- what heapmedic says */

struct answer {
	struct run r;
	json_t *o;
};

static void ask(struct answer *a, pid_t pid)
{
	run(&a->r, pid, "--json", "maps", "--all", NULL);
	run_expect(&a->r, 0);
	cr_assert_eq(run_lines(&a->r), 1);
	a->o = run_json(&a->r, 0, pid, "maps");
}

static void answer_end(struct answer *a)
{
	json_decref(a->o);
	run_free(&a->r);
}

/* The sum of one figure over the rows of an owner; detail NULL: whatever it is of. */
static long long sum_of(const struct answer *a, const char *owner, const char *detail,
			const char *figure)
{
	long long sum = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_at(a->o, "result.rows"), i, row)
	{
		if (owner && strcmp(json_text(row, "owner"), owner) != 0)
			continue;
		if (detail && strncmp(json_text(row, "detail"), detail, strlen(detail)) != 0)
			continue;
		sum += json_int(row, figure);
	}
	return sum;
}

static long long resident(const struct answer *a, const char *owner)
{
	return sum_of(a, owner, NULL, "resident_bytes");
}

/* The rows, the pieces and the total are one sum, and with the remainder they are the RSS. */
static void check_sums(const struct answer *a)
{
	static const char *const figures[] = { "mapped_bytes", "resident_bytes", "swap_bytes",
					       "huge_bytes",   "lazyfree_bytes", "locked_bytes" };

	for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++) {
		char path[64];
		long long pieces = 0;
		json_t *p;
		size_t i;

		json_array_foreach(json_at(a->o, "result.maps"), i, p) pieces +=
			json_int(p, figures[k]);
		snprintf(path, sizeof(path), "result.total.%s", figures[k]);
		cr_assert_eq(pieces, json_int(a->o, path), "%s of the pieces", figures[k]);
		cr_assert_eq(sum_of(a, NULL, NULL, figures[k]), pieces, "%s of the rows",
			     figures[k]);
	}
	cr_assert_eq(json_int(a->o, "result.total.resident_bytes") +
			     json_int(a->o, "result.remainder_bytes"),
		     json_int(a->o, "result.rss_bytes"));
}

/* A program that sits still: each mapping's pieces are the kernel's figures exactly. */
static void check_exact(const struct answer *a, pid_t pid)
{
	struct mappings m;
	json_t *list = json_at(a->o, "result.maps");
	size_t at = 0;
	long long rss = 0;

	kernel_says(pid, &m);
	for (size_t i = 0; i < m.n; i++) {
		long long r = 0, s = 0;

		for (; at < json_array_size(list); at++) {
			json_t *p = json_array_get(list, at);
			unsigned long long start = strtoull(json_text(p, "start"), NULL, 16);

			if (start >= m.v[i].end)
				break;
			cr_assert_geq(start, m.v[i].start);
			r += json_int(p, "resident_bytes");
			s += json_int(p, "swap_bytes");
		}
		cr_assert_eq(r, m.v[i].rss, "%llx: %lld resident, the kernel says %lld",
			     m.v[i].start, r, m.v[i].rss);
		cr_assert_eq(s, m.v[i].swap, "%llx", m.v[i].start);
		rss += m.v[i].rss;
	}
	cr_assert_eq(at, json_array_size(list));
	cr_assert_eq(json_int(a->o, "result.remainder_bytes"), 0);
	cr_assert_eq(json_int(a->o, "result.rss_bytes"), rss);
	cr_assert_eq(rss, KIB * proc_number(pid, "smaps_rollup", "Rss:"));
	free(m.v);
}

static void about(const char *what, long long got, long long want, long long more)
{
	cr_assert(got >= want && got <= want + more, "%s: %lld, not %lld to %lld", what, got, want,
		  want + more);
}

/* Nothing that `maps` does may be noticed: it holds no thread, and reads no page into being. */
static void check_untouched(const struct victim *v, const struct state *before,
			    enum state_freedom freedom)
{
	state_same(v, before, freedom);
}

/* ---- glibc: what malloc_info says of itself */

static void check_against_info(const struct answer *a, pid_t pid)
{
	struct run r;
	json_t *o, *arena;
	long long heaps = 0, main_system = -1, blocks, bytes;
	size_t i;

	run(&r, pid, "--json", "info", "--all", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, pid, "info");
	json_array_foreach(json_at(o, "result.arenas"), i, arena)
	{
		if (json_int(arena, "index") == 0)
			main_system = json_int(arena, "system_bytes");
		else
			heaps += json_int(arena, "subheaps");
	}
	blocks = json_int(o, "result.total.mmapped_count");
	bytes = json_int(o, "result.total.mmapped_bytes");
	json_decref(o);
	run_free(&r);
	cr_assert_eq(sum_of(a, "glibc-mmapped", NULL, "count"), blocks);
	cr_assert_eq(sum_of(a, "glibc-mmapped", NULL, "mapped_bytes"), bytes);
	/* a static program has its TLS below the first block, so that not all of it is malloc's */
	about("main heap", sum_of(a, "glibc-main", NULL, "mapped_bytes"), main_system, 8 * KIB);
	cr_assert_eq(sum_of(a, "glibc-arena", NULL, "count"), heaps);
	cr_assert_eq(sum_of(a, "glibc-arena", NULL, "mapped_bytes"), heaps * 64 * MIB);
}

/* ---- the victim with memory of every kind: tests/victims/mapped.c */

Test(maps, every_kind)
{
	struct victim v;
	/* of a process with a root of its own the kernel tells the path from ours */
	const char *posix = getenv("VICTIM_ROOT") ? "tmpfs" : "posix";
	struct state before;
	struct answer a;
	long huge, lazy, rss;

	victim_start_named(&v, "mapped", NULL, NULL);
	state_take(&v, &before);
	huge = proc_number(v.pid, "smaps_rollup", "AnonHugePages:");
	/* the kernel marks such pages a batch at a time, and takes them when it wants to */
	lazy = proc_number(v.pid, "smaps_rollup", "LazyFree:");
	rss = proc_number(v.pid, "smaps_rollup", "Rss:");
	ask(&a, v.pid);
	check_sums(&a);
	check_exact(&a, v.pid);
	cr_assert_eq(sum_of(&a, "shm", posix, "resident_bytes"), 3 * MIB);
	cr_assert_eq(sum_of(&a, "shm", "memfd", "resident_bytes"), 2 * MIB);
	cr_assert_eq(sum_of(&a, "shm", "system v", "resident_bytes"), 1 * MIB);
	cr_assert_eq(sum_of(&a, "shm", "anonymous", "resident_bytes"), 5 * MIB);
	cr_assert_eq(resident(&a, "shm"), 11 * MIB);
	/* 16 pages of a file of 1 MiB are written */
	about("copies", sum_of(&a, "file-private", "written", "resident_bytes"), 64 * KIB,
	      256 * KIB);
	about("file", resident(&a, "file-data"), MIB - 64 * KIB, MIB);
	/* four of 16 MiB with 3 MiB dug, one of 1 MiB with 512 KiB, and three that have ended */
	about("stacks", sum_of(&a, "thread-stack", "", "resident_bytes"), 4 * 3 * MIB + 512 * KIB,
	      512 * KIB);
	about("stacks mapped", sum_of(&a, "thread-stack", NULL, "mapped_bytes"),
	      4 * 16 * MIB + MIB + 3 * 2 * MIB, 3 * 126 * MIB);
	/* 1 MiB locked, 2 MiB to be freed, 4 MiB huge, 64 KiB: the program's own, or named */
	about("own", resident(&a, "unclaimed") + resident(&a, "named"), 7 * MIB + 64 * KIB,
	      64 * KIB);
	cr_assert_eq(json_int(a.o, "result.total.locked_bytes"), MIB);
	cr_assert_eq(json_int(a.o, "result.total.lazyfree_bytes"), KIB * lazy);
	about("lazily free", KIB * lazy, MIB, MIB);
	cr_assert_eq(json_int(a.o, "result.total.huge_bytes"), KIB * huge);
	about("reserved", sum_of(&a, "unclaimed", "no access", "mapped_bytes"), 256 * MIB, MIB);
	about("main stack", resident(&a, "main-stack"), 4 * KIB, 128 * KIB);
	cr_assert_gt(resident(&a, "glibc-main"), 0);
	cr_assert_eq(sum_of(&a, "glibc-mmapped", NULL, "count"), 8);
	about("large blocks", resident(&a, "glibc-mmapped"), 8 * MIB, 64 * KIB);
	check_untouched(&v, &before, STATE_EXACT);
	cr_assert_eq(proc_number(v.pid, "smaps_rollup", "Rss:"), rss);
	check_against_info(&a, v.pid);
	answer_end(&a);
	victim_stop(&v);
}

/* The text has the same sum, and an owner a line. */
Test(maps, text)
{
	struct victim v;
	struct run r;
	char total[64];

	victim_start_named(&v, "mapped", NULL, NULL);
	run(&r, v.pid, "--bytes", "maps", NULL);
	run_expect(&r, 0);
	snprintf(total, sizeof(total), "  %lld", KIB * proc_number(v.pid, "smaps_rollup", "Rss:"));
	cr_assert_not_null(strstr(strstr(r.out, "\ntotal "), total), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\nthread-stack "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "memfd: mapped"), "%s", r.out);
	cr_assert_null(strstr(r.out, "\nremainder "), "%s", r.out);
	cr_assert_leq(run_lines(&r), 24, "more than a screen: %s", r.out);
	run_free(&r);
	run(&r, v.pid, "maps", "--all", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "[stack]"), "%s", r.out);
	run_free(&r);
	/* it is a passive command */
	run(&r, v.pid, "--passive", "--read-only", "maps", NULL);
	run_expect(&r, 0);
	run_free(&r);
	victim_stop(&v);
}

/* It takes 70 ms where nothing else runs; the limit only finds a hang, or a time that grows with
 * the square of the mappings. */
Test(maps, ten_thousand, .timeout = 120)
{
	struct victim v;
	struct answer a;
	struct run r;
	size_t pieces;

	victim_start_named(&v, "mapped", "many", "10000");
	run(&r, v.pid, "maps", NULL);
	run_expect(&r, 0);
	cr_assert_leq(r.ns, 30000000000ull, "%llu ms", (unsigned long long)(r.ns / 1000000));
	fprintf(stderr, "maps of 10,000 mappings: %llu ms\n", (unsigned long long)(r.ns / 1000000));
	run_free(&r);
	ask(&a, v.pid);
	pieces = json_array_size(json_at(a.o, "result.maps"));
	cr_assert_geq(pieces, 10000);
	check_sums(&a);
	check_exact(&a, v.pid);
	/* every second one is touched */
	about("own", resident(&a, "unclaimed"), 5000 * 4 * KIB + 7 * MIB, 30 * MIB);
	answer_end(&a);
	victim_stop(&v);
}

static long long stacks_of(const struct answer *a)
{
	long long n = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_at(a->o, "result.rows"), i, row)
	{
		if (!strcmp(json_text(row, "owner"), "thread-stack") &&
		    strncmp(json_text(row, "detail"), "of ended", 8) != 0)
			n += json_int(row, "count");
	}
	return n;
}

static void try_glibc(const char *name, long long unclaimed)
{
	struct victim v;
	struct state before;
	struct answer a;

	victim_start_named(&v, name, NULL, NULL);
	state_take(&v, &before);
	/* of a thread that runs just now nobody can see where its stack is */
	for (int i = 0;; i++) {
		ask(&a, v.pid);
		check_sums(&a);
		if (stacks_of(&a) == (long long)before.threads - 1)
			break;
		cr_assert_lt(stacks_of(&a), (long long)before.threads);
		cr_assert_lt(i, 100, "%lld stacks", stacks_of(&a));
		answer_end(&a);
	}
	about("unclaimed", resident(&a, "unclaimed"), 0, unclaimed);
	check_untouched(&v, &before, STATE_EXACT);
	check_against_info(&a, v.pid);
	answer_end(&a);
	victim_stop(&v);
}

Test(maps, eight)
{
	try_glibc("eight", 0);
}

/* Without the lists that a dynamic glibc has, and with bss and heap next to each other. */
Test(maps, statically_linked)
{
	try_glibc("static", 0);
}

Test(maps, retained)
{
	try_glibc("retained", 0);
}

Test(maps, python)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "python3", "@py.py" } };
	struct answer a;

	victim_start(&v, &plan);
	ask(&a, v.pid);
	check_sums(&a);
	cr_assert_gt(resident(&a, "glibc-main"), 50 * MIB);
	/* Python's own arenas are mappings of 1 MiB (256 KiB before 3.10) that no name tells */
	about("unclaimed", resident(&a, "unclaimed"), 0, 16 * MIB);
	cr_assert_eq(sum_of(&a, "thread-stack", NULL, "count"), 0);
	answer_end(&a);
	victim_stop(&v);
}

/* ---- runtimes */

Test(maps, go)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@gocgo" } };
	struct answer a;

	victim_start(&v, &plan);
	ask(&a, v.pid);
	check_sums(&a);
	/* arenas are of 64 MiB, the first at 0xc000000000 */
	cr_assert_gt(resident(&a, "go-heap"), 0);
	cr_assert_eq(sum_of(&a, "go-heap", NULL, "mapped_bytes") % (64 * MIB), 0);
	/* the page allocator reserves its summaries: 585 MiB in all */
	cr_assert_gt(sum_of(&a, "go-runtime", NULL, "mapped_bytes"), 500 * MIB);
	cr_assert_gt(resident(&a, "glibc-arena"), 10 * MIB);
	cr_assert_gt(resident(&a, "thread-stack"), 0);
	about("unclaimed", resident(&a, "unclaimed"), 0, MIB);
	answer_end(&a);
	victim_stop(&v);
}

/* Without a libc all that has no name is the runtime's. */
Test(maps, go_without_cgo)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@gopure" } };
	struct answer a;

	victim_start(&v, &plan);
	ask(&a, v.pid);
	check_sums(&a);
	about("go-heap", resident(&a, "go-heap"), 32 * MIB, 8 * MIB);
	cr_assert_gt(resident(&a, "go-runtime"), 0);
	cr_assert_eq(resident(&a, "unclaimed"), 0);
	cr_assert_eq(sum_of(&a, "thread-stack", NULL, "count"), 0);
	answer_end(&a);
	victim_stop(&v);
}

Test(maps, jvm)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "java", "-Xmx64m", "-XX:+UseSerialGC", "-Xshare:off",
					      "-cp", "@", "Jvm" } };
	struct answer a;

	victim_start(&v, &plan);
	ask(&a, v.pid);
	check_sums(&a);
	cr_assert_eq(sum_of(&a, "jvm", "java heap", "mapped_bytes"), 64 * MIB);
	cr_assert_gt(sum_of(&a, "jvm", "java heap", "resident_bytes"), MIB);
	/* -XX:ReservedCodeCacheSize is 48 or 240 MiB unless told */
	cr_assert_geq(sum_of(&a, "jvm", "code cache", "mapped_bytes"), 32 * MIB);
	cr_assert_gt(sum_of(&a, "jvm", "code cache", "resident_bytes"), 0);
	cr_assert_gt(resident(&a, "glibc-arena"), 0);
	cr_assert_geq(sum_of(&a, "thread-stack", NULL, "count"), 8);
	about("unclaimed", resident(&a, "unclaimed"), 0, json_int(a.o, "result.rss_bytes") / 20);
	answer_end(&a);
	victim_stop(&v);
}

/* jemalloc's own count of what is resident of it: pages in use, and its data about them. */
static long long jemalloc_says(pid_t pid)
{
	struct run r;
	long long n;
	json_t *o;

	run_ok(pid, "mallctl", "epoch", "1", NULL);
	run(&r, pid, "--json", "mallctl", "stats.resident", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, pid, "mallctl");
	n = json_int(o, "result.value");
	json_decref(o);
	run_free(&r);
	return n;
}

static void try_jemalloc(const struct victim_plan *plan)
{
	struct victim v;
	struct answer a;
	long long says, got;

	victim_start(&v, plan);
	ask(&a, v.pid);
	check_sums(&a);
	got = resident(&a, "jemalloc");
	says = jemalloc_says(v.pid);
	/* stats.resident counts whole extents whose pages may never have been touched */
	cr_assert_leq(got, says + 2 * MIB, "%lld resident, jemalloc says %lld", got, says);
	cr_assert_geq(got, says - says / 8 - 4 * MIB, "%lld resident, jemalloc says %lld", got,
		      says);
	cr_assert_eq(resident(&a, "glibc-main") + resident(&a, "glibc-arena"), 0);
	about("unclaimed", resident(&a, "unclaimed"), 0, 256 * KIB);
	answer_end(&a);
	victim_stop(&v);
}

Test(maps, jemalloc)
{
	struct victim_plan linked = { .argv = { "@jemlinked" } };
	struct victim_plan preload = { .argv = { "@retained" },
				       .env = "LD_PRELOAD=libjemalloc.so.2" };

	try_jemalloc(&linked);
	try_jemalloc(&preload);
}

/* These keep 300 MiB free under pins of 8 threads. */
static void try_preload(const char *env, const char *owner)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@retained" }, .env = env };
	struct answer a;

	victim_start(&v, &plan);
	ask(&a, v.pid);
	check_sums(&a);
	about(owner, resident(&a, owner), 295 * MIB, 90 * MIB);
	cr_assert_eq(resident(&a, "glibc-main") + resident(&a, "glibc-arena"), 0);
	about("unclaimed", resident(&a, "unclaimed"), 0, 256 * KIB);
	cr_assert_eq(stacks_of(&a), 8);
	answer_end(&a);
	victim_stop(&v);
}

Test(maps, other_allocators)
{
	try_preload("LD_PRELOAD=libtcmalloc_minimal.so.4", "tcmalloc");
	try_preload("LD_PRELOAD=libmimalloc.so.2", "mimalloc");
}

/* ---- programs without a libc that is known, and processes that may not be looked at */

Test(maps, other_libcs)
{
	static const char *const names[] = { "musl", "nolibc", "m32" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct victim v;
		struct answer a;

		if (!victim_can_run(names[i]))
			cr_skip_test("this kernel runs no 32-bit programs");
		victim_start_named(&v, names[i], NULL, NULL);
		ask(&a, v.pid);
		check_sums(&a);
		cr_assert_gt(resident(&a, "file-text"), 0, "%s", names[i]);
		cr_assert_gt(resident(&a, "main-stack"), 0, "%s", names[i]);
		answer_end(&a);
		victim_stop(&v);
	}
}

/* A program whose memory changes all the time: the sums hold, and what does not fit is said. */
Test(maps, while_it_changes, .timeout = 120)
{
#ifdef __SANITIZE_ADDRESS__
	const int rounds = 4;
#else
	const int rounds = 30;
#endif
	struct victim v;
	struct answer a;

	victim_start_named(&v, "mapped", "churn", NULL);
	for (int i = 0; i < rounds; i++) {
		ask(&a, v.pid);
		check_sums(&a);
		answer_end(&a);
	}
	victim_stop(&v);
}

Test(maps, not_permitted)
{
	struct victim v;
	struct run r;
	char pid[16];
	const char *args[] = { "-p", pid, "maps", NULL };

	if (geteuid() != 0)
		cr_skip_test("needs root, to have a process of another user");
	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &(struct run_opts){ .nobody = true }, args);
	run_expect(&r, 4);
	run_free(&r);
	victim_stop(&v);
}
