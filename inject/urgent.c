// SPDX-License-Identifier: GPL-3.0-or-later
#include "urgent.h"

void urgent_begin(struct urgent *u)
{
	const struct sched_param lowest = { .sched_priority = 1 };

	if (u->raised)
		return;
	u->policy = sched_getscheduler(0);
	u->raised = u->policy >= 0 && sched_getparam(0, &u->param) == 0 &&
		    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

void urgent_end(struct urgent *u)
{
	if (!u->raised)
		return;
	/* lowering is always permitted */
	(void)!sched_setscheduler(0, u->policy, &u->param);
	u->raised = false;
}
