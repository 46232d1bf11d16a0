// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * cached [THREADS [large]]: the main thread and each other ("worker 1" and so on) frees BLOCKS
 * blocks of each of several sizes, so that its cache is full of them, and keeps as many blocks of
 * KEPT bytes as its number says, filled with it. All are alive at once: each has an arena of its
 * own, as far as there may be so many. With "large" the sizes are beyond what a cache takes by
 * default. Its report has malloc's own numbers (numbers.h), and then how many bytes have gone into
 * caches: those that were freed, and yet count as in use.
 */
#include <pthread.h>

#include "numbers.h"

#define BLOCKS	    20 /* of one size: a cache takes 7, since 2.43 16 */
#define SIZES	    3
#define KEPT	    50000
#define THREADS_MAX 16

static const size_t usual[SIZES] = { 24, 100, 1000 }, large[SIZES] = { 2000, 9000, 70000 };
static const size_t *sizes = usual;
static pthread_barrier_t filled, taken, looked, done;
static unsigned char *kept[THREADS_MAX + 1][THREADS_MAX];
static size_t before, freed;

static void *take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		wrong("no memory");
	return p;
}

static void give(void *p)
{
	/* the chunk has a header of 8 bytes */
	__atomic_add_fetch(&freed, malloc_usable_size(p) + 8, __ATOMIC_SEQ_CST);
	free(p);
}

/* The main thread looks while all blocks are taken and none is given back. */
static void fill(int id)
{
	void *block[SIZES][BLOCKS];

	/* the cache itself is made with the first malloc, since 2.43 with the first free */
	malloc_once(sizes[0]);
	for (int i = 0; i < id; i++) {
		kept[id][i] = take(KEPT);
		memset(kept[id][i], id, KEPT);
	}
	pthread_barrier_wait(&filled);
	for (size_t s = 0; s < SIZES; s++)
		for (size_t i = 0; i < BLOCKS; i++)
			block[s][i] = take(sizes[s]);
	pthread_barrier_wait(&taken);
	if (id == 0)
		before = numbers_in_use();
	pthread_barrier_wait(&looked);
	for (size_t s = 0; s < SIZES; s++)
		for (size_t i = 0; i < BLOCKS; i++)
			give(block[s][i]);
	pthread_barrier_wait(&done);
}

static void check(int id)
{
	for (int i = 0; i < id; i++)
		for (size_t k = 0; k < KEPT; k++)
			if (kept[id][i][k] != id)
				wrong("thread %d: a block of it has changed", id);
}

static void *work(void *arg)
{
	int id = (int)(intptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "worker %d", id);
	prctl(PR_SET_NAME, name);
	fill(id);
	for (;;) {
		struct timespec nap = { .tv_nsec = 50 * MS };

		if (nanosleep(&nap, NULL))
			wrong("nanosleep: %s", strerror(errno));
		check(id);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 6;

	if (threads < 0 || threads > THREADS_MAX)
		wrong("at most %d threads", THREADS_MAX);
	numbers_open();
	if (victim_option(argc, argv, "large"))
		sizes = large;
	for (size_t i = 0; i < 4; i++)
		pthread_barrier_init(
			((pthread_barrier_t *[]){ &filled, &taken, &looked, &done })[i], NULL,
			(unsigned)threads + 1);
	for (int i = 1; i <= threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(intptr_t)i))
			wrong("no thread");
	}
	fill(0);
	numbers_take();
	snprintf(victim_says + strlen(victim_says), sizeof(victim_says) - strlen(victim_says),
		 " %zu", freed - (numbers_field)(before - numbers_in_use()));
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
