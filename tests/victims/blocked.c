// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * blocked BOARD FIRST N MS [eintr]: a thread for each of N kinds of blocking system call, from the
 * FIRST of the table in blocked_kinds.h. A wait with a timeout lasts MS; one without is given what
 * it waits for from time to time. Each thread checks that no wait ends early, with an error or with
 * nothing in it, and writes to BOARD (blocked.h) how late its timed waits end. An undisturbed
 * thread takes naps all the time and tells how late a wait may end on this machine at this moment.
 * With "eintr" a timed wait may end with EINTR, which a killed heapmedic may cost, and then begins
 * again.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "blocked.h"
#include "victim.h"

struct waiter {
	const struct kind *kind;
	struct blocked_slot *slot;
	pthread_t thread;
	unsigned ms;
	unsigned given, taken; /* waits without a timeout: what was given, what has arrived */
	int fd[2];
	void *object;
	char bytes[16];
};

struct kind {
	const char *name;
	unsigned flags;
	int timed;
	/* Called before any thread exists; 0, or why not: errno. */
	int (*prepare)(struct waiter *w);
	/* 0: ended as it should (its time is over, or it was given what it waited for); else errno,
	 * or -1 for a wrong result. */
	int (*wait)(struct waiter *w);
	void (*give)(struct waiter *w);
	enum { ANY_TIME, AT_END, AGAIN } when; /* AGAIN: given again until it arrives */
};

static struct blocked_board *board;
static int over;
static unsigned timeout_ms;

#include "blocked_kinds.h"

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct waiter waiters[KINDS];
static size_t first, count;
static uint64_t nap_due;

static unsigned load(const unsigned *v)
{
	return __atomic_load_n(v, __ATOMIC_SEQ_CST);
}

/* A nap ended this late: every wait that goes on now has seen it. */
static void tell_noise(uint64_t late)
{
	for (size_t i = first; i < first + count; i++) {
		uint64_t *noise = &board->slot[i].noise;
		uint64_t seen = __atomic_load_n(noise, __ATOMIC_RELAXED);

		while (late > seen &&
		       !__atomic_compare_exchange_n(noise, &seen, late, 0, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
	}
}

static void *nap(void *arg)
{
	thread_started();
	for (;;) {
		uint64_t due = now_ns() + 2 * MS;
		struct timespec ts = { .tv_sec = (time_t)(due / 1000000000ull),
				       .tv_nsec = (long)(due % 1000000000ull) };

		__atomic_store_n(&nap_due, due, __ATOMIC_SEQ_CST);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		tell_noise(now_ns() - due);
	}
	return arg;
}

static void write_down(struct waiter *w, uint64_t late, uint64_t end, unsigned hits)
{
	struct blocked_slot *s = w->slot;
	uint64_t noise = __atomic_load_n(&s->noise, __ATOMIC_RELAXED);
	uint64_t due = __atomic_load_n(&nap_due, __ATOMIC_SEQ_CST);

	if (end > due && end - due > noise)
		noise = end - due;
	if (hits && s->n < BLOCKED_WAITS) {
		s->late[s->n] = (uint32_t)(late / 1000);
		s->quiet[s->n] = (uint32_t)(noise / 1000);
		s->hit[s->n++] = hits;
	}
}

static void *body(void *arg)
{
	struct waiter *w = arg;
	struct blocked_slot *s = w->slot;

	s->tid = (int32_t)syscall(SYS_gettid);
	thread_started();
	for (;;) {
		unsigned hits = load(&s->hits);
		uint64_t start = now_ns(), took;
		int rc;

		__atomic_store_n(&s->noise, 0, __ATOMIC_RELAXED);
		rc = w->kind->wait(w);
		took = now_ns() - start;
		if (rc == EINTR && s->ms && victim_eintr)
			continue;
		if (rc)
			wrong("%s: %s (%d)", w->kind->name, rc > 0 ? strerror(rc) : "wrong result",
			      rc);
		if (s->ms) {
			if (took < s->ms * MS)
				wrong("%s ended after %llu us of %u ms", w->kind->name,
				      (unsigned long long)took / 1000, s->ms);
			write_down(w, took - s->ms * MS, start + took, load(&s->hits) - hits);
		} else {
			if (w->taken == load(&w->given))
				wrong("%s ended, nothing was given to it", w->kind->name);
			__atomic_add_fetch(&w->taken, 1, __ATOMIC_SEQ_CST);
		}
		__atomic_add_fetch(&s->waits, 1, __ATOMIC_SEQ_CST);
		if (load((unsigned *)&over) && (s->ms || w->taken == load(&w->given)))
			return NULL;
	}
}

static void give(struct waiter *w, int at_end)
{
	const struct kind *k = w->kind;
	int waiting = load(&w->taken) == load(&w->given);

	if (w->slot->ms && k->give && !at_end)
		k->give(w); /* a disturbance that it is to withstand */
	if (w->slot->ms || w->slot->forbidden[0] || (k->when == AT_END && !at_end))
		return;
	if (waiting)
		__atomic_add_fetch(&w->given, 1, __ATOMIC_SEQ_CST);
	if (waiting || k->when == AGAIN)
		k->give(w);
}

/* Everything that still waits comes to its end. What was lost on the way shows here. */
static void finish(void)
{
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	for (size_t i = first; i < first + count; i++) {
		struct waiter *w = &waiters[i];
		uint64_t end = now_ns() + 20000 * MS;
		int ended = 0;

		if (w->slot->forbidden[0])
			continue;
		give(w, 1);
		while (!ended && now_ns() < end) {
			ended = !pthread_tryjoin_np(w->thread, NULL);
			usleep(5000);
			if (!ended && w->kind->when == AGAIN)
				give(w, 1);
		}
		if (!ended)
			wrong("%s does not end: %u given, %u arrived", w->kind->name, w->given,
			      w->taken);
	}
}

static void map_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	board = fd < 0 ? MAP_FAILED
		       : mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		wrong("%s: %s", path, strerror(errno));
	close(fd);
	board->kinds = (uint32_t)KINDS;
}

static int start(void)
{
	int started = 0;

	for (size_t i = first; i < first + count; i++) {
		struct waiter *w = &waiters[i];
		int rc;

		w->kind = &kinds[i];
		w->slot = &board->slot[i];
		w->ms = timeout_ms;
		w->slot->ms = kinds[i].timed ? timeout_ms : 0;
		w->slot->flags = kinds[i].flags;
		snprintf(w->slot->name, sizeof(w->slot->name), "%s", kinds[i].name);
		rc = kinds[i].prepare ? kinds[i].prepare(w) : 0;
		if (rc)
			snprintf(w->slot->forbidden, sizeof(w->slot->forbidden), "%s",
				 strerror(rc));
	}
	for (size_t i = first; i < first + count; i++) {
		struct waiter *w = &waiters[i];

		if (w->slot->forbidden[0])
			continue;
		if (pthread_create(&w->thread, NULL, body, w))
			wrong("no thread");
		started++;
	}
	return started;
}

int main(int argc, char **argv)
{
	pthread_t napper;
	int started;

	if (argc < 5)
		wrong("usage: blocked BOARD FIRST N MS [eintr]");
	victim_eintr = victim_option(argc, argv, "eintr");
	map_board(argv[1]);
	first = (size_t)atoi(argv[2]);
	count = (size_t)atoi(argv[3]);
	timeout_ms = (unsigned)atoi(argv[4]);
	if (first >= KINDS)
		wrong("there are %zu kinds", KINDS);
	if (count > KINDS - first)
		count = KINDS - first;
	prepare_signals();
	started = start();
	if (pthread_create(&napper, NULL, nap, NULL))
		wrong("no thread");
	wait_started(started + 1);
	victim_ready();
	while (!victim_over(37))
		for (size_t i = first; i < first + count; i++)
			give(&waiters[i], 0);
	finish();
	remove_ipc();
	return 0;
}
