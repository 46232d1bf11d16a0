// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_STATE_H
#define LIVE_STATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct victim;

/*
 * What must be the same before and after anybody has looked at a process: its threads with their
 * signal masks, signal actions, descriptors and mappings.
 *
 * Of the mappings those are the victim's heap that are private memory without a file and a name,
 * writable or not accessible at all, and [heap]: what it does there is its own affair. All others
 * (code, data and stacks with a name, what is shared or executable) must be the same to the byte.
 * With STATE_HEAP_STILL also the heap must cover the same addresses, apart from where [heap] ends:
 * that holds for a victim whose threads and arenas do not change, since glibc reserves an arena's
 * addresses once and a thread's stack is cached. What lies where heapmedic puts its own memory is
 * never anybody's heap.
 */
#define STATE_MAX      512
#define STATE_MAPPINGS ((size_t)256 * 1024)
struct thread_state {
	pid_t tid;
	uint64_t blocked;
};
struct state {
	struct thread_state thread[STATE_MAX];
	size_t threads;
	uint64_t ignored, caught;
	size_t fds;
	char mappings[STATE_MAPPINGS]; /* one a line, as in /proc/PID/maps */
	char heap[STATE_MAPPINGS];     /* what it covers, one range a line */
	/* heapmedic's own, in none of the above: threads of its name, regions, descriptors */
	size_t our_threads, our_regions, our_fds;
	pid_t our_tid; /* the first of them */
	/* a thread that is traced or stopped, 0: none */
	pid_t halted;
};

enum state_freedom {
	STATE_EXACT = 0,
	STATE_THREADS_VARY = 1, /* a runtime that starts and ends threads as it likes */
	STATE_MASKS_VARY = 2,	/* threads that block signals for a while */
	STATE_HEAP_STILL = 4,
	STATE_MAPPINGS_VARY = 8, /* it maps and unmaps for itself */
};

/* The state to compare with later. Looks several times, because victims open and close some
 * descriptors themselves. */
void state_take(const struct victim *v, struct state *s);
/* One look. */
void state_look(const struct victim *v, struct state *s);
/* False if they are the same, heapmedic's own not counted; else why says in what they differ. */
bool state_differs(const struct state *before, const struct state *now, enum state_freedom freedom,
		   char *why, size_t size);
/*
 * Requires that v is as in before, and that nothing of heapmedic is there: no thread more or less,
 * nobody traced, nothing named after it mapped. Descriptors are looked at repeatedly.
 */
void state_same(const struct victim *v, const struct state *before, enum state_freedom freedom);
/* Waits until the victim has n threads again: what a killed run left behind ends within 5 s. */
void state_await_threads(const struct victim *v, size_t n);
#endif
