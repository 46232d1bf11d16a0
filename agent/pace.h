// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PACE_H
#define HM_PACE_H
#include <stdbool.h>
#include <stdint.h>

/*
 * How often to do what costs CPU time, when somebody else needs the CPU more: as often as it is
 * asked for, but with no more than a hundredth of one CPU. Pure; times are ns of one clock. Zeroed:
 * it has not been done yet.
 */
#define PACE_SHARE 100

struct pace {
	bool done;
	uint64_t last; /* when it was begun */
	uint64_t cost; /* CPU time that it took then */
};
/* Is it to be done now? every is how often it is asked; a tick that comes a little early counts. */
bool pace_due(const struct pace *p, uint64_t now, uint64_t every);
void pace_done(struct pace *p, uint64_t begun, uint64_t cost);
/* How far apart the times are now at which it is done. */
uint64_t pace_period(const struct pace *p, uint64_t every);
#endif
