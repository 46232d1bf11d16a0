// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef VICTIM_H
#define VICTIM_H
/*
 * What every victim does: says "ready" on stdout once it is set up, works and checks itself until
 * its standard input ends, and then exits 0. Whatever it finds wrong goes to stderr and makes it
 * exit 1 at once: the tests look at both.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define MS 1000000ull
/* A wait may end this much late on a loaded machine, and one that is restarted begins anew. Early
 * is never allowed. */
#define SLACK_MS 5000ull

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void wrong(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) != n)
		_exit(2);
	_exit(1);
}

/* A malloc(3) and a free(3) that no compiler takes for nothing. */
static inline void malloc_once(size_t size)
{
	void *volatile p = malloc(size);

	free(p);
}

/* What its stderr is for by then (fwide(3)): mimalloc itself has printed nothing to it. */
static int victim_oriented __attribute__((unused));

/* Yama's scope 1 lets only ancestors attach; a test's heapmedic is a sibling. */
static inline void victim_ready(void)
{
	prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
	victim_oriented = fwide(stderr, 0);
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		wrong("write: %s", strerror(errno));
}

/*
 * "eintr" among the arguments: an early EINTR is forgiven in calls whose manual allows it, and
 * counted. That is what a tool killed while it holds a thread may cost, and nothing else.
 */
static int victim_eintr __attribute__((unused));
static unsigned victim_eintrs;

static inline int forgive_eintr(void)
{
	if (errno != EINTR || !victim_eintr)
		return 0;
	__atomic_add_fetch(&victim_eintrs, 1, __ATOMIC_SEQ_CST);
	return 1;
}

static inline int victim_option(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return 1;
	return 0;
}

/* Threads tell that they run, so that "ready" is not said while one is still being made. */
static int victim_threads;

static inline void thread_started(void)
{
	__atomic_add_fetch(&victim_threads, 1, __ATOMIC_SEQ_CST);
}

static inline void wait_started(int n)
{
	while (__atomic_load_n(&victim_threads, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
}

/*
 * Threads that work in turns count them. A test that writes an 'r' to standard input is answered
 * with one line once each of them has made another whole turn, with its checks: nobody stands
 * still. The line says how many EINTR have been forgiven, and what the victim puts in victim_says.
 */
#define WORKERS_MAX   64
#define STANDSTILL_MS 60000ull
static struct {
	int workers; /* how many of turn[] are in use */
	uint64_t turn[WORKERS_MAX], seen[WORKERS_MAX];
	uint64_t asked; /* when, 0: not */
} victim_turns;
static char victim_says[192];
/* Set by a 'g': some victims begin with something only then. */
static int victim_go __attribute__((unused));

static inline void turned(int worker)
{
	__atomic_add_fetch(&victim_turns.turn[worker], 1, __ATOMIC_SEQ_CST);
}

static inline void victim_ask(void)
{
	for (int i = 0; i < victim_turns.workers; i++)
		victim_turns.seen[i] = __atomic_load_n(&victim_turns.turn[i], __ATOMIC_SEQ_CST);
	victim_turns.asked = now_ns();
}

static inline void victim_answer(void)
{
	char line[256];
	int n;

	for (int i = 0; i < victim_turns.workers; i++) {
		uint64_t turn = __atomic_load_n(&victim_turns.turn[i], __ATOMIC_SEQ_CST);

		if (turn >= victim_turns.seen[i] + 2)
			continue;
		if (now_ns() > victim_turns.asked + STANDSTILL_MS * MS)
			wrong("thread %d stands still", i);
		return;
	}
	/* nobody here has used it since, so nothing has decided what it is for */
	if (fwide(stderr, 0) != victim_oriented)
		wrong("somebody has used stderr");
	n = snprintf(line, sizeof(line), "report eintr %d %s\n",
		     (int)__atomic_load_n(&victim_eintrs, __ATOMIC_SEQ_CST), victim_says);
	victim_turns.asked = 0;
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		wrong("write: %s", strerror(errno));
}

/* Waits up to ms for the end of standard input. */
static inline int victim_over(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t len;
	char buf[64];
	int n;

	if (victim_turns.asked)
		victim_answer();
	n = poll(&p, 1, ms);
	if (n < 0 && forgive_eintr())
		return 0;
	if (n < 0)
		wrong("poll(stdin): %s", strerror(errno));
	if (n == 0)
		return 0;
	len = read(STDIN_FILENO, buf, sizeof(buf));
	if (len > 0 && memchr(buf, 'r', (size_t)len))
		victim_ask();
	if (len > 0 && memchr(buf, 'g', (size_t)len))
		__atomic_store_n(&victim_go, 1, __ATOMIC_SEQ_CST);
	return len == 0;
}

/* The wait that began at start and should have lasted ms has ended. */
static inline void check_wait(const char *what, uint64_t start, uint64_t ms)
{
	uint64_t took = now_ns() - start;

	if (took < ms * MS)
		wrong("%s returned after %llu us of %llu ms", what,
		      (unsigned long long)(took / 1000), (unsigned long long)ms);
	if (took > (ms + SLACK_MS) * MS)
		wrong("%s returned after %llu ms, not %llu", what, (unsigned long long)(took / MS),
		      (unsigned long long)ms);
}
#endif
