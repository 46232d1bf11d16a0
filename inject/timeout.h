// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TIMEOUT_H
#define HM_TIMEOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_64.h"

/*
 * Calls with a relative timeout that the kernel does not keep over a stop (each says -EINTR or
 * ERESTARTNOHAND), and how they can be made again for what is left of it only. The point in time at
 * which the wait is to end goes along with the call that is made again, so that a wait that is
 * interrupted any number of times still ends when it should.
 */
enum timeout_form {
	TIMEOUT_NONE,	  /* none, endless, absolute, or the kernel's own business */
	TIMEOUT_MS,	  /* milliseconds in a register, an int */
	TIMEOUT_TIMESPEC, /* the argument points to a struct timespec */
	TIMEOUT_RING,	  /* it points to a struct io_uring_getevents_arg that points to one */
	TIMEOUT_WRITTEN,  /* a struct timespec that the kernel writes what is left to (select(2)) */
};

/* Pure: how call nr with these arguments is given its timeout; *which is the argument's index. */
enum timeout_form timeout_form(long nr, const uint64_t arg[6], unsigned *which);
/* May argument 0 be a socket, whose own timeout the call keeps (SO_RCVTIMEO, SO_SNDTIMEO)? */
bool timeout_of_socket(long nr);

struct timeout_timespec {
	int64_t sec, nsec;
};
/* ns, at most INT64_MAX; a negative or impossible one counts as 0. */
uint64_t timeout_ns(const struct timeout_timespec *ts);

/*
 * TIMEOUT_MS. The kernel takes an int, the low half of the register. The high half carries the end
 * of the wait in units of 65.5 us, modulo 18 minutes. timeout_tag returns the register for ms that
 * are left and an end at end_ns (clock_now); just ms where it cannot be expressed. timeout_tagged:
 * is this such a register? Then *end_ns is its end, which lies at most ms after now.
 */
uint64_t timeout_tag(uint32_t ms, uint64_t end_ns, uint64_t now_ns);
bool timeout_tagged(uint64_t reg, uint64_t now_ns, uint64_t *end_ns);

/*
 * TIMEOUT_TIMESPEC and TIMEOUT_RING. What is left lies in the red zone below the thread's stack
 * pointer, and the argument points to it. Nobody writes there before the function that makes the
 * call does: signal handlers stay clear of it (System V AMD64 ABI, 3.2.2). Only for functions that
 * do not use it themselves, which is what liveness.h finds out.
 */
struct timeout_note {
	uint64_t magic;
	uint64_t nr, arg; /* the call, and the argument that the application has passed */
	uint64_t end_ns;
	struct timeout_timespec left;
	uint64_t ring[3]; /* struct io_uring_getevents_arg */
};
/* Where the note of a thread with this stack pointer lies. */
uint64_t timeout_note_addr(uint64_t sp);
/* What the argument of the call is then. */
uint64_t timeout_note_arg(uint64_t note_addr, enum timeout_form form);
/* Fills n; ring is the application's struct io_uring_getevents_arg (TIMEOUT_RING only). */
void timeout_note_fill(struct timeout_note *n, uint64_t note_addr, long nr, uint64_t arg,
		       uint64_t end_ns, uint64_t left_ns, const uint64_t ring[3]);
/* Is n the note of this call? */
bool timeout_note_valid(const struct timeout_note *n, long nr);
#endif
