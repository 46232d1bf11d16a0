// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_POLICY_H
#define HM_GUARD_POLICY_H
#include <stdbool.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "expr.h"

/* When a guard acts. Pure: what was seen in, what to do out; times are ns of one clock. */
enum guard_decision {
	GUARD_WAIT,    /* the condition is false */
	GUARD_UNKNOWN, /* a fact that it needs is not known */
	GUARD_HOLD,  /* true, as ever since the last action: that has not helped, nor would another
		      */
	GUARD_COOL,  /* true again, but it is too soon after the last action */
	GUARD_SPENT, /* true, but there were --max actions */
	GUARD_ACT,
};

struct guard_rule {
	uint64_t cooldown;
	uint64_t max; /* actions, 0: any number */
};

struct guard {
	bool acted; /* and since then it was not cleared */
	uint64_t actions, failed;
	enum hm_exit last, worst; /* of the last action; of those that may have hurt (8, 9) */
};

/*
 * clear: has the condition been cleared (it is false, or what the user has named instead is true)?
 * Then the next time that it is true counts as a new one. since: time since the last action on this
 * process, by whomever; UINT64_MAX: there was none.
 */
enum guard_decision guard_decide(const struct guard_rule *rule, struct guard *g,
				 enum expr_truth when, bool clear, uint64_t since);
/*
 * Has the condition been cleared since the action? It is false, or cannot be told although no fact
 * that it names is less known than it was then (NULL: there was no action): what the process does
 * not have, jemalloc say, was no reason to act, and is none not to act again.
 */
bool guard_is_clear(const struct expr *when, enum expr_truth truth, const struct facts *then,
		    const struct facts *now);
/* code: what the action ended with. One that was refused is tried again after the cooldown, also if
 * the condition was true all the time: nothing tells that it would not help. */
void guard_acted(struct guard *g, enum hm_exit code);
/* What the guard itself ends with: 8 or 9 if an action did, and that of the last action where there
 * were as many as there may be. */
HM_MUST_CHECK enum hm_exit guard_exit(const struct guard_rule *rule, const struct guard *g);
/* How long to wait until the next look: every, and longer where a look costs so much CPU time that
 * its share would be more than a thousandth; ten minutes at most, unless every is longer. */
uint64_t guard_pause(uint64_t every, uint64_t cost);
/* "wait", "unknown", "hold", "cool", "spent", "act" */
const char *guard_decision_name(enum guard_decision d);
#endif
