// SPDX-License-Identifier: GPL-3.0-or-later
#include "urgent.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static void keep_awake(struct urgent *u)
{
	const int32_t us = 0;

	u->latency = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	if (u->latency < 0)
		return;
	/* the request stands while the descriptor is open */
	u->awake = write(u->latency, &us, sizeof(us)) == sizeof(us);
	if (!u->awake)
		close(u->latency);
}

void urgent_begin(struct urgent *u)
{
	const struct sched_param lowest = { .sched_priority = 1 };

	if (!u->awake)
		keep_awake(u);
	if (u->raised)
		return;
	u->policy = sched_getscheduler(0);
	u->raised = u->policy >= 0 && sched_getparam(0, &u->param) == 0 &&
		    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

void urgent_end(struct urgent *u)
{
	if (u->awake)
		close(u->latency);
	u->awake = false;
	if (!u->raised)
		return;
	/* lowering is always permitted */
	(void)!sched_setscheduler(0, u->policy, &u->param);
	u->raised = false;
}
