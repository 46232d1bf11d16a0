// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * setuid [fork]: one thread calls setuid(2) all the time, for which glibc interrupts every other
 * thread and waits until it has answered; the others sleep and start threads, and with "fork" one
 * forks. No call may take long. (Together with pthread_cancel(3) glibc 2.36 comes to a standstill
 * by itself.)
 */
#include <pthread.h>
#include <sys/wait.h>

#include "victim.h"

#define LONGEST (3000 * MS)

enum { MOST = 5 };
static uint64_t begun[MOST]; /* by thread: when it began its latest turn */

static uint64_t begin(void *slot)
{
	uint64_t now = now_ns();

	__atomic_store_n((uint64_t *)slot, now, __ATOMIC_SEQ_CST);
	return now;
}

/* Called by the main thread: who hangs cannot say so. */
static void nobody_hangs(int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t was = __atomic_load_n(&begun[i], __ATOMIC_SEQ_CST);

		if (now_ns() > was + 3 * LONGEST)
			wrong("thread %d hangs", i);
	}
}

static void *change(void *arg)
{
	/* glibc installs its handler with the first one */
	if (setuid(getuid()))
		wrong("setuid: %s", strerror(errno));
	thread_started();
	for (;;) {
		uint64_t start = begin(arg);

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
		uint64_t start = begin(arg);
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

static void *fork_and_wait(void *arg)
{
	thread_started();
	for (;;) {
		uint64_t start = begin(arg);
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			void *p = malloc(5000);

			free(p);
			_exit(p == NULL);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			wrong("the child ended with %#x", status);
		if (now_ns() - start > LONGEST)
			wrong("fork took %llu ms", (unsigned long long)((now_ns() - start) / MS));
		usleep(2000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const work[MOST])(void *) = { change, sleep_and_start, sleep_and_start,
						     sleep_and_start, fork_and_wait };
	int n = victim_option(argc, argv, "fork") ? MOST : MOST - 1;

	victim_eintr = 1;
	for (int i = 0; i < n; i++) {
		pthread_t t;

		begin(&begun[i]);
		if (pthread_create(&t, NULL, work[i], &begun[i]))
			wrong("no thread");
	}
	wait_started(n);
	victim_ready();
	while (!victim_over(20))
		nobody_hangs(n);
	_exit(0);
}
