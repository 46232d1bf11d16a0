// SPDX-License-Identifier: GPL-3.0-or-later
#include "fault_point.h"

#ifdef HM_FAULT_POINTS
#include <signal.h>
#include <stdlib.h>

/* $HEAPMEDIC_KILL_AT=N: SIGKILL to ourselves in front of the Nth request. */
void fault_point(void)
{
	static unsigned long at, limit;

	if (at++ == 0) {
		const char *text = getenv("HEAPMEDIC_KILL_AT");

		limit = text ? strtoul(text, NULL, 10) : 0;
	}
	if (at == limit)
		raise(SIGKILL);
}
#else
typedef int fault_point_unused; /* a file must declare something */
#endif
