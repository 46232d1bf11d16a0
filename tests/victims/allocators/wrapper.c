// SPDX-License-Identifier: GPL-3.0-or-later
/* A library to preload, whose malloc counts and hands on to glibc's, as tools that record
 * allocations do; with OWN it hands out memory of its own, and takes nothing back. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static unsigned long calls;

#ifdef OWN
enum { POOL = 64 << 20 };
static char *at, *end;

void *malloc(size_t size)
{
	size_t *head;

	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	size = ((size + 15) & ~(size_t)15) + 16;
	if (!at) {
		at = mmap(NULL, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		end = at + POOL;
	}
	if (size > (size_t)(end - at))
		return NULL;
	head = (size_t *)(void *)__atomic_fetch_add((size_t *)(void *)&at, size, __ATOMIC_SEQ_CST);
	*head = size - 16;
	return head + 2;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* fresh memory is zero */
}

void *realloc(void *p, size_t size)
{
	void *q = malloc(size);
	size_t old = p ? ((size_t *)p)[-2] : 0;

	if (q && p)
		memcpy(q, p, old < size ? old : size);
	return q;
}
#else
void *malloc(size_t size)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

void free(void *p)
{
	__libc_free(p);
}

void *calloc(size_t n, size_t size)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_realloc(p, size);
}
#endif
