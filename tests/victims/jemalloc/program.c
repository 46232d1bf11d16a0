// SPDX-License-Identifier: GPL-3.0-or-later
/* A program with a jemalloc in it that keeps 64 MiB; a second thread waits. */
#include <pthread.h>

#include "../victim.h"
#include "heap.h"

static void *idle(void *arg)
{
	thread_started();
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	pthread_t t;

	if (heap_fill(64) || pthread_create(&t, NULL, idle, NULL))
		wrong("no memory");
	wait_started(1);
	victim_ready();
	while (!victim_over(20))
		if (heap_check())
			wrong("its memory has changed");
	return 0;
}
