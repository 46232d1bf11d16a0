// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * surge [THREADS] [eintr]: each thread fills a few hundred blocks of up to 64 KiB with a mark of
 * its own, looks at all of them, frees them, and begins again. What it frees is given back while
 * others ask for more, and a page that is given back too early shows as a mark that is gone.
 */
#include <pthread.h>

#include "victim.h"

enum { BLOCKS = 200, LARGEST = 64 * 1024 };

static struct {
	unsigned char *p;
	size_t n;
} block[WORKERS_MAX][BLOCKS];

static void check(int worker, int i, unsigned char mark)
{
	const unsigned char *p = block[worker][i].p;
	size_t n = block[worker][i].n;

	if (p[0] != mark || p[n / 2] != mark || p[n - 1] != mark || memcmp(p, p + 1, n - 1) != 0)
		wrong("thread %d: a block of %zu bytes has changed", worker, n);
}

static void *surge(void *arg)
{
	int worker = (int)(intptr_t)arg;
	unsigned state = (unsigned)worker * 77u + 7, round = 0;

	thread_started();
	for (;; turned(worker), round++) {
		for (int i = 0; i < BLOCKS; i++) {
			state = state * 1664525u + 1013904223u;
			block[worker][i].n = 2 + (state >> 8) % (LARGEST >> (state >> 29));
			block[worker][i].p = malloc(block[worker][i].n);
			if (!block[worker][i].p)
				wrong("no memory");
			memset(block[worker][i].p, (int)(round + (unsigned)i) & 0xff,
			       block[worker][i].n);
		}
		for (int i = 0; i < BLOCKS; i++)
			check(worker, i, (unsigned char)(round + (unsigned)i));
		for (int i = 0; i < BLOCKS; i++)
			free(block[worker][i].p);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 && argv[1][0] >= '1' && argv[1][0] <= '9' ? atoi(argv[1]) : 4;

	if (n > WORKERS_MAX)
		wrong("too many threads");
	victim_eintr = victim_option(argc, argv, "eintr");
	victim_turns.workers = n;
	for (int i = 0; i < n; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, surge, (void *)(intptr_t)i))
			wrong("no thread");
	}
	wait_started(n);
	victim_ready();
	while (!victim_over(20))
		;
	return 0;
}
