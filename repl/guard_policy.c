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

bool guard_is_clear(const struct expr *when, enum expr_truth truth, const struct facts *then,
		    const struct facts *now)
{
	if (truth != EXPR_UNKNOWN || !then)
		return truth == EXPR_FALSE;
	for (unsigned id = 0; id < FACT_COUNT; id++)
		if (expr_names(when, (enum fact_id)id) && facts_known(then, (enum fact_id)id) &&
		    !facts_known(now, (enum fact_id)id))
			return false;
	return true;
}

/* With these exit codes nothing was done to the target, or it was restored. */
static bool was_refused(enum hm_exit code)
{
	return code != HM_OK && code != HM_UNMET && code != HM_RUNNING && code != HM_DIED;
}

void guard_acted(struct guard *g, enum hm_exit code)
{
	g->acted = !was_refused(code);
	g->actions++;
	g->failed += code != HM_OK;
	g->last = code;
	if ((code == HM_RUNNING || code == HM_DIED) && code > g->worst)
		g->worst = code;
}

enum hm_exit guard_exit(const struct guard_rule *rule, const struct guard *g)
{
	bool spent = rule->max && g->actions >= rule->max;

	return spent && g->last > g->worst ? g->last : g->worst;
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
