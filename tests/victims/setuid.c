// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * setuid: one thread calls setuid(2) all the time, for which glibc interrupts every other thread
 * and waits until it has answered; the others sleep and start threads. No call may take long.
 */
#include <pthread.h>

#include "victim.h"

#define LONGEST (3000 * MS)

static void *change(void *arg)
{
	thread_started();
	for (;;) {
		uint64_t start = now_ns();

		if (setuid(getuid()))
			wrong("setuid: %s", strerror(errno));
		if (now_ns() - start > LONGEST)
			wrong("setuid took %llu ms", (unsigned long long)((now_ns() - start) / MS));
		usleep(300);
	}
	return arg;
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void *sleep_and_start(void *arg)
{
	thread_started();
	for (;;) {
		uint64_t start = now_ns();
		pthread_t t;

		free(malloc(1000));
		if (pthread_create(&t, NULL, end_at_once, NULL) || pthread_join(t, NULL))
			wrong("no thread");
		if (now_ns() - start > LONGEST)
			wrong("a thread took %llu ms",
			      (unsigned long long)((now_ns() - start) / MS));
		usleep(2000);
	}
	return arg;
}

int main(void)
{
	victim_eintr = 1;
	for (int i = 0; i < 4; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, i ? sleep_and_start : change, NULL))
			wrong("no thread");
	}
	wait_started(4);
	victim_ready();
	while (!victim_over(20))
		;
	_exit(0);
}
