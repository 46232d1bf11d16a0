// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_COND_H
#define HM_COND_H
#include "context.h"
#include "expr.h"

/* A condition as it is found to be: of the process, or of a snapshot. */
struct cond {
	enum expr_truth truth;
	char text[EXPR_TEXT];	 /* what decided (expr_explain) */
	char missing[EXPR_TEXT]; /* for EXPR_UNKNOWN: which fact is not known, and why */
	struct facts facts;
};

/* Words, joined by blanks, as a condition. Exit 2. The caller frees *out with expr_free. */
HM_MUST_CHECK int cond_parse(char *const *words, int n, struct expr **out, struct diag *d);
/* What is known of the facts costs so much (the dearest that it names). */
enum fact_cost cond_cost(const struct expr *e);
/* Reads no more than it takes to decide: what the kernel tells at once comes first. The command's
 * process is open (context_process). */
HM_MUST_CHECK int cond_find(struct context *c, const struct expr *e, struct cond *out,
			    struct diag *d);
#endif
