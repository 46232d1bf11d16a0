// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_ARGS_H
#define HM_GUARD_ARGS_H
#include "command.h"
#include "expr.h"
#include "grammar.h"
#include "guard_policy.h"

/* What the words behind `guard` say. */
struct guard_args {
	struct expr *when, *clear; /* clear NULL: when `when` is false */
	struct grammar action;
	struct guard_rule rule;
	uint64_t every;
	uint64_t span;	 /* --for; 0: without end */
	unsigned effect; /* CMD_..., with what the action does */
};

/* Exit 2; then nothing of *g has to be freed. Else the caller ends it with guard_args_free. */
HM_MUST_CHECK int guard_args(const struct args *a, struct guard_args *g, struct diag *d);
void guard_args_free(struct guard_args *g);
#endif
