// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_URGENT_H
#define HM_URGENT_H
#include <sched.h>
#include <stdbool.h>

/*
 * A hold is a handful of round trips between us and the thread, and most of its length is waiting
 * for a CPU. So while we hold one:
 * - we run in front of ordinary processes (sched(7), SCHED_FIFO), for a machine that is out of CPU;
 * - CPUs that have nothing to do stay awake (a request of 0 us through /dev/cpu_dma_latency, the
 * kernel's Documentation/power/pm_qos_interface.rst), for a machine that is idle: waking one costs
 * more than the round trip. Both need a privilege and change nothing without it; both end with us
 * if we are killed.
 */
struct urgent {
	bool raised;
	int policy;
	struct sched_param param;
	bool awake;
	int latency; /* descriptor of the request; valid while awake */
};
void urgent_begin(struct urgent *u);
void urgent_end(struct urgent *u);
#endif
