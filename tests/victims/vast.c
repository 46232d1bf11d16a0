// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * vast SHAPE [NUMBER]: a process that is large in one way; says ready and does nothing until its
 * standard input ends.
 *   ordered MIB, shuffled MIB  a heap of small blocks, every second freed, by address or at random
 *   live MIB                   nearly all of the same blocks are in use
 *   cached MIB                 blocks of 32 bytes: the freed ones are in a fastbin
 *   spread MIB                 the heap of ordered in the arenas of eight threads
 *   arenas N                   N threads with an arena each
 *   mappings N                 N mappings that the kernel cannot merge
 *   holes MIB                  a heap with blocks that were never touched, freed ones whose pages
 *                              the kernel may take (MADV_FREE), and ones without pages; its thread
 *                              sleeps in one call until the end
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "victim.h"

#define MIB    ((size_t)1 << 20)
#define PAGE   ((uintptr_t)4096)
#define SPREAD 8
#define SORTED ((size_t)70000) /* of no bin: a malloc of it sorts what was freed into theirs */

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

static void *take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		wrong("no memory");
	memset(p, 0xa5, size);
	return p;
}

/* For pointers, outside of the heap. */
static void **table(size_t n)
{
	void *p = mmap(NULL, n * sizeof(void *), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	return p;
}

static void shuffle(void **v, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = random_next(state) % i;
		void *t = v[i - 1];

		v[i - 1] = v[k];
		v[k] = t;
	}
}

struct plan {
	size_t bytes;	     /* of chunks */
	size_t least, kinds; /* block sizes: least, and 16 more for each kind */
	size_t each;	     /* one of so many is freed */
	int at_random;
	uint64_t seed;
};

/* Blocks from 24 to 504 bytes, as programs use them. */
static struct plan small_blocks(size_t bytes, size_t each)
{
	return (struct plan){ .bytes = bytes, .least = 24, .kinds = 31, .each = each, .seed = 1 };
}

static void build(struct plan *p)
{
	size_t max = p->bytes / (p->least + 8) / p->each + 1, n = 0, done = 0;
	void **gone = table(max);

	for (size_t i = 0; done < p->bytes; i++) {
		size_t size = p->least + 16 * (random_next(&p->seed) % p->kinds);
		void *b = take(size);

		done += size + 8;
		if (i % p->each == 0 && n < max)
			gone[n++] = b;
	}
	take(p->least); /* nothing that is freed becomes a part of top */
	if (p->at_random)
		shuffle(gone, n, &p->seed);
	for (size_t i = 0; i < n; i++)
		free(gone[i]);
	munmap(gone, max * sizeof(void *));
}

/* One call looks at ten thousand of the unsorted at most (MAX_ITERS of malloc). */
static void sort_bins(size_t freed)
{
	for (size_t i = 0; i <= freed / 10000; i++)
		free(take(SORTED));
}

static void build_sorted(struct plan *p)
{
	build(p);
	sort_bins(p->bytes / 40 / p->each);
}

static void ordered(size_t mib)
{
	struct plan p = small_blocks(mib * MIB, 2);

	build_sorted(&p);
}

static void shuffled(size_t mib)
{
	struct plan p = small_blocks(mib * MIB, 2);

	p.at_random = 1;
	build_sorted(&p);
}

static void live(size_t mib)
{
	struct plan p = small_blocks(mib * MIB, 1000);

	build_sorted(&p);
}

static void cached(size_t mib)
{
	struct plan p = { .bytes = mib * MIB, .least = 24, .kinds = 1, .each = 2 };

	build(&p);
}

/* ---- threads */

static pthread_barrier_t all_in, built;

static void *own_arena(void *arg)
{
	struct plan *p = arg;
	void *first = take(24);

	/* each has an arena by now: as long as all live, none is given to another */
	pthread_barrier_wait(&all_in);
	free(first);
	build_sorted(p);
	pthread_barrier_wait(&built);
	for (;;)
		pause();
	return NULL;
}

static void threads(size_t n, size_t bytes_each)
{
	struct plan *p = calloc(n, sizeof(*p));
	pthread_attr_t attr;

	if (!p || pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 16 * PAGE))
		wrong("no memory");
	mallopt(M_ARENA_MAX, (int)n + 1);
	pthread_barrier_init(&all_in, NULL, (unsigned)n);
	pthread_barrier_init(&built, NULL, (unsigned)n + 1);
	for (size_t i = 0; i < n; i++) {
		pthread_t t;

		p[i] = small_blocks(bytes_each, 2);
		p[i].seed = i;
		if (pthread_create(&t, &attr, own_arena, &p[i]))
			wrong("no thread");
	}
	pthread_barrier_wait(&built);
}

static void spread(size_t mib)
{
	threads(SPREAD, mib * MIB / SPREAD);
}

static void arenas(size_t n)
{
	threads(n, MIB / 4);
}

/* ---- mappings */

static void mappings(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* neighbours differ in what may be done with them */
		int prot = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
		char *p = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			wrong("mapping %zu: %s", i, strerror(errno));
		if (prot & PROT_WRITE)
			*p = 1;
	}
}

/* ---- holes */

/* The pages that lie in a block as a whole. */
static void advise(char *block, size_t size, int what)
{
	uintptr_t from = ((uintptr_t)block + PAGE - 1) & ~(PAGE - 1);
	uintptr_t to = ((uintptr_t)block + size) & ~(PAGE - 1);

	if (madvise((void *)from, to - from, what))
		wrong("madvise: %s", strerror(errno));
}

static void holes(size_t mib)
{
	const size_t size = 64 * 1024;
	size_t n = mib * MIB / size;
	void **b = table(n);

	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	for (size_t i = 0; i < n; i++) {
		b[i] = malloc(size);
		if (!b[i])
			wrong("no memory");
		/* a quarter is never touched */
		if (i % 4)
			memset(b[i], 1, size);
		take(100);
	}
	for (size_t i = 0; i < n; i++) {
		if (i % 4 == 1)
			advise(b[i], size, MADV_FREE);
		if (i % 4 == 2)
			advise(b[i], size, MADV_DONTNEED);
		if (i % 8 < 4)
			free(b[i]);
	}
	/* a block and a mapping that nobody has touched */
	if (!malloc(30 * MIB) || !malloc(256 * MIB))
		wrong("no memory");
}

static const struct {
	const char *name;
	void (*build)(size_t number);
} shapes[] = {
	{ "ordered", ordered }, { "shuffled", shuffled }, { "live", live },
	{ "cached", cached },	{ "spread", spread },	  { "arenas", arenas },
	{ "holes", holes },	{ "mappings", mappings },
};

int main(int argc, char **argv)
{
	const char *want = argc > 1 ? argv[1] : "";
	size_t number = argc > 2 ? strtoul(argv[2], NULL, 10) : 64, i = 0;
	char c;

	while (i < sizeof(shapes) / sizeof(shapes[0]) && strcmp(shapes[i].name, want) != 0)
		i++;
	if (i == sizeof(shapes) / sizeof(shapes[0]))
		wrong("no shape \"%s\"", want);
	shapes[i].build(number);
	victim_ready();
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
