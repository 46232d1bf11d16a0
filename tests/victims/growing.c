// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Grows when it is told to, by a letter on its standard input, and says "done" then. One thread.
 *
 *   growing MIB   by so much each time: l in use; t free in the heap; u what was free is used
 *                 again and kept; m shared memory
 */
#include <sys/mman.h>
#include "victim.h"

#define MIB   (1024ul * 1024)
#define BLOCK (32ul * 1024) /* below any mmap threshold */

static size_t step;

/* Blocks of n bytes in all, and behind them one that keeps the end of the heap where it is. */
static void **take(size_t n)
{
	void **block = calloc(n / BLOCK, sizeof(*block));

	for (size_t i = 0; block && i < n / BLOCK; i++) {
		block[i] = malloc(BLOCK - 64);
		if (!block[i])
			wrong("no memory");
		memset(block[i], 0x5a, BLOCK - 64);
	}
	if (!block || !malloc(64))
		wrong("no memory");
	return block;
}

static void take_and_free(size_t n)
{
	void **block = take(n);

	for (size_t i = 0; i < n / BLOCK; i++)
		free(block[i]);
	free(block);
}

static void map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	memset(p, 0x5a, n);
}

static void act(char what)
{
	static size_t retained;

	switch (what) {
	case 'l':
		take(step);
		break;
	case 't':
		retained += step;
		take_and_free(retained);
		break;
	case 'u':
		take(retained);
		break;
	case 'm':
		map(step);
		break;
	default:
		wrong("what is '%c'?", what);
	}
	if (write(STDOUT_FILENO, "done\n", 5) != 5)
		wrong("write: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	char what;
	ssize_t n;

	step = (argc > 1 ? strtoul(argv[1], NULL, 10) : 8) * MIB;
	victim_ready();
	while ((n = read(STDIN_FILENO, &what, 1)) > 0)
		act(what);
	if (n < 0)
		wrong("read: %s", strerror(errno));
	return 0;
}
