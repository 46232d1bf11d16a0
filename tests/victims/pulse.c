// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * pulse [THREADS]: threads with an arena each. Until a 'g' comes they sleep; then each takes up to
 * BLOCKS blocks of one size, which no thread's cache takes, and gives them back, without an end. So
 * an arena has what it had in use at first, and a number of equal chunks. Its report has malloc's
 * own numbers of the time before (numbers.h).
 */
#include <pthread.h>

#include "numbers.h"

enum { BLOCKS = 200, SIZE = 2000, THREADS_MAX = 16 };

static pthread_barrier_t all_in, ready;

static void beat(void **b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		b[i] = malloc(SIZE);
		if (!b[i])
			wrong("no memory");
		memset(b[i], (int)n, SIZE);
	}
	for (unsigned i = 0; i < n; i++)
		free(b[(i + n / 2) % n]);
}

static void *work(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;
	void *b[BLOCKS];

	malloc_once(SIZE);
	/* all are inside before one goes on, so that each has an arena of its own */
	pthread_barrier_wait(&all_in);
	beat(b, BLOCKS);
	pthread_barrier_wait(&ready);
	while (!__atomic_load_n(&victim_go, __ATOMIC_SEQ_CST))
		usleep(1000);
	for (;;) {
		state = state * 1664525u + 1013904223u;
		beat(b, 1 + (state >> 16) % BLOCKS);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 3;

	if (threads < 1 || threads > THREADS_MAX)
		wrong("at most %d threads", THREADS_MAX);
	numbers_open();
	pthread_barrier_init(&all_in, NULL, (unsigned)threads);
	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(intptr_t)i))
			wrong("no thread");
	}
	pthread_barrier_wait(&ready);
	numbers_take();
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
