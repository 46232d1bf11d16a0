// SPDX-License-Identifier: GPL-3.0-or-later
#include "guard_policy.h"

#include "../inject/clock.h"

#define SHARE	   1000U
#define PAUSE_MOST (600 * NS_PER_SEC)

enum guard_decision guard_decide(const struct guard_rule *rule, struct guard *g,
				 enum expr_truth when, bool clear, uint64_t since)
{
	if (clear)
		g->acted = false;
	if (when == EXPR_FALSE)
		return GUARD_WAIT;
	if (when == EXPR_UNKNOWN)
		return GUARD_UNKNOWN;
	if (rule->max && g->actions >= rule->max)
		return GUARD_SPENT;
	if (g->acted)
		return GUARD_HOLD;
	return since < rule->cooldown ? GUARD_COOL : GUARD_ACT;
}

void guard_acted(struct guard *g)
{
	g->acted = true;
	g->actions++;
}

uint64_t guard_pause(uint64_t every, uint64_t cost)
{
	uint64_t most = every > PAUSE_MOST ? every : PAUSE_MOST;
	uint64_t least = cost > most / SHARE ? most : cost * SHARE;

	return least > every ? least : every;
}

const char *guard_decision_name(enum guard_decision d)
{
	static const char *const names[] = {
		[GUARD_WAIT] = "wait", [GUARD_UNKNOWN] = "unknown", [GUARD_HOLD] = "hold",
		[GUARD_COOL] = "cool", [GUARD_SPENT] = "spent",	    [GUARD_ACT] = "act",
	};

	return names[d];
}
