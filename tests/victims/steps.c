// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * steps: for each letter on its standard input it does one thing and says "done".
 * a: STEP bytes more are allocated, in small blocks full of MARK. f: all of them are freed, below
 * one that stays. m: STEP bytes are mapped and written. t: one thread more, named "late".
 */
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

#define STEP   ((size_t)48 << 20)
#define BLOCK  ((size_t)16 << 10)
#define BLOCKS (STEP / BLOCK)
#define MARK   "what the program has stored"

static void *block[8 * BLOCKS];
static size_t blocks;
static void *volatile last;

static void allocate(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		char *p = malloc(BLOCK);

		if (!p || blocks == sizeof(block) / sizeof(block[0]))
			wrong("no memory");
		for (size_t at = 0; at + sizeof(MARK) <= BLOCK; at += sizeof(MARK))
			memcpy(p + at, MARK, sizeof(MARK));
		block[blocks++] = p;
	}
	last = malloc(64);
}

static void release(void)
{
	while (blocks)
		free(block[--blocks]);
}

static void map(void)
{
	char *p = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	memset(p, 1, STEP);
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_NAME, "late");
	thread_started();
	for (;;)
		pause();
	return arg;
}

static void start(int n)
{
	pthread_t t;

	if (pthread_create(&t, NULL, sleeper, NULL))
		wrong("no thread");
	wait_started(n);
}

int main(void)
{
	int threads = 0;
	char c;

	victim_ready();
	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (c == 'a')
			allocate();
		else if (c == 'f')
			release();
		else if (c == 'm')
			map();
		else if (c == 't')
			start(++threads);
		else
			wrong("no step is named %c", c);
		if (write(STDOUT_FILENO, "done\n", 5) != 5)
			wrong("write: %s", strerror(errno));
	}
	return 0;
}
