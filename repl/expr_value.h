// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EXPR_VALUE_H
#define HM_EXPR_VALUE_H
#include "expr.h"

/* The comparisons that a condition is made of (expr.h). Pure. */

/* Letters, digits and . _ % -, or an operator or parenthesis. "" at the end. A longer one is cut,
 * and then is nothing that is known. */
struct expr_token {
	char text[80];
};
/* The first token from p on; returns what is behind it. */
const char *expr_token_next(const char *p, struct expr_token *out);

enum operand_kind {
	OPERAND_NONE,
	OPERAND_FACT,
	OPERAND_SHARE,	 /* percent of fact */
	OPERAND_PERCENT, /* 20%: of a fraction, unless `of` follows */
	OPERAND_LITERAL, /* text, until the other side's kind is known */
	OPERAND_NUMBER,
	OPERAND_TEXT,
};

struct operand {
	enum operand_kind kind;
	enum fact_id fact;
	double percent;
	long double number; /* exact for every uint64_t */
	char text[32];
};

enum comparison_op { OP_GT, OP_GE, OP_LT, OP_LE, OP_EQ, OP_NE };

struct comparison {
	struct operand left, right;
	enum comparison_op op;
};

/* A fact or a literal. -ENOENT for what is neither, -EINVAL with d. */
HM_MUST_CHECK int operand_parse(const struct expr_token *t, struct operand *out, struct diag *d);
/* Makes a percentage one of the fact that t names. Errors as above. */
HM_MUST_CHECK int operand_share(const struct expr_token *t, struct operand *o, struct diag *d);
bool operand_is_truth(const struct operand *o);
bool operand_names(const struct operand *o, enum fact_id id);

bool comparison_operator(const struct expr_token *t, enum comparison_op *op);
void comparison_with_true(struct comparison *c);
/* Do both sides have one kind? Literals become values of it. Exit 2. */
HM_MUST_CHECK int comparison_fit(struct comparison *c, struct diag *d);
enum expr_truth comparison_truth(const struct comparison *c, const struct facts *f);
#define COMPARISON_TEXT 200
void comparison_explain(const struct comparison *c, const struct facts *f, bool raw, char *buf,
			size_t size);
#endif
