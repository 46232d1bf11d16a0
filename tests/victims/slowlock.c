// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * slowlock: an allocator of its own whose second lock is held for seconds by another thread. Who
 * takes a thread out of it leaves the first one locked for good.
 */
#include <pthread.h>

#include "victim.h"

void *__libc_calloc(size_t n, size_t size);

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static volatile int armed;

void *calloc(size_t n, size_t size)
{
	void *p;

	if (!armed)
		return __libc_calloc(n, size);
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	p = __libc_calloc(n, size);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	return p;
}

static void *holder(void *arg)
{
	pthread_mutex_lock(&second);
	thread_started();
	sleep(4);
	pthread_mutex_unlock(&second);
	for (;;)
		pause();
	return arg;
}

static void *nap(void *arg)
{
	free(malloc(100));
	thread_started();
	for (;;)
		usleep(5000);
	return arg;
}

int main(void)
{
	void *volatile block;
	pthread_t t;

	victim_eintr = 1;
	if (pthread_create(&t, NULL, nap, NULL) || pthread_create(&t, NULL, holder, NULL))
		wrong("no thread");
	wait_started(2);
	armed = 1;
	victim_ready();
	while (!victim_over(20))
		;
	/* waits for whoever has the locks, but not for ever: the test would say so */
	block = calloc(1, 10);
	return block == NULL;
}
