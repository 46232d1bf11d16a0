// SPDX-License-Identifier: GPL-3.0-or-later
#include "pace.h"

bool pace_due(const struct pace *p, uint64_t now, uint64_t every)
{
	uint64_t since = now > p->last ? now - p->last : 0;

	return !p->done || (since + every / 10) / PACE_SHARE >= p->cost;
}

void pace_done(struct pace *p, uint64_t begun, uint64_t cost)
{
	*p = (struct pace){ .done = true, .last = begun, .cost = cost };
}

uint64_t pace_period(const struct pace *p, uint64_t every)
{
	uint64_t least;

	if (__builtin_mul_overflow(p->cost, PACE_SHARE, &least))
		least = UINT64_MAX;
	return every > least ? every : least;
}
