// SPDX-License-Identifier: GPL-3.0-or-later
/* again [two]: executes itself anew, at other addresses, for every byte on its standard input. With
 * "two" there is a second thread. */
#include <pthread.h>

#include "victim.h"

static void *nap(void *arg)
{
	thread_started();
	for (;;) {
		free(malloc(100));
		usleep(2000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int two = victim_option(argc, argv, "two");
	pthread_t t;
	ssize_t n;
	char c;

	free(malloc(100));
	if (two && pthread_create(&t, NULL, nap, NULL))
		wrong("no thread");
	wait_started(two);
	victim_ready();
	n = read(STDIN_FILENO, &c, 1);
	if (n < 0)
		wrong("read: %s", strerror(errno));
	if (n == 1)
		execv("/proc/self/exe", argv);
	return n != 0;
}
