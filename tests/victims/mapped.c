// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Memory of every kind, of sizes that the test knows (see tests/live/test_maps.c), and then it sits
 * still: what is said about it can be compared byte by byte.
 *
 *   mapped           some of each
 *   mapped many N    N mappings more, half of them touched
 *   mapped shared N  N MiB of shared memory more
 *   mapped churn     two threads more, which map, divide and unmap all the time
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include "victim.h"

#define KIB  1024ul
#define MIB  (1024ul * KIB)
#define PAGE 4096ul

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static void *map(size_t len, int flags, int fd)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		wrong("mmap of %lu: %s", len, strerror(errno));
	return p;
}

static char *touched(size_t len, int flags, int fd)
{
	char *p = map(len, flags, fd);

	memset(p, 0x5a, len);
	return p;
}

static void shared_memory(void)
{
	char name[64];
	int fd, id;
	void *at;

	snprintf(name, sizeof(name), "/heapmedic-mapped-%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || shm_unlink(name) || ftruncate(fd, 3 * MIB))
		wrong("shm_open: %s", strerror(errno));
	touched(3 * MIB, MAP_SHARED, fd);
	fd = memfd_create("mapped", 0);
	if (fd < 0 || ftruncate(fd, 2 * MIB))
		wrong("memfd_create: %s", strerror(errno));
	touched(2 * MIB, MAP_SHARED, fd);
	id = shmget(IPC_PRIVATE, MIB, 0600 | IPC_CREAT);
	at = shmat(id, NULL, 0);
	if (at == (void *)-1)
		wrong("shmat: %s", strerror(errno));
	shmctl(id, IPC_RMID, NULL);
	memset(at, 1, MIB);
	touched(5 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static void anonymous_memory(void)
{
	char *p;
	uintptr_t at;

	/* locked: 1 MiB, by a mapping of its own */
	p = touched(MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (mlock(p, MIB))
		wrong("mlock: %s", strerror(errno));
	/* free at the kernel's leisure: 2 MiB; no huge page may take more along */
	p = map(2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(p, 2 * MIB, MADV_NOHUGEPAGE);
	memset(p, 1, 2 * MIB);
	if (madvise(p, 2 * MIB, MADV_FREE))
		wrong("madvise(MADV_FREE): %s", strerror(errno));
	/* huge: 4 MiB, where the kernel has huge pages */
	p = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	at = ((uintptr_t)p + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1);
	madvise((void *)at, 4 * MIB, MADV_HUGEPAGE);
	memset((void *)at, 1, 4 * MIB);
	/* named: 64 KiB, where the kernel has names (5.17, CONFIG_ANON_VMA_NAME) */
	p = touched(64 * KIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 64 * KIB, "victim's own");
	/* address space only */
	if (mmap(NULL, 256 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
	    MAP_FAILED)
		wrong("mmap: %s", strerror(errno));
}

/* Blocks so large that malloc maps each by itself: 3 + 2 MiB plain, 4 x 1 MiB aligned, 1 + 1 MiB
 * whose mappings are divided by advice for a part. Each has a page more or less for its header. */
static void large_blocks(void)
{
	static const size_t align[] = { 64, 4096, 65536, 1 << 20 };
	static void *kept[8];

	kept[0] = malloc(3 * MIB);
	kept[1] = malloc(2 * MIB);
	for (int i = 0; i < 4; i++)
		if (posix_memalign(&kept[2 + i], align[i], MIB))
			wrong("posix_memalign failed");
	kept[6] = malloc(MIB);
	kept[7] = aligned_alloc(PAGE, MIB);
	for (int i = 6; i < 8; i++) {
		char *page = (char *)(((uintptr_t)kept[i] + PAGE) & ~(PAGE - 1));

		if (madvise(page, MIB - 2 * PAGE, MADV_DONTDUMP))
			wrong("madvise(MADV_DONTDUMP): %s", strerror(errno));
	}
	for (int i = 0; i < 8; i++)
		memset(kept[i], 1, MIB);
}

/* A private mapping of a file of 1 MiB, all read, 16 pages written. */
static void file_memory(void)
{
	char name[] = "/var/tmp/heapmedic-mapped-XXXXXX", block[4096] = "file";
	volatile char *p;
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name))
		wrong("mkstemp: %s", strerror(errno));
	for (int i = 0; i < 256; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			wrong("write: %s", strerror(errno));
	p = map(MIB, MAP_PRIVATE, fd);
	for (size_t i = 0; i < MIB; i += PAGE)
		if (p[i] != 'f')
			wrong("the file is another one");
	for (size_t i = 0; i < 16; i++)
		p[i * 3 * PAGE] = 'w';
}

/* Deep in its stack: so many bytes of it are touched. */
static __attribute__((noinline)) void dig(size_t depth)
{
	volatile char hole[64 * KIB];

	for (size_t i = 0; i < sizeof(hole); i += PAGE / 2)
		hole[i] = 1;
	if (depth > sizeof(hole))
		dig(depth - sizeof(hole));
	hole[0] = 2; /* not a tail call */
}

static pthread_barrier_t ended;

static void *digger(void *arg)
{
	dig((size_t)arg);
	thread_started();
	for (;;)
		pause();
	return NULL;
}

static void *short_lived(void *arg)
{
	(void)arg;
	dig(256 * KIB);
	pthread_barrier_wait(&ended);
	return NULL;
}

static void start(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), size_t depth)
{
	int err = pthread_create(t, attr, fn, (void *)depth);

	if (err)
		wrong("pthread_create: %s", strerror(err));
}

/* Four threads on stacks of 8 MiB, one on a stack of the program's own (1 MiB), three that have
 * ended. */
static void threads(void)
{
	pthread_attr_t attr;
	pthread_t t[4], gone[3];

	pthread_barrier_init(&ended, NULL, 4);
	for (int i = 0; i < 3; i++)
		start(&gone[i], NULL, short_lived, 0);
	pthread_barrier_wait(&ended);
	for (int i = 0; i < 3; i++)
		pthread_join(gone[i], NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * MIB);
	for (int i = 0; i < 4; i++)
		start(&t[i], &attr, digger, 3 * MIB);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, map(MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), MIB);
	start(&t[0], &attr, digger, 512 * KIB);
	wait_started(5);
}

/* The kernel merges neighbours that are alike: every second one can be written to. */
static void many(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		int prot = PROT_READ | (i % 2 ? PROT_WRITE : 0);
		volatile char *p = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			wrong("mapping %lu: %s", i, strerror(errno));
		if (i % 2)
			*p = 1;
	}
}

/* Mappings come, are cut in three, and go. */
static void *churn(void *arg)
{
	size_t pages = 64 + (size_t)arg;

	thread_started();
	for (unsigned turn = 0;; turn++) {
		size_t len = (pages + turn % 32) * PAGE;
		char *p = touched(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

		if (mprotect(p + len / PAGE / 3 * PAGE, 4 * PAGE, PROT_READ))
			wrong("mprotect: %s", strerror(errno));
		for (size_t i = 0; i < len; i += PAGE)
			if (p[i] != 0x5a)
				wrong("page %lu has changed", i / PAGE);
		munmap(p, len);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 2 && victim_option(argc, argv, "many"))
		many(strtoul(argv[2], NULL, 10));
	if (argc > 2 && victim_option(argc, argv, "shared"))
		touched(strtoul(argv[2], NULL, 10) * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
	shared_memory();
	anonymous_memory();
	large_blocks();
	file_memory();
	threads();
	if (victim_option(argc, argv, "churn")) {
		pthread_t t[2];

		start(&t[0], NULL, churn, 0);
		start(&t[1], NULL, churn, 5);
		wait_started(7);
	}
	/* what the loop below needs of libc is in memory by then */
	if (victim_over(1))
		return 0;
	victim_ready();
	while (!victim_over(1000))
		;
	return 0;
}
