// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef JEMALLOC_HEAP_H
#define JEMALLOC_HEAP_H
/*
 * Memory of the jemalloc that this is linked with, by the names that its symbols have (PREFIX, none
 * without one): MIB of it are filled and freed again, so that jemalloc keeps them, but for a pin.
 * NOT_JEMALLOC: of another allocator.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef PREFIX
#define PREFIX
#endif
#define PASTE2(a, b) a##b
#define PASTE(a, b)  PASTE2(a, b)
#define OWN(name)    PASTE(PREFIX, name)

extern void *OWN(malloc)(size_t size);
extern void OWN(free)(void *p);
#ifndef NOT_JEMALLOC
/* Never called: it brings the rest of jemalloc with it, as a program that asks for its figures. */
extern int OWN(mallctl)(const char *name, void *old, size_t *old_len, void *new, size_t new_len);
extern void OWN(malloc_stats_print)(void (*cb)(void *, const char *), void *arg, const char *opts);
void *volatile kept[] = { (void *)OWN(mallctl), (void *)OWN(malloc_stats_print) };
#endif

enum { BLOCK = 16384, PIN = 64, BLOCKS_MAX = 16384 };
static unsigned char *pin;

static inline int heap_fill(int mib)
{
	static unsigned char *block[BLOCKS_MAX];
	size_t n = (size_t)mib * 1048576 / BLOCK;

	pin = OWN(malloc)(PIN);
	if (!pin || n > BLOCKS_MAX)
		return -1;
	memset(pin, 0x5a, PIN);
	for (size_t i = 0; i < n; i++) {
		block[i] = OWN(malloc)(BLOCK);
		if (!block[i])
			return -1;
		memset(block[i], (int)i | 1, BLOCK);
	}
	for (size_t i = 0; i < n; i++)
		OWN(free)(block[i]);
	return 0;
}

/* Blocks that no cache has: each takes the arena's locks. */
static inline int heap_churn(void)
{
	for (size_t i = 0; i < 1000; i++) {
		void *volatile p = OWN(malloc)(100000 + i % 8 * 40000);

		if (!p)
			return -1;
		OWN(free)(p);
	}
	return 0;
}

/* Is it whole, and does it still give memory? */
static inline int heap_check(void)
{
	void *volatile p = OWN(malloc)(1000);

	if (!p)
		return -1;
	OWN(free)(p);
	for (size_t i = 0; i < PIN; i++)
		if (pin[i] != 0x5a)
			return -1;
	return 0;
}
#endif
