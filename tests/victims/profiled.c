// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * profiled SHAPE FILE: allocates through many functions and dumps jemalloc's heap profile to FILE.
 * Shapes: flat, deep, small, threads, freed. Run with MALLOC_CONF=prof:true,lg_prof_sample:N.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jemalloc's, where it is linked. */
extern int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));

#define APART	__attribute__((noinline, noclone))
#define BLOCKS	200000
#define THREADS 4

static void *kept[BLOCKS];
static unsigned used;
static volatile unsigned touched;

/* Nothing that comes before this is the last thing that a function does. */
APART static void keep(void *p)
{
	unsigned i = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);

	if (!p || i >= BLOCKS)
		abort();
	kept[i] = p;
	touched = i;
}

#define LEAF(n)                                                                                    \
	APART static void *leaf_##n(size_t size)                                                   \
	{                                                                                          \
		void *p = malloc(size + (size_t)(n)*48);                                           \
		keep(p);                                                                           \
		return p;                                                                          \
	}
#define TEN(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
TEN(LEAF, 1)
TEN(LEAF, 2)
TEN(LEAF, 3)
TEN(LEAF, 4)

#define NAME(n) leaf_##n,
static void *(*const leaves[])(size_t) = { TEN(NAME, 1) TEN(NAME, 2) TEN(NAME, 3) TEN(NAME, 4) };
#define LEAVES (sizeof(leaves) / sizeof(leaves[0]))

APART static void *dispatch_even(unsigned i, size_t size)
{
	void *p = leaves[i % LEAVES](size);

	touched = i;
	return p;
}

APART static void *dispatch_odd(unsigned i, size_t size)
{
	void *p = leaves[i * 7 % LEAVES](size);

	touched = i + 1;
	return p;
}

APART static void *descend(unsigned depth, unsigned i, size_t size)
{
	void *p = depth	  ? descend(depth - 1, i, size)
		  : i % 2 ? dispatch_odd(i, size)
			  : dispatch_even(i, size);

	touched = depth;
	return p;
}

APART static void work_flat(unsigned from)
{
	for (unsigned i = from; i < from + 8000; i++)
		descend(i % 3, i, 1000 + i % 900);
	touched = 0;
}

APART static void work_deep(void)
{
	for (unsigned i = 0; i < 8000; i++)
		descend(i % 60, i, 300 + i % 5000);
	touched = 0;
}

APART static void work_small(void)
{
	for (unsigned i = 0; i < 100000; i++)
		descend(i % 5, i / 3, 8 + i % 64);
	touched = 0;
}

APART static void work_freed(void)
{
	for (unsigned i = 0; i < 20000; i++) {
		void *p = descend(1, i, i % 50 ? 500 : 300000);

		if (i % 3)
			free(p);
	}
	touched = 0;
}

static void *thread(void *arg)
{
	work_flat(*(unsigned *)arg);
	return NULL;
}

APART static void work_threads(void)
{
	pthread_t t[THREADS];
	unsigned from[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		from[i] = i * 11;
		if (pthread_create(&t[i], NULL, thread, &from[i]))
			abort();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	touched = 0;
}

int main(int argc, char **argv)
{
	const char *shape = argc > 2 ? argv[1] : "";

	if (!strcmp(shape, "flat"))
		work_flat(0);
	else if (!strcmp(shape, "deep"))
		work_deep();
	else if (!strcmp(shape, "small"))
		work_small();
	else if (!strcmp(shape, "threads"))
		work_threads();
	else if (!strcmp(shape, "freed"))
		work_freed();
	else
		return 2;
	if (!mallctl || mallctl("prof.dump", NULL, NULL, &argv[2], sizeof(argv[2])))
		return 3;
	return 0;
}
