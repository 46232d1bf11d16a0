// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * cached [THREADS]: the main thread and each other ("worker 1" and so on) frees CACHED and some
 * more blocks of each of several sizes, so that its cache is full of them, and keeps as many blocks
 * of KEPT bytes as its number says, filled with it. All are alive at once: each has an arena of its
 * own, as far as there may be so many.
 */
#include <pthread.h>

#include "victim.h"

#define CACHED	    7 /* of one size, glibc's default */
#define MORE	    2
#define KEPT	    50000
#define THREADS_MAX 16

static const size_t sizes[] = { 24, 100, 1000 };
static pthread_barrier_t filled, done;
static unsigned char *kept[THREADS_MAX + 1][THREADS_MAX];

static void *take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		wrong("no memory");
	return p;
}

static void fill(int id)
{
	void *block[CACHED + MORE];

	for (int i = 0; i < id; i++) {
		kept[id][i] = take(KEPT);
		memset(kept[id][i], id, KEPT);
	}
	pthread_barrier_wait(&filled);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t i = 0; i < CACHED + MORE; i++)
			block[i] = take(sizes[s]);
		for (size_t i = 0; i < CACHED + MORE; i++)
			free(block[i]);
	}
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
	pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	for (int i = 1; i <= threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(intptr_t)i))
			wrong("no thread");
	}
	fill(0);
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
