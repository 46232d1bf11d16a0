// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * dying: threads that sleep, and a process that goes away in the middle of a session, as soon as
 * one byte comes in: 'k' by SIGKILL, 'a' by abort(3), 't' by an exit(3) of another thread than the
 * first, which has ended before; by any other it exits 0.
 */
#include <pthread.h>
#include <signal.h>

#include "victim.h"

static void *nap(void *arg)
{
	thread_started();
	for (;;) {
		struct timespec ts = { .tv_nsec = 20 * MS };

		free(malloc(1000));
		nanosleep(&ts, NULL);
	}
	return arg;
}

static void *leave(void *arg)
{
	usleep(1000);
	exit(0);
	return arg;
}

static void leave_otherwise(char how)
{
	pthread_t t;

	switch (how) {
	case 'k':
		raise(SIGKILL);
		break;
	case 'a':
		abort();
	case 't':
		if (pthread_create(&t, NULL, leave, NULL))
			wrong("no thread");
		pthread_exit(NULL);
	default:
		break;
	}
}

int main(void)
{
	char c = 0;

	for (int i = 0; i < 3; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, nap, NULL))
			wrong("no thread");
	}
	wait_started(3);
	victim_ready();
	if (read(STDIN_FILENO, &c, 1) < 0)
		wrong("read: %s", strerror(errno));
	leave_otherwise(c);
	return 0;
}
