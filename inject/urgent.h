// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_URGENT_H
#define HM_URGENT_H
#include <sched.h>
#include <stdbool.h>

/*
 * On a machine that is out of CPU a holder that waits for its turn holds a thread for milliseconds.
 * While we hold one we run in front of ordinary processes (sched(7), SCHED_FIFO); without the
 * permission for it nothing changes.
 */
struct urgent {
	bool raised;
	int policy;
	struct sched_param param;
};
void urgent_begin(struct urgent *u);
void urgent_end(struct urgent *u);
#endif
