// SPDX-License-Identifier: GPL-3.0-or-later
/* dying: threads that sleep, and a process that exits 0 as soon as one byte comes in: it goes away
 * in the middle of a session. */
#include <pthread.h>

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

int main(void)
{
	char c;

	for (int i = 0; i < 3; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, nap, NULL))
			wrong("no thread");
	}
	wait_started(3);
	victim_ready();
	if (read(STDIN_FILENO, &c, 1) < 0)
		wrong("read: %s", strerror(errno));
	return 0;
}
