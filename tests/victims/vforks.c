// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * vforks FIFO: the main thread, which owns an arena, is in vfork(2) from the first byte on its
 * standard input until a byte comes from FIFO: a wait that cannot be interrupted. A second thread
 * sleeps and has never allocated anything.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "victim.h"

static void *sleeper(void *arg)
{
	thread_started();
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, status = 1;
	volatile pid_t child;
	pthread_t t;
	char c;

	if (fd < 0)
		wrong("usage: vforks FIFO");
	malloc_once(100);
	if (pthread_create(&t, NULL, sleeper, NULL))
		wrong("no thread");
	wait_started(1);
	victim_ready();
	if (read(STDIN_FILENO, &c, 1) != 1)
		wrong("nothing to begin with");
	child = vfork();
	if (child == 0)
		_exit(read(fd, &c, 1) != 1);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		wrong("the child has ended with %#x", (unsigned)status);
	while (!victim_over(1000))
		;
	return 0;
}
