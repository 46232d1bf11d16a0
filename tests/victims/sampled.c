// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * sampled [THREADS [STACKS [WHAT...]]]: linked with jemalloc. Before it is ready it has made one
 * block through each of STACKS call stacks and keeps them; then THREADS threads (0: the first one
 * alone) make blocks through these stacks in turn, and check and free them. A report says how long
 * one such block has taken at most since the report before, in microseconds: with "busy" there is
 * no pause between two. WHAT: "busy", "eintr". "large": each block that is kept has 1 MiB: most are
 * sampled at jemalloc's own rate. "fsize" N: no file may grow beyond N bytes. "nofile" N: no
 * descriptor from N on may be opened. "chroot": its root is a directory without anything, which has
 * no name any more.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "victim.h"

enum { SIZE = 200, LARGE = 1 << 20, PER_TURN = 64, DEPTH_MAX = 20 };

static struct {
	unsigned stacks;
	int depth, busy;
	size_t size;
} plan;
static uint64_t longest;

static void *left(unsigned path, int depth);
static void *right(unsigned path, int depth);

/* path says at each level which of two functions it is. */
static inline __attribute__((always_inline)) void *descend(unsigned path, int depth)
{
	if (depth == 0)
		return malloc(plan.size);
	return path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1);
}

__attribute__((noinline)) static void *left(unsigned path, int depth)
{
	void *p = descend(path, depth);

	/* not the last thing, so that it stays on the stack; and they are not alike, else they
	 * are made one */
	__asm__ volatile("# left" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void *right(unsigned path, int depth)
{
	void *p = descend(path, depth);

	__asm__ volatile("# right" : "+r"(p));
	return p;
}

static void note(uint64_t ns)
{
	uint64_t old = __atomic_load_n(&longest, __ATOMIC_SEQ_CST);

	while (ns > old && !__atomic_compare_exchange_n(&longest, &old, ns, 0, __ATOMIC_SEQ_CST,
							__ATOMIC_SEQ_CST))
		;
}

static void one_turn(unsigned *state, int fill)
{
	for (int i = 0; i < PER_TURN; i++) {
		uint64_t start = now_ns();
		unsigned char *p;

		*state = *state * 1103515245u + 12345u;
		p = left((*state >> 8) % plan.stacks, plan.depth);
		if (!p)
			wrong("no memory");
		memset(p, fill, SIZE);
		for (int k = 0; k < SIZE; k++)
			if (p[k] != fill)
				wrong("a block has changed");
		free(p);
		note(now_ns() - start);
	}
}

static void *work(void *arg)
{
	int worker = (int)(intptr_t)arg;
	unsigned state = (unsigned)worker + 1;

	thread_started();
	for (;;) {
		one_turn(&state, worker + 1);
		turned(worker);
		if (!plan.busy)
			usleep(1000);
	}
	return NULL;
}

static void limit(int resource, const char *most)
{
	struct rlimit r;

	if (!most || getrlimit(resource, &r))
		wrong("getrlimit: %s", strerror(errno));
	r.rlim_cur = strtoul(most, NULL, 10);
	if (setrlimit(resource, &r))
		wrong("setrlimit: %s", strerror(errno));
}

static void lose_root(void)
{
	char dir[] = "/tmp/heapmedic-root-XXXXXX";

	if (!mkdtemp(dir) || chdir(dir) || rmdir(dir) || chroot("."))
		wrong("chroot: %s", strerror(errno));
}

static void set_up(int argc, char **argv)
{
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "fsize"))
			limit(RLIMIT_FSIZE, i + 1 < argc ? argv[i + 1] : NULL);
		else if (!strcmp(argv[i], "nofile"))
			limit(RLIMIT_NOFILE, i + 1 < argc ? argv[i + 1] : NULL);
		else if (!strcmp(argv[i], "chroot"))
			lose_root();
	}
}

static void keep_blocks(void)
{
	static void *volatile kept;

	while (1u << plan.depth < plan.stacks && plan.depth < DEPTH_MAX)
		plan.depth++;
	for (unsigned i = 0; i < plan.stacks; i++) {
		void **p = right(i, plan.depth);

		if (!p)
			wrong("no memory");
		*p = kept;
		kept = p;
	}
}

/* Once for each report, when its turns are made. */
static void say_longest(void)
{
	static uint64_t said;

	if (said == victim_turns.asked)
		return;
	said = victim_turns.asked;
	snprintf(victim_says, sizeof(victim_says), "longest %llu us",
		 (unsigned long long)(__atomic_exchange_n(&longest, 0, __ATOMIC_SEQ_CST) / 1000));
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	unsigned state = 1;

	plan.stacks = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
	plan.size = victim_option(argc, argv, "large") ? LARGE : SIZE;
	plan.busy = victim_option(argc, argv, "busy");
	victim_eintr = victim_option(argc, argv, "eintr");
	keep_blocks();
	plan.size = SIZE;
	victim_turns.workers = threads ? threads : 1;
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(intptr_t)i))
			wrong("no thread");
	}
	wait_started(threads);
	set_up(argc, argv);
	victim_ready();
	while (!victim_over(threads ? 20 : plan.busy ? 0 : 2)) {
		uint64_t turns = __atomic_load_n(&victim_turns.turn[0], __ATOMIC_SEQ_CST);

		if (!threads) {
			one_turn(&state, 1);
			turned(0);
		}
		if (victim_turns.asked && turns >= victim_turns.seen[0] + 1)
			say_longest();
	}
	return 0;
}
