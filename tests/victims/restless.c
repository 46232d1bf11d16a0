// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * restless [two]: executes itself anew every few milliseconds until its standard input ends, with
 * "two" from a second thread, which takes the place of the first one. It says "ready" once.
 */
#include <pthread.h>

#include "victim.h"

static char **args;

static void *go(void *arg)
{
	char *again[4] = { args[0], "again", NULL, NULL };

	for (int i = 1; args[i]; i++)
		if (!strcmp(args[i], "two"))
			again[2] = "two";
	usleep((unsigned)(now_ns() / 1000 % 12000));
	free(malloc(3000));
	execv("/proc/self/exe", again);
	wrong("execv: %s", strerror(errno));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	args = argv;
	victim_eintr = 1;
	if (victim_option(argc, argv, "again"))
		prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
	else
		victim_ready();
	if (victim_over(0))
		return 0;
	if (!victim_option(argc, argv, "two"))
		go(NULL);
	if (pthread_create(&t, NULL, go, NULL))
		wrong("no thread");
	for (;;)
		if (victim_over(3))
			_exit(0);
}
