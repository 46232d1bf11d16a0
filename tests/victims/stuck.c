// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * stuck: the lock of glibc's main arena is taken and not given back until a byte comes in; then all
 * goes on and "ready" is said again. The threads have other arenas and work all the time.
 */
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "victim.h"

/* malloc/malloc.c, glibc 2.27 and newer: the first bin, to which a free block's links point, is 96
 * bytes behind the start of its arena, which begins with the lock (0 free, 2 taken and waited for).
 */
#define FIRST_BIN 96

static int *find_lock(void)
{
	uintptr_t *block = malloc(5000), *fence = malloc(100);
	volatile uintptr_t at = (uintptr_t)block;
	uintptr_t bin;

	if (!block || !fence)
		wrong("no memory");
	free(block);
	/* what is free stays readable */
	bin = *(uintptr_t *)at;
	free(fence);
	return (int *)(bin - FIRST_BIN);
}

static void *work(void *arg)
{
	char *first = malloc(100000);

	thread_started();
	for (;;) {
		char *p = malloc(5000);

		if (!first || !p)
			wrong("no memory");
		p[0] = p[4999] = 1;
		usleep(2000);
		free(p);
	}
	return arg;
}

int main(void)
{
	int *lock, open = 0;
	char c;

	victim_eintr = 1;
	lock = find_lock();
	for (int i = 0; i < 3; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, NULL))
			wrong("no thread");
	}
	wait_started(3);
	if (!__atomic_compare_exchange_n(lock, &open, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		wrong("where the arena's lock should be stands %#x", (unsigned)open);
	victim_ready();
	while (read(STDIN_FILENO, &c, 1) < 0)
		if (errno != EINTR)
			wrong("read: %s", strerror(errno));
	__atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0);
	free(malloc(200000));
	victim_ready();
	while (!victim_over(20))
		free(malloc(5000));
	_exit(0);
}
