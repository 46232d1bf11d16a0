// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_STRAY_H
#define HM_STRAY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer.h"

/*
 * Threads that were asked to stop and did not, because the kernel would not let them
 * (uninterruptible sleep) or they got no CPU. The request cannot be taken back: they stop when they
 * come out, and somebody must let them go then. wait_event does so while it waits; who waits
 * otherwise calls stray_collect or stray_sleep. One that runs code of ours goes on with that, and
 * gives itself back. The list belongs to the calling thread, as tracing
 * does.
 */
#define STRAY_MAX 8

/* Is there room for one more? If not, nobody may be asked to stop. */
bool stray_room(void);
/* Takes a seized thread over; if there is no room it stays the caller's. */
void stray_add(struct tracee *th);
/* Lets go of those that have stopped by now; returns how many are still stuck. To be called from
 * time to time. */
size_t stray_collect(void);
/* Sleeps, and lets them go meanwhile as they stop. */
void stray_sleep(uint64_t ns);
/* Waits until none is left, at most limit_ns: one that is still stuck when we end sees its call
 * interrupted. */
void stray_settle(uint64_t limit_ns);
#endif
