// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef BLOCKED_H
#define BLOCKED_H
#include <stdint.h>

/* What the victim "blocked" and its test share: a file that both map, given to the victim by name.
 */
enum { BLOCKED_KINDS = 64, BLOCKED_WAITS = 4096 };

/* What makes a kind special. */
enum {
	BLOCKED_REFUSED = 1, /* no thread in it may be interrupted: it is to be refused */
	BLOCKED_ANEW = 2,    /* its time belongs to a socket and begins anew */
	BLOCKED_STOPPED = 4, /* the test stops and continues the process meanwhile */
};

struct blocked_slot {
	char name[40];
	char forbidden[40]; /* why the kernel does not let it be tried; empty: it does */
	uint32_t flags;
	int32_t tid;	/* of the thread that waits so */
	uint32_t ms;	/* its timeout; 0: it waits until it is given what it waits for */
	uint32_t waits; /* that have ended, all in the right way */
	uint32_t hits;	/* counted by the test: how often it was about to interrupt this thread */
	uint64_t noise; /* ns: the latest nap of an undisturbed thread since the wait began */
	/* The timed waits that were hit: */
	uint32_t n;
	uint32_t late[BLOCKED_WAITS];  /* us: later than it should have ended */
	uint32_t quiet[BLOCKED_WAITS]; /* us: how late at worst the undisturbed thread meanwhile */
	uint32_t hit[BLOCKED_WAITS];   /* times */
};

struct blocked_board {
	uint32_t kinds; /* that the victim knows, whichever of them it runs */
	struct blocked_slot slot[BLOCKED_KINDS];
};
#endif
