// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * breeder N [MS]: after a 'g' it makes N threads, one every MS (5) milliseconds, each of which
 * makes an arena (as far as MALLOC_ARENA_MAX allows), keeps two blocks there with a free one
 * between them, and sleeps. Once all of them do, its report has malloc's own numbers (numbers.h);
 * before, it is empty.
 */
#include <pthread.h>

#include "numbers.h"

#define STACK ((size_t)64 * 1024)

static void *live(void *arg)
{
	char *a = malloc(5000), *b = malloc(9000), *c = malloc(100);

	if (!a || !b || !c)
		wrong("no memory");
	memset(b, 1, 9000);
	free(b);
	thread_started();
	for (;;)
		pause();
	return arg;
}

static void breed(int want, unsigned ms)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK))
		wrong("no attributes");
	for (int i = 0; i < want; i++) {
		pthread_t t;

		if (pthread_create(&t, &attr, live, NULL))
			wrong("no thread");
		usleep(ms * 1000);
	}
	wait_started(want);
	numbers_take();
}

int main(int argc, char **argv)
{
	int want = argc > 1 ? atoi(argv[1]) : 100;
	unsigned ms = argc > 2 ? (unsigned)atoi(argv[2]) : 5;

	numbers_open();
	victim_ready();
	while (!victim_over(20)) {
		if (victim_go)
			breed(want, ms);
		victim_go = 0;
	}
	return 0;
}
