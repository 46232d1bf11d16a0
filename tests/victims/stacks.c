// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * stacks KIND: threads whose stacks are not what one expects. small: all but the main one as small
 * as glibc allows (PTHREAD_STACK_MIN), busy with malloc. fiber: threads that run on malloc'ed
 * stacks (swapcontext), the main one too. tls: a mebibyte of thread-local data, all of it checked.
 * hugetls: eight of them.
 */
#include <limits.h>
#include <pthread.h>
#include <ucontext.h>

#include "victim.h"

#define THREADS 4
#define TLS	(1 << 20)
#define FIBER	(64 * 1024)

#ifdef HUGE_TLS
#define TLS_COPIES 8
#else
#define TLS_COPIES 1
#endif

#ifdef WITH_TLS
static __thread unsigned char data[TLS_COPIES * TLS] = { 7 };

static void check_data(unsigned char mark)
{
	if (data[0] != 7)
		wrong("the first byte is %d", data[0]);
	for (size_t i = 1; i < sizeof(data); i += 4096) {
		if (data[i] && data[i] != mark)
			wrong("byte %zu of thread-local data is %d", i, data[i]);
		data[i] = mark;
	}
}
#else
static void check_data(unsigned char mark)
{
	(void)mark;
}
#endif

static int over;

static void work(unsigned n)
{
	char *p[8];

	for (unsigned i = 0; i < 8; i++)
		p[i] = memset(malloc(500 + 700 * ((n + i) % 9)), (int)n, 100);
	for (unsigned i = 0; i < 8; i++) {
		if ((unsigned char)p[i][99] != (unsigned char)n)
			wrong("a block has changed");
		free(p[i]);
	}
	check_data((unsigned char)((n & 0) + 9));
}

static void *thread(void *arg)
{
	thread_started();
	for (unsigned n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
		work(n);
		usleep(1000);
	}
	return arg;
}

/* ---- fibers */

static __thread ucontext_t home, fiber;

static void fiber_body(void)
{
	for (unsigned n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
		work(n);
		usleep(1000);
		if (n % 64 == 63)
			swapcontext(&fiber, &home);
	}
}

static void run_fiber(void (*between)(void))
{
	char *stack = malloc(FIBER);

	if (!stack || getcontext(&fiber))
		wrong("no fiber");
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = FIBER;
	fiber.uc_link = &home;
	makecontext(&fiber, fiber_body, 0);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		swapcontext(&home, &fiber);
		if (between)
			between();
	}
	free(stack);
}

static void *fiber_thread(void *arg)
{
	thread_started();
	run_fiber(NULL);
	return arg;
}

static void ask_over(void)
{
	if (victim_over(0))
		__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	int fibers = victim_option(argc, argv, "fiber");
	pthread_t th[THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (victim_option(argc, argv, "small") &&
	    pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)))
		wrong("stack size");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&th[i], &attr, fibers ? fiber_thread : thread, NULL))
			wrong("pthread_create: %s", strerror(errno));
	wait_started(THREADS);
	victim_ready();
	if (fibers) {
		run_fiber(ask_over);
	} else {
		while (!victim_over(20))
			work(3);
		__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	return 0;
}
