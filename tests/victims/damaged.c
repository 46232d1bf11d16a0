// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * damaged KIND WHERE: damages its own heap, as a bug in a program does, and then touches no heap
 * any more. WHERE is "single" (the main arena of a program with one thread), "main" (with a second
 * thread) or "thread" (that thread's arena). The place of the damage is its name (comm), in
 * hexadecimal.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>

#include "victim.h"

#define HEAP_MAX ((uintptr_t)64 << 20) /* alignment of a thread arena's heap */
#define CHUNK(p) ((uintptr_t)(p)-16)
#define BLOCK	 0x508 /* too large for the thread's cache, a chunk of 0x510 */
#define SMALL	 24
/* blocks of one size in a cache; sizeof(heap_info); of next in malloc_state; are links stored
 * plain? */
#define CACHED (__GLIBC_PREREQ(2, 43) ? 16 : 7)
#define INFO   (__GLIBC_PREREQ(2, 35) ? 48 : 32)
#define NEXT   (__GLIBC_PREREQ(2, 43) ? 2072 : __GLIBC_PREREQ(2, 27) ? 2160 : 2152)
#define PLAIN  (!__GLIBC_PREREQ(2, 32))

struct scene {
	unsigned char *keep, *before, *freed, *behind; /* freed lies between two in use */
	uint64_t *fast;				       /* in a fastbin; since 2.43 there are none */
	uint64_t *cached; /* the first in a list of the thread's cache */
};

static void put(uintptr_t at, uint64_t v)
{
	memcpy((void *)at, &v, sizeof(v));
}

/* As a fastbin and a cache link their blocks. */
static void put_link(uintptr_t at, uintptr_t to)
{
	put(at, PLAIN ? to : (at >> 12) ^ to);
}

/* For one who damages it from outside. */
static uintptr_t none(const struct scene *s)
{
	return CHUNK(s->freed);
}

/* A write beyond the end of a block, over the size of the chunk behind it. */
static uintptr_t overrun(const struct scene *s)
{
	memset(s->before, 'A', BLOCK + 8);
	return CHUNK(s->freed);
}

static uintptr_t overrun_used(const struct scene *s)
{
	memset(s->keep, 'A', BLOCK + 8);
	return CHUNK(s->before);
}

/* A write to a block that was freed. */
static uintptr_t link_forward(const struct scene *s)
{
	put((uintptr_t)s->freed, 0x4141414141414140);
	return CHUNK(s->freed);
}

static uintptr_t link_back(const struct scene *s)
{
	put((uintptr_t)s->freed + 8, 0x4242424242424240);
	return CHUNK(s->freed);
}

/* A list that leads to itself. */
static uintptr_t cycle(const struct scene *s)
{
	put((uintptr_t)s->freed, CHUNK(s->freed));
	return CHUNK(s->freed);
}

static uintptr_t prev_size(const struct scene *s)
{
	put(CHUNK(s->behind), 0x40);
	return CHUNK(s->behind);
}

/* The last block lies below top. */
static uintptr_t top_size(const struct scene *s)
{
	memset(s->behind, 0xff, BLOCK + 8);
	return CHUNK(s->behind) + BLOCK + 8;
}

static uintptr_t fastbin(const struct scene *s)
{
	if (__GLIBC_PREREQ(2, 43))
		wrong("this glibc has no fastbins");
	/* wherever it lies, so that glibc sees it before it goes there */
	put_link((uintptr_t)s->fast, 0x4141414141414148);
	return CHUNK(s->fast);
}

/* As a block that is freed twice: it is linked to itself. */
static uintptr_t fastbin_loop(const struct scene *s)
{
	if (__GLIBC_PREREQ(2, 43))
		wrong("this glibc has no fastbins");
	put_link((uintptr_t)s->fast, CHUNK(s->fast));
	return CHUNK(s->fast);
}

static uintptr_t cache_wild(const struct scene *s)
{
	put((uintptr_t)s->cached, 0x4141414141414141);
	return CHUNK(s->cached);
}

static uintptr_t cache_loop(const struct scene *s)
{
	put_link((uintptr_t)s->cached, (uintptr_t)s->cached);
	return CHUNK(s->cached);
}

static uintptr_t heap_info(const struct scene *s)
{
	uintptr_t heap = (uintptr_t)s->freed & ~(HEAP_MAX - 1);

	put(heap + 16, 0x7777);
	return heap;
}

/* The oldest heap has none before it. */
static uintptr_t heap_cycle(const struct scene *s)
{
	uintptr_t heap = (uintptr_t)s->freed & ~(HEAP_MAX - 1);

	put(heap + 8, heap);
	return heap;
}

/* The arenas behind the main one do not lead back to it. */
static uintptr_t ring_cycle(const struct scene *s)
{
	uintptr_t arena = ((uintptr_t)s->freed & ~(HEAP_MAX - 1)) + INFO;

	put(arena + NEXT, arena);
	return arena;
}

static uintptr_t ring(const struct scene *s)
{
	uintptr_t arena = ((uintptr_t)s->freed & ~(HEAP_MAX - 1)) + INFO;

	put(arena + NEXT, 0x4141414141414140);
	return arena;
}

static const struct {
	const char *name;
	uintptr_t (*make)(const struct scene *s);
} kinds[] = {
	{ "size", overrun },
	{ "used", overrun_used },
	{ "fd", link_forward },
	{ "bk", link_back },
	{ "prev", prev_size },
	{ "top", top_size },
	{ "fastbin", fastbin },
	{ "loop", fastbin_loop },
	{ "info", heap_info },
	{ "ring", ring },
	{ "none", none },
	{ "cycle", cycle },
	{ "cache", cache_wild },
	{ "cache-loop", cache_loop },
	{ "info-cycle", heap_cycle },
	{ "ring-cycle", ring_cycle },
};

static void set_scene(struct scene *s)
{
	void *small[CACHED + 1];

	/* the cache itself is made with the first malloc, since 2.43 with the first free */
	malloc_once(SMALL);
	for (int i = 0; i <= CACHED; i++)
		small[i] = malloc(SMALL);
	s->keep = malloc(BLOCK);
	s->before = malloc(BLOCK);
	s->freed = malloc(BLOCK);
	s->behind = malloc(BLOCK);
	if (!s->keep || !s->before || !s->freed || !s->behind)
		wrong("no memory");
	free(s->freed);
	/* the cache takes them, the last one goes into a fastbin */
	for (int i = 0; i <= CACHED; i++)
		free(small[i]);
	s->fast = small[CACHED];
	s->cached = small[CACHED - 1];
	memset(s->keep, 'k', BLOCK);
}

/* Others see the name of the first thread. */
static void tell(uintptr_t at)
{
	char name[32];
	int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
	int n = snprintf(name, sizeof(name), "%llx", (unsigned long long)at);

	if (fd < 0 || write(fd, name, (size_t)n) != n)
		wrong("its name cannot be set: %s", strerror(errno));
	close(fd);
}

static struct scene scene;

static void damage(const char *kind)
{
	set_scene(&scene);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, kind)) {
			tell(kinds[i].make(&scene));
			return;
		}
	wrong("no damage is named %s", kind);
}

/* With a kind it does the damage; then it sleeps, and looks whether its blocks are as they were. */
static void *work(void *kind)
{
	unsigned char want[BLOCK];

	if (kind)
		damage(kind);
	if (kind)
		memcpy(want, scene.keep, BLOCK);
	thread_started();
	for (;;) {
		struct timespec nap = { .tv_nsec = 50 * MS };
		uint64_t start = now_ns();

		if (nanosleep(&nap, NULL))
			wrong("nanosleep: %s", strerror(errno));
		check_wait("nanosleep", start, 50);
		if (kind && memcmp(scene.keep, want, BLOCK) != 0)
			wrong("a block has changed");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	bool thread = argc == 3 && !strcmp(argv[2], "thread"), single;
	pthread_t t;

	if (argc != 3)
		wrong("usage: damaged KIND single|main|thread");
	single = !strcmp(argv[2], "single");
	if (!single && pthread_create(&t, NULL, work, thread ? argv[1] : NULL))
		wrong("no thread");
	if (!single)
		wait_started(1);
	if (!thread)
		damage(argv[1]);
	victim_ready();
	while (!victim_over(1000))
		;
	/* nothing of the heap may be touched at the end either */
	_exit(0);
}
