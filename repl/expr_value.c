// SPDX-License-Identifier: GPL-3.0-or-later
#include "expr_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/size.h"
#include "fact_text.h"

#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%-"
#define MARK "<>=!"
#define NS   1000000000ULL

/* ---- tokens */

const char *expr_token_next(const char *p, struct expr_token *out)
{
	size_t n;

	p += strspn(p, " \t\n");
	n = strspn(p, WORD);
	if (!n)
		n = strspn(p, MARK);
	/* one of a kind of its own, so that it can be named in an error */
	if (!n && *p)
		n = 1;
	/* "!" before anything but "=" is `not` */
	if (p[0] == '!' && n > 1 && p[1] != '=')
		n = 1;
	snprintf(out->text, sizeof(out->text), "%.*s", n < sizeof(out->text) ? (int)n : 79, p);
	return p + n;
}

static const char *const operators[] = {
	[OP_GT] = ">", [OP_GE] = ">=", [OP_LT] = "<", [OP_LE] = "<=", [OP_EQ] = "=", [OP_NE] = "!=",
};

bool comparison_operator(const struct expr_token *t, enum comparison_op *op)
{
	*op = OP_EQ;
	if (strcmp(t->text, "==") == 0)
		return true;
	for (unsigned i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (strcmp(t->text, operators[i]) == 0) {
			*op = (enum comparison_op)i;
			return true;
		}
	return false;
}

/* ---- operands */

static bool is_reserved(const char *text)
{
	static const char *const words[] = { "and", "or", "not", "of" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

/* A number with what may stand behind it. */
static bool is_numeral(const char *text)
{
	return (text[0] >= '0' && text[0] <= '9') || text[0] == '-' || text[0] == '.';
}

static int percent_parse(const char *text, struct operand *o, struct diag *d)
{
	char *end;

	o->percent = strtod(text, &end);
	if (end == text || strcmp(end, "%") != 0 || !isfinite(o->percent) || o->percent < 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "as in: 20% of rss",
				 "'%.60s' is no percentage", text);
	o->kind = OPERAND_PERCENT;
	return 0;
}

int operand_parse(const struct expr_token *t, struct operand *o, struct diag *d)
{
	if (!t->text[0] || !strchr(WORD, t->text[0]) || is_reserved(t->text))
		return -ENOENT;
	*o = (struct operand){ .kind = OPERAND_FACT, .fact = fact_by_name(t->text) };
	if (o->fact < FACT_COUNT)
		return 0;
	if (strchr(t->text, '%') && is_numeral(t->text))
		return percent_parse(t->text, o, d);
	if (!is_numeral(t->text) && strcmp(t->text, "true") != 0 && strcmp(t->text, "false") != 0)
		return fact_unknown(t->text, d);
	if (strlen(t->text) >= sizeof(o->text))
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "as in: rss > 1.5G",
				 "'%.60s' is no value", t->text);
	o->kind = OPERAND_LITERAL;
	snprintf(o->text, sizeof(o->text), "%.31s", t->text);
	return 0;
}

int operand_share(const struct expr_token *t, struct operand *o, struct diag *d)
{
	enum fact_kind kind;

	if (!t->text[0] || !strchr(WORD, t->text[0]))
		return -ENOENT;
	o->fact = fact_by_name(t->text);
	if (o->fact == FACT_COUNT)
		return fact_unknown(t->text, d);
	kind = fact_info(o->fact)->kind;
	if (kind == KIND_BOOL || kind == KIND_TEXT)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "as in: 20% of rss",
				 "there is no percentage of %s: it is no number", t->text);
	o->kind = OPERAND_SHARE;
	return 0;
}

bool operand_is_truth(const struct operand *o)
{
	return o->kind == OPERAND_FACT && fact_info(o->fact)->kind == KIND_BOOL;
}

bool operand_names(const struct operand *o, enum fact_id id)
{
	return (o->kind == OPERAND_FACT || o->kind == OPERAND_SHARE) && o->fact == id;
}

void comparison_with_true(struct comparison *c)
{
	c->op = OP_EQ;
	c->right = (struct operand){ .kind = OPERAND_LITERAL, .text = "true" };
}

/* ---- kinds */

static bool has_fact(const struct operand *o)
{
	return o->kind == OPERAND_FACT || o->kind == OPERAND_SHARE;
}

static int number_parse(const char *text, long double *out)
{
	char *end;

	*out = strtold(text, &end);
	return end == text || *end || !isfinite(*out) ? -EINVAL : 0;
}

static int literal_parse(struct operand *o, enum fact_kind kind)
{
	uint64_t n = 0;
	int err = 0;

	o->number = 0;
	if (kind == KIND_TEXT) {
		o->kind = OPERAND_TEXT;
		return 0;
	}
	if (kind == KIND_BYTES) {
		err = size_parse(o->text, &n);
		o->number = n;
	} else if (kind == KIND_SECONDS) {
		err = time_parse(o->text, &n);
		o->number = (long double)n / NS;
	} else if (kind == KIND_BOOL) {
		o->number = strcmp(o->text, "true") == 0;
		err = o->number != 0 || strcmp(o->text, "false") == 0 ? 0 : -EINVAL;
	} else {
		err = number_parse(o->text, &o->number);
	}
	o->kind = OPERAND_NUMBER;
	return err;
}

static const char *kind_example(enum fact_kind kind)
{
	switch (kind) {
	case KIND_BYTES:
		return "a size, as in: 1.5G";
	case KIND_SECONDS:
		return "a time, as in: 10m";
	case KIND_FRACTION:
		return "a number from 0 to 1, or a percentage: 0.35, 35%";
	case KIND_BOOL:
		return "true or false";
	case KIND_TEXT:
		return "a version, as in: 2.34";
	default:
		return "a number";
	}
}

static int value_fit(struct operand *o, enum fact_id with, struct diag *d)
{
	const struct fact_info *info = fact_info(with);

	if (o->kind == OPERAND_PERCENT && info->kind == KIND_FRACTION) {
		o->kind = OPERAND_NUMBER;
		o->number = (long double)o->percent / 100;
		return 0;
	}
	if (o->kind == OPERAND_PERCENT)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "as in: 20% of rss",
				 "%g%% of what? %s is not a fraction", o->percent, info->name);
	if (literal_parse(o, info->kind) == 0)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", kind_example(info->kind),
			 "'%.30s' cannot be compared with %s", o->text, info->name);
}

static bool same_kind(enum fact_kind a, enum fact_kind b)
{
	a = a == KIND_COUNTER ? KIND_COUNT : a;
	b = b == KIND_COUNTER ? KIND_COUNT : b;
	return a == b;
}

int comparison_fit(struct comparison *c, struct diag *d)
{
	bool left = has_fact(&c->left), right = has_fact(&c->right);
	enum fact_kind kind;
	int err = 0;

	if (!left && !right)
		return diag_fail(d, -EINVAL, HM_USAGE, "syntax", "as in: rss > 1.5G",
				 "a comparison has a fact on one side at least");
	if (left && right) {
		const struct fact_info *a = fact_info(c->left.fact), *b = fact_info(c->right.fact);

		if (!same_kind(a->kind, b->kind))
			return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", kind_example(a->kind),
					 "%s cannot be compared with %s: they are not of one kind",
					 a->name, b->name);
	} else if (left) {
		err = value_fit(&c->right, c->left.fact, d);
	} else {
		err = value_fit(&c->left, c->right.fact, d);
	}
	if (err)
		return err;
	kind = fact_info(left ? c->left.fact : c->right.fact)->kind;
	if (kind == KIND_BOOL && c->op != OP_EQ && c->op != OP_NE)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value",
				 "use = or !=", "%s is true or false: nothing is larger",
				 fact_info(left ? c->left.fact : c->right.fact)->name);
	return 0;
}

/* ---- values */

static bool number_of(const struct operand *o, const struct facts *f, long double *out)
{
	if (o->kind == OPERAND_NUMBER) {
		*out = o->number;
		return true;
	}
	if (!facts_known(f, o->fact))
		return false;
	*out = fact_info(o->fact)->kind == KIND_FRACTION ? (long double)f->v[o->fact].fraction
							 : (long double)f->v[o->fact].n;
	if (o->kind == OPERAND_SHARE)
		*out = *out * (long double)o->percent / 100;
	return true;
}

static const char *text_of(const struct operand *o, const struct facts *f)
{
	if (o->kind == OPERAND_TEXT)
		return o->text;
	return facts_known(f, o->fact) ? f->v[o->fact].text : NULL;
}

/* Part by part, as numbers where both are: 2.9 is before 2.34. */
static int version_compare(const char *a, const char *b)
{
	for (;;) {
		unsigned long x = strtoul(a, (char **)&a, 10), y = strtoul(b, (char **)&b, 10);

		if (x != y)
			return x < y ? -1 : 1;
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		if (!*a)
			return 0;
		a++;
		b++;
	}
}

/* The sign of left - right; false where it is not known. */
static bool order_of(const struct comparison *c, const struct facts *f, int *order)
{
	const struct operand *fact = has_fact(&c->left) ? &c->left : &c->right;
	long double a, b;

	if (fact_info(fact->fact)->kind == KIND_TEXT) {
		const char *x = text_of(&c->left, f), *y = text_of(&c->right, f);

		if (x && y)
			*order = version_compare(x, y);
		return x && y;
	}
	if (!number_of(&c->left, f, &a) || !number_of(&c->right, f, &b))
		return false;
	*order = (a > b) - (a < b);
	return true;
}

static bool holds(enum comparison_op op, int order)
{
	switch (op) {
	case OP_GT:
		return order > 0;
	case OP_GE:
		return order >= 0;
	case OP_LT:
		return order < 0;
	case OP_LE:
		return order <= 0;
	case OP_EQ:
		return order == 0;
	default:
		return order != 0;
	}
}

enum expr_truth comparison_truth(const struct comparison *c, const struct facts *f)
{
	int order;

	if (!order_of(c, f, &order))
		return EXPR_UNKNOWN;
	return holds(c->op, order) ? EXPR_TRUE : EXPR_FALSE;
}

/* ---- telling */

static void number_text(long double n, enum fact_kind kind, bool raw, char *buf, size_t size)
{
	char text[SIZE_TEXT];

	if (n < 0 || n > (long double)UINT64_MAX)
		kind = KIND_COUNT;
	if (kind == KIND_BYTES && !raw)
		snprintf(buf, size, "%s", size_format((uint64_t)n, text));
	else if (kind == KIND_BYTES)
		snprintf(buf, size, "%.0Lf", n);
	else if (kind == KIND_SECONDS && !raw && n < (long double)(UINT64_MAX / NS))
		snprintf(buf, size, "%s", time_format((uint64_t)(n * NS), text));
	else if (kind == KIND_BOOL)
		snprintf(buf, size, "%s", n != 0 ? "true" : "false");
	else
		snprintf(buf, size, "%.12Lg", n);
}

/* kind is that of the comparison. */
static void operand_text(const struct operand *o, const struct facts *f, enum fact_kind kind,
			 bool raw, char *buf, size_t size)
{
	const char *name = o->fact < FACT_COUNT ? fact_info(o->fact)->name : "";
	char text[64] = "(not known)";
	long double n;

	if (o->kind == OPERAND_TEXT) {
		snprintf(buf, size, "%s", o->text);
	} else if (o->kind == OPERAND_FACT) {
		if (facts_known(f, o->fact))
			fact_text(f, o->fact, raw, text, sizeof(text));
		snprintf(buf, size, "%s %s", name, text);
	} else {
		if (number_of(o, f, &n))
			number_text(n, kind, raw, text, sizeof(text));
		if (o->kind == OPERAND_SHARE)
			snprintf(buf, size, "%s (%g%% of %s)", text, o->percent, name);
		else
			snprintf(buf, size, "%s", text);
	}
}

void comparison_explain(const struct comparison *c, const struct facts *f, bool raw, char *buf,
			size_t size)
{
	/* what is found instead of what is asked for */
	static const enum comparison_op opposite[] = {
		[OP_GT] = OP_LE, [OP_GE] = OP_LT, [OP_LT] = OP_GE,
		[OP_LE] = OP_GT, [OP_EQ] = OP_NE, [OP_NE] = OP_EQ,
	};
	enum fact_kind kind = fact_info(has_fact(&c->left) ? c->left.fact : c->right.fact)->kind;
	enum comparison_op op = c->op;
	char left[96], right[96];

	if (comparison_truth(c, f) == EXPR_FALSE)
		op = opposite[op];
	operand_text(&c->left, f, kind, raw, left, sizeof(left));
	operand_text(&c->right, f, kind, raw, right, sizeof(right));
	snprintf(buf, size, "%s %s %s", left, operators[op], right);
}
