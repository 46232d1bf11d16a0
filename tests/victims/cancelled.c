// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * cancelled [MS]: threads that sleep until they are cancelled, one after another, MS (1) after the
 * one before, and are made anew.
 * Their cleanup handlers must run, and whatever they held must be free again: nothing may hang. The
 * other two threads wait in a call that makes them the second choice.
 */
#include <pthread.h>
#include <sys/epoll.h>

#include "victim.h"

enum { SLEEPERS = 16, LONGEST_MS = 9000 };

static int pace = 1;
static uint64_t begun; /* the turn of the thread that cancels */
static int cleaned;

static void clean(void *block)
{
	free(block);
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static void *sleep_for_ever(void *arg)
{
	void *volatile block = malloc(1000);

	pthread_cleanup_push(clean, block);
	thread_started();
	for (;;)
		sleep(100);
	pthread_cleanup_pop(1);
	return arg;
}

static pthread_t start(void *(*work)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, work, NULL))
		wrong("no thread");
	return t;
}

static void *cancel(void *arg)
{
	int nothing = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev;
	pthread_t t[SLEEPERS];

	for (int i = 0; i < SLEEPERS; i++)
		t[i] = start(sleep_for_ever);
	for (int turn = 0;; turn++) {
		void *end = NULL;
		int i = turn % SLEEPERS;

		__atomic_store_n(&begun, now_ns(), __ATOMIC_SEQ_CST);
		(void)!epoll_wait(nothing, &ev, 1, pace);
		if (pthread_cancel(t[i]) || pthread_join(t[i], &end) || end != PTHREAD_CANCELED)
			wrong("thread %d was not cancelled", turn);
		if (__atomic_load_n(&cleaned, __ATOMIC_SEQ_CST) != turn + 1)
			wrong("%d of %d threads have cleaned up", cleaned, turn + 1);
		t[i] = start(sleep_for_ever);
		wait_started(SLEEPERS + turn + 1);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (argc > 1)
		pace = atoi(argv[1]);
	victim_eintr = 1;
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &ev))
		wrong("epoll: %s", strerror(errno));
	begun = now_ns();
	start(cancel);
	/* glibc installs its handler with the first one */
	wait_started(SLEEPERS + 1);
	victim_ready();
	for (;;) {
		int n = epoll_wait(fd, &ev, 1, 50);

		if (n < 0 && errno != EINTR)
			wrong("epoll_wait: %s", strerror(errno));
		if (n > 0 && victim_over(0))
			_exit(0);
		if (now_ns() > __atomic_load_n(&begun, __ATOMIC_SEQ_CST) + LONGEST_MS * MS)
			wrong("cancelling a thread takes for ever");
	}
}
