// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * fakegoogle: has the C functions that Google's tcmalloc exports, for a page heap of its own: HEAP
 * bytes that were used, of which a release gives back what is free. Everything else is glibc's. It
 * ends itself where one of them is called with anything but what they take.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "victim.h"

#define HEAP ((size_t)48 << 20)
#define LIVE ((size_t)16 << 20)

static unsigned char *heap;
static size_t unmapped;

bool MallocExtension_Internal_GetNumericProperty(const char *name, size_t len, size_t *value);
size_t MallocExtension_Internal_ReleaseMemoryToSystem(size_t bytes);
int MallocExtension_Internal_GetStatsInPbtxt(char *buf, int len);

bool MallocExtension_Internal_GetNumericProperty(const char *name, size_t len, size_t *value)
{
	static const char *const names[] = { "generic.current_allocated_bytes", "generic.heap_size",
					     "tcmalloc.pageheap_free_bytes",
					     "tcmalloc.pageheap_unmapped_bytes",
					     "tcmalloc.central_cache_free" };
	const size_t values[] = { LIVE, HEAP, HEAP - LIVE - unmapped, unmapped, 4096 };

	if (strnlen(name, len + 1) != len)
		wrong("a name of %zu bytes", len);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			*value = values[i];
			return true;
		}
	return false;
}

size_t MallocExtension_Internal_ReleaseMemoryToSystem(size_t bytes)
{
	if (bytes != SIZE_MAX)
		wrong("asked for %zu bytes", bytes);
	if (madvise(heap + LIVE, HEAP - LIVE, MADV_DONTNEED))
		wrong("madvise: %s", strerror(errno));
	unmapped = HEAP - LIVE;
	return unmapped;
}

int MallocExtension_Internal_GetStatsInPbtxt(char *buf, int len)
{
	return snprintf(buf, (size_t)len, "heap_size: %zu\nunmapped: %zu\n", HEAP, unmapped);
}

int main(void)
{
	heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (heap == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	memset(heap, 1, HEAP);
	victim_ready();
	while (!victim_over(20))
		if (heap[0] != 1 || heap[LIVE - 1] != 1)
			wrong("what is in use has changed");
	return 0;
}
