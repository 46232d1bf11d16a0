// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * retained [THREADS [BLOCKS [SIZE]]]: every thread fills BLOCKS blocks of SIZE bytes, allocates one
 * small block that stays (the pin, on top of them) and frees the rest. glibc keeps all of it: each
 * arena is free up to its pin. The defaults hold 300 MiB.
 */
#include <pthread.h>

#include "victim.h"

static struct {
	size_t blocks, size;
	pthread_barrier_t allocated, freed;
} plan;

#define PIN_SIZE 64

static void *retain(void *arg)
{
	int id = (int)(intptr_t)arg + 1;
	void **block = calloc(plan.blocks, sizeof(*block));
	unsigned char *pin, want[PIN_SIZE];

	if (!block)
		wrong("no memory");
	for (size_t i = 0; i < plan.blocks; i++) {
		block[i] = malloc(plan.size);
		if (!block[i])
			wrong("no memory");
		memset(block[i], id, plan.size);
	}
	pin = malloc(PIN_SIZE);
	if (!pin)
		wrong("no memory");
	memset(pin, id, PIN_SIZE);
	memset(want, id, PIN_SIZE);
	/* All threads are inside before one frees, so that each has its own arena. */
	pthread_barrier_wait(&plan.allocated);
	for (size_t i = 0; i < plan.blocks; i++)
		free(block[i]);
	free(block);
	pthread_barrier_wait(&plan.freed);
	for (;;) {
		struct timespec nap = { .tv_nsec = 50 * MS };
		uint64_t start = now_ns();

		if (nanosleep(&nap, NULL))
			wrong("nanosleep: %s", strerror(errno));
		check_wait("nanosleep", start, 50);
		if (memcmp(pin, want, PIN_SIZE) != 0)
			wrong("thread %d: its pin has changed", id);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 8;

	plan.blocks = argc > 2 ? strtoul(argv[2], NULL, 10) : 2400;
	plan.size = argc > 3 ? strtoul(argv[3], NULL, 10) : 16384;
	pthread_barrier_init(&plan.allocated, NULL, (unsigned)threads);
	pthread_barrier_init(&plan.freed, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, retain, (void *)(intptr_t)i))
			wrong("no thread");
	}
	pthread_barrier_wait(&plan.freed);
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
