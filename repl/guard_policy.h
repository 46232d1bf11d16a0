// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_POLICY_H
#define HM_GUARD_POLICY_H
#include <stdbool.h>
#include <stdint.h>

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
	uint64_t actions;
};

/*
 * clear: has the condition been cleared (it is false, or what the user has named instead is true)?
 * Then the next time that it is true counts as a new one. since: time since the last action on this
 * process, by whomever; UINT64_MAX: there was none.
 */
enum guard_decision guard_decide(const struct guard_rule *rule, struct guard *g,
				 enum expr_truth when, bool clear, uint64_t since);
void guard_acted(struct guard *g);
/* How long to wait until the next look: every, and longer where a look costs so much CPU time that
 * its share would be more than a thousandth; ten minutes at most, unless every is longer. */
uint64_t guard_pause(uint64_t every, uint64_t cost);
/* "wait", "unknown", "hold", "cool", "spent", "act" */
const char *guard_decision_name(enum guard_decision d);
#endif
