// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * shapes SHAPE: builds a heap of one shape, says ready, stays quiet (no thread allocates or frees)
 * until its standard input ends, and then checks the content of every block in use and that the
 * heap still serves: blocks of all sizes are taken and given back. Its report has malloc's own
 * numbers of that heap (numbers.h).
 */
#include <limits.h>
#include <pthread.h>

#include "numbers.h"

#define KIB	 ((size_t)1024)
#define MIB	 (1024 * KIB)
#define PAGE	 ((uintptr_t)4096)
#define LIVE_MAX 400000
#define HUGE	 (2 * MIB)

/* Blocks in use: all bytes hold fill. They are listed outside of the heap. */
static struct live {
	unsigned char *at;
	unsigned size;
	unsigned char fill;
} * live;
static size_t lives;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		wrong("no memory");
	memset(p, 0xa5, size);
	return p;
}

/* One block that stays. */
static void pin(size_t size)
{
	struct live *l;

	pthread_mutex_lock(&lock);
	if (lives == LIVE_MAX)
		wrong("too many blocks");
	l = &live[lives++];
	*l = (struct live){ take(size), (unsigned)size, (unsigned char)(lives * 7 + 1) };
	memset(l->at, l->fill, size);
	pthread_mutex_unlock(&lock);
}

static void *table(size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
	return p;
}

/* n blocks, after every each-th a pin of pin_size; then the blocks that step selects are freed. */
static void blocks(size_t n, size_t size, size_t each, size_t pin_size, size_t step)
{
	void **b = table(n, sizeof(*b));

	for (size_t i = 0; i < n; i++) {
		b[i] = take(size);
		if (each && i % each == each - 1)
			pin(pin_size);
	}
	for (size_t i = 0; i < n; i += step)
		free(b[i]);
}

static void big_top(void)
{
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

/* ---- shapes of one thread */

static void pins(void)
{
	blocks(3000, 16 * KIB, 10, KIB, 1);
}

static void second(void)
{
	blocks(200000, 200, 0, 0, 2);
	pin(64);
}

/* Only malloc_consolidate makes whole pages out of these. */
static void fast(void)
{
	mallopt(M_MXFAST, 160);
	blocks(60000, 100, 1000, 200, 1);
	blocks(60000, 140, 1000, 200, 1);
}

static void top(void)
{
	big_top();
	blocks(6000, 10000, 0, 0, 1);
}

/* What is free ends at top, and so becomes a part of it. */
static void fasttop(void)
{
	big_top();
	mallopt(M_MXFAST, 160);
	pin(64);
	blocks(50000, 100, 0, 0, 1);
}

static void foreign(void)
{
	big_top();
	blocks(500, 16 * KIB, 10, KIB, 1);
	if (sbrk(100) == (void *)-1 || sbrk(70000) == (void *)-1)
		wrong("sbrk: %s", strerror(errno));
	blocks(2000, 20 * KIB, 10, KIB, 1);
}

/* Somebody else's memory ends the break area: top stays. */
static void behind(void)
{
	foreign();
	if (sbrk(12345) == (void *)-1)
		wrong("sbrk: %s", strerror(errno));
}

static void map_at_brk(int prot)
{
	uintptr_t end = ((uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1);

	if (mmap((void *)end, 16 * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) != (void *)end)
		wrong("mmap: %s", strerror(errno));
	if (prot & PROT_WRITE)
		memset((void *)end, 1, 16 * PAGE);
}

/* The break cannot move: the main arena goes on in mappings. */
static void blocked(void)
{
	big_top();
	blocks(300, 16 * KIB, 10, KIB, 1);
	map_at_brk(PROT_NONE);
	blocks(2000, 20 * KIB, 10, KIB, 1);
}

/* Memory of somebody else that the kernel shows as one mapping with the break area. */
static void merged(void)
{
	top();
	map_at_brk(PROT_READ | PROT_WRITE);
}

static void again(void)
{
	void *more[200];

	pins();
	for (size_t i = 0; i < 200; i++) {
		more[i] = take(30 * KIB);
		pin(500);
	}
	malloc_trim(0);
	for (size_t i = 0; i < 200; i += 3)
		free(more[i]);
}

static void lockall(void)
{
	big_top();
	pins();
	blocks(8, MIB, 0, 0, 1);
	if (mlockall(MCL_CURRENT))
		wrong("mlockall: %s", strerror(errno));
}

static void lockpart(void)
{
	char *from = sbrk(0), *at;

	pins();
	at = (char *)(((uintptr_t)from + 8 * MIB) & ~(PAGE - 1));
	if (mlock(at, 8 * MIB))
		wrong("mlock: %s", strerror(errno));
}

static void untouched(void)
{
	unsigned char *b[400];
	volatile unsigned char sum = 0;

	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	for (size_t i = 0; i < 400; i++) {
		b[i] = i % 2 ? calloc(1, 100 * KIB) : malloc(100 * KIB);
		if (!b[i])
			wrong("no memory");
		/* one page of seven written, one read, the others never touched */
		for (size_t k = 0; k < 100 * KIB; k += 7 * PAGE)
			b[i][k] = 1;
		for (size_t k = 3 * PAGE; k < 100 * KIB; k += 7 * PAGE)
			sum += b[i][k];
		if (i % 5 == 4)
			pin(KIB);
	}
	for (size_t i = 0; i < 400; i++)
		free(b[i]);
}

/* The break area and what is around asks for huge pages. */
static void advised(void)
{
	char *at;

	big_top();
	at = malloc(20 * MIB); /* the area is there, but touched only below */
	if (!at)
		wrong("no memory");
	*(volatile char *)at = 1;
	free(at);
	at = (char *)(((uintptr_t)sbrk(0) - 18 * MIB) & ~(HUGE - 1));
	if (madvise(at, 16 * MIB, MADV_HUGEPAGE))
		wrong("madvise: %s", strerror(errno));
	blocks(3000, 16 * KIB, 10, KIB, 1);
}

/* The kernel gives huge pages everywhere, in heaps of threads too, and glibc knows nothing of it.
 */
static void advise_heap(void *in_it)
{
	char *heap = (char *)((uintptr_t)in_it & ~(64 * MIB - 1));

	if (madvise(heap, 64 * MIB, MADV_HUGEPAGE))
		wrong("madvise: %s", strerror(errno));
}

static void huge(void)
{
	big_top();
	blocks(3000, 16 * KIB, 300, KIB, 1);
	blocks(700, 16 * KIB, 0, 0, 1);
}

/* free() trims top itself, down to the threshold; what is left of it is more than a page. */
static void threshold(void)
{
	mallopt(M_TRIM_THRESHOLD, 3 << 20);
	blocks(3000, 16 * KIB, 10, KIB, 1);
	blocks(190, 16 * KIB, 0, 0, 1);
}

/* Every growth and every trim of the break leaves 8 MiB of top. */
static void toppad(void)
{
	mallopt(M_TOP_PAD, 8 << 20);
	blocks(3000, 16 * KIB, 10, KIB, 1);
	blocks(600, 16 * KIB, 0, 0, 1);
}

/* All sizes that a thread's cache takes, more of each than it takes. */
static void cachefull(void)
{
	for (size_t size = 24; size <= 1032; size += 16)
		blocks(40, size, 8, 40, 1);
}

/* Blocks that are mappings of their own: plain, aligned, grown, and two thirds of them given back.
 */
static void mmapped(void)
{
	void *b[30];

	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	for (size_t i = 0; i < 30; i++) {
		size_t size = 150 * KIB + i * i * 7001;

		b[i] = i % 5 == 4 ? memalign((size_t)4096 << i % 6, size) : malloc(size);
		if (b[i] && i % 7 == 6)
			b[i] = realloc(b[i], 3 * size);
		if (!b[i])
			wrong("no memory");
		memset(b[i], 1, size);
	}
	blocks(300, 16 * KIB, 10, KIB, 1);
	for (size_t i = 0; i < 30; i++)
		if (i % 3)
			free(b[i]);
}

/* More than 4 GiB in the main arena, and as much in mappings; hardly a page of it is touched. */
static void vast(void)
{
	char *b[12];

	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_MAX, 0);
	for (size_t i = 0; i < 12; i++) {
		if (i == 6)
			mallopt(M_MMAP_MAX, 65536);
		b[i] = malloc(900 * MIB);
		if (!b[i])
			wrong("no memory");
		b[i][100 * KIB] = 1;
		pin(KIB);
	}
	free(b[1]);
	free(b[5]);
	free(b[11]);
}

/* Many ranges. */
static void ranges(void)
{
	blocks(8000, 9 * KIB, 1, 64, 1);
}

/* ---- shapes of several threads */

static pthread_barrier_t all_in, built;
static int advise_heaps;

static void *arena(void *arg)
{
	size_t n = (size_t)(uintptr_t)arg;
	void **b = table(n, sizeof(*b));

	if (advise_heaps)
		advise_heap(take(64));
	for (size_t i = 0; i < n; i++)
		b[i] = take(16 * KIB);
	pin(64);
	/* All are inside before one frees, so that each has an arena of its own. */
	pthread_barrier_wait(&all_in);
	for (size_t i = 0; i < n; i++)
		free(b[i]);
	pthread_barrier_wait(&built);
	for (;;)
		pause();
	return NULL;
}

static void threads(unsigned n, size_t each)
{
	pthread_barrier_init(&all_in, NULL, n);
	pthread_barrier_init(&built, NULL, n + 1);
	for (unsigned i = 0; i < n; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, arena, (void *)(uintptr_t)each))
			wrong("no thread");
	}
	pthread_barrier_wait(&built);
}

static void arenas(void)
{
	threads(8, 800);
}

static void onearena(void)
{
	mallopt(M_ARENA_MAX, 1);
	threads(16, 200);
}

static void many(void)
{
	threads(64, 100);
}

static void alladvised(void)
{
	advised();
	advise_heaps = 1;
	threads(4, 800);
}

/* Arenas of more than one heap: 64 MiB are not enough. */
static void heaps(void)
{
	threads(3, 6000);
}

/* Every second block stays: no page is free. */
static void halves(void)
{
	blocks(150000, 1056, 0, 0, 2);
}

/* Nearly all of it is in use. */
static void held(void)
{
	blocks(6000, 16 * KIB, 0, 0, 6000);
}

/* Memory of one size, freed in pieces and as a whole: glibc's thresholds have followed it. */
static void risen(void)
{
	free(take(24 * MIB));
	blocks(3000, 16 * KIB, 10, KIB, 1);
	free(take(20 * MIB));
}

/* So many small free chunks that their lists are not walked to the end, and blocks among which
 * there are pages to give back. */
static void crumbs(void)
{
	const size_t n = 400000;
	void **b = table(n, sizeof(*b));

	for (size_t i = 0; i < n; i++)
		b[i] = take(150);
	pins();
	for (size_t i = 0; i < n; i += 2)
		free(b[i]);
}

/* For measuring: 1 GiB with 500,000 free chunks that cannot merge. */
static void gigabyte(void)
{
	void **b = table(1000000, sizeof(*b));

	for (size_t i = 0; i < 1000000; i++)
		b[i] = take(1056);
	for (size_t i = 0; i < 1000000; i += 2)
		free(b[i]);
}

static void arenas64(void)
{
	mallopt(M_ARENA_MAX, 65);
	threads(64, 300);
}

static const struct {
	const char *name;
	void (*build)(void);
} shapes[] = {
	{ "pins", pins },
	{ "second", second },
	{ "fast", fast },
	{ "top", top },
	{ "fasttop", fasttop },
	{ "foreign", foreign },
	{ "behind", behind },
	{ "blocked", blocked },
	{ "merged", merged },
	{ "again", again },
	{ "lockall", lockall },
	{ "lockpart", lockpart },
	{ "huge", huge },
	{ "untouched", untouched },
	{ "advised", advised },
	{ "ranges", ranges },
	{ "arenas", arenas },
	{ "onearena", onearena },
	{ "halves", halves },
	{ "held", held },
	{ "risen", risen },
	{ "many", many },
	{ "gigabyte", gigabyte },
	{ "arenas64", arenas64 },
	{ "heaps", heaps },
	{ "cachefull", cachefull },
	{ "mmapped", mmapped },
	{ "vast", vast },
	{ "toppad", toppad },
	{ "threshold", threshold },
	{ "alladvised", alladvised },
	{ "crumbs", crumbs },
};

static void check_lives(void)
{
	for (size_t i = 0; i < lives; i++)
		for (size_t k = 0; k < live[i].size; k++)
			if (live[i].at[k] != live[i].fill)
				wrong("block %zu of %u bytes: byte %zu has changed", i,
				      live[i].size, k);
}

/* Whatever a trim has left of the lists: malloc aborts if they are not whole. */
static void use_again(void)
{
	static void *b[600];

	for (size_t i = 0; i < 600; i++) {
		b[i] = take(16 + i * i % 70000);
		memset(b[i], (int)i, 16 + i * i % 70000);
	}
	check_lives();
	for (size_t i = 0; i < 600; i++)
		free(b[i]);
	malloc_trim(0);
}

int main(int argc, char **argv)
{
	const char *want = argc > 1 ? argv[1] : "";
	size_t i = 0;

	numbers_open();
	live = table(LIVE_MAX, sizeof(*live));
	while (i < sizeof(shapes) / sizeof(shapes[0]) && strcmp(shapes[i].name, want) != 0)
		i++;
	if (i == sizeof(shapes) / sizeof(shapes[0]))
		wrong("no shape \"%s\"", want);
	shapes[i].build();
	numbers_take();
	victim_ready();
	while (!victim_over(1000))
		;
	check_lives();
	use_again();
	check_lives();
	return 0;
}
