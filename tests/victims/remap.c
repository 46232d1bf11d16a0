// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * remap: a thread that makes the process's mappings grow, shrink, merge and split all the time,
 * some hundred of them, as a collector does that gives and takes parts of its heap.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

enum { PAGE = 4096, GROUPS = 300, GROUP = 4 };

static void *change(void *arg)
{
	char *heap = mmap(NULL, (size_t)GROUPS * GROUP * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)arg;
	if (heap == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	thread_started();
	/* the first page of each group stays writable, so that groups stay apart */
	for (int i = 0; i < GROUPS; i++)
		if (mprotect(heap + (size_t)i * GROUP * PAGE, PAGE, PROT_READ | PROT_WRITE))
			wrong("mprotect: %s", strerror(errno));
	for (size_t turn = 0;; turn++) {
		char *group = heap + (turn * 7 % GROUPS) * GROUP * PAGE;

		for (size_t n = 2; n < GROUP; n++)
			if (mprotect(group + PAGE, (n - 1) * PAGE, PROT_READ | PROT_WRITE))
				wrong("mprotect: %s", strerror(errno));
		if (group[PAGE])
			wrong("a page has changed");
		if (mprotect(group + PAGE, (GROUP - 1) * PAGE, PROT_NONE))
			wrong("mprotect: %s", strerror(errno));
	}
	return NULL;
}

int main(void)
{
	pthread_t th;

	if (pthread_create(&th, NULL, change, NULL))
		wrong("pthread_create failed");
	wait_started(1);
	victim_ready();
	while (!victim_over(5))
		free(malloc(1000));
	return 0;
}
