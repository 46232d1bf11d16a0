// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SLEPT_H
#define HM_SLEPT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/*
 * How long a sleeping thread has slept. The kernel tells the time at which a thread last ran
 * (se.exec_start of /proc/PID/task/TID/sched, in the clock of its CPU), which for a thread asleep
 * is when it fell asleep. A look at ourselves on the same CPU tells the time now.
 * nr_voluntary_switches proves later that it has not gone to sleep again in between. It cannot tell
 * a thread that has woken by itself and was stopped on its way into its next wait, a matter of
 * microseconds, or of a busy CPU: the caller compares the calls, and does not believe a sleep that
 * may have lasted to its end (waited.c). What remains is a thread that something else has woken and
 * that makes the very same call again; that wait ends early by what the one before it took.
 */
struct slept {
	uint64_t ns;	   /* asleep so far when at was taken; 0: not known */
	uint64_t at;	   /* clock_now */
	uint64_t switches; /* nr_voluntary_switches of the thread */
};

/* Pure: the two numbers of a sched file. -EINVAL if they are not there. */
HM_MUST_CHECK int slept_parse(const char *text, uint64_t *exec_start_ns, uint64_t *switches);
/* Measures; ns stays 0 where it cannot be known. Moves us to the thread's CPU for a moment. */
void slept_measure(int procfd, pid_t tid, struct slept *out);
/*
 * For a thread that has been stopped since: its sleep until the stop, or 0 if that stop is not the
 * only thing that has woken it since the measurement.
 */
uint64_t slept_until_stop(int procfd, pid_t tid, const struct slept *s, uint64_t stopped_at);
#endif
