// SPDX-License-Identifier: GPL-3.0-or-later
/* busy [THREADS] [eintr]: threads that do nothing but malloc, check and free, so that most moments
 * are inside the allocator. */
#include <pthread.h>

#include "victim.h"

enum { SLOTS = 32 };

static void *work(void *arg)
{
	unsigned char *p[SLOTS] = { 0 };
	size_t n[SLOTS] = { 0 };
	unsigned state = (unsigned)(intptr_t)arg + 7;

	thread_started();
	for (;;) {
		unsigned i;

		state = state * 1664525u + 1013904223u;
		i = (state >> 16) % SLOTS;
		if (p[i] && (p[i][0] != (unsigned char)i || p[i][n[i] - 1] != (unsigned char)i))
			wrong("a block of %zu bytes has changed", n[i]);
		free(p[i]);
		n[i] = 1 + (state >> 9) % 5000;
		p[i] = malloc(n[i]);
		if (!p[i])
			wrong("no memory");
		p[i][0] = (unsigned char)i;
		p[i][n[i] - 1] = (unsigned char)i;
		turned((int)(intptr_t)arg);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 && atoi(argv[1]) ? atoi(argv[1]) : 3;

	victim_eintr = victim_option(argc, argv, "eintr");
	if (threads < 1 || threads > WORKERS_MAX)
		wrong("usage: busy [THREADS]");
	victim_turns.workers = threads;
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(intptr_t)i))
			wrong("no thread");
	}
	wait_started(threads);
	victim_ready();
	while (!victim_over(20))
		;
	return 0;
}
