// SPDX-License-Identifier: GPL-3.0-or-later
#include "expr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expr_value.h"

/* A tree in the order of the text: a node's parts come before it. */
enum node_kind { NODE_COMPARE, NODE_NOT, NODE_AND, NODE_OR };

struct node {
	enum node_kind kind;
	unsigned a, b; /* of NODE_COMPARE: a is the comparison's index */
};

/* Each comparison has one `and` or `or` at most, and some `not`s: as many as it is deep. */
#define NODES (EXPR_COMPARISONS * 2 + EXPR_COMPARISONS * EXPR_DEPTH)

struct expr {
	struct comparison compare[EXPR_COMPARISONS];
	size_t compares;
	struct node *node;
	size_t nodes;
};

struct parser {
	struct expr *e;
	const char *p; /* behind the token */
	struct expr_token token;
	unsigned depth;
	struct diag *d;
};

static void advance(struct parser *ps)
{
	ps->p = expr_token_next(ps->p, &ps->token);
}

static bool is_word(const struct parser *ps, const char *word)
{
	return strcmp(ps->token.text, word) == 0;
}

static int wrong(struct parser *ps, const char *expected)
{
	if (!ps->token.text[0])
		return diag_fail(ps->d, -EINVAL, HM_USAGE, "syntax", "as in: rss > 1.5G",
				 "the condition ends where %s is expected", expected);
	return diag_fail(ps->d, -EINVAL, HM_USAGE, "syntax", "as in: rss > 1.5G and swap = 0",
			 "'%.60s' stands in the condition where %s is expected", ps->token.text,
			 expected);
}

static int too_much(struct parser *ps, const char *what, int most)
{
	return diag_fail(ps->d, -E2BIG, HM_USAGE, "syntax", "make two conditions of it",
			 "the condition has more than %d %s", most, what);
}

static int add_node(struct parser *ps, struct node n, unsigned *out)
{
	struct node *grown;

	if (ps->e->nodes == NODES)
		return too_much(ps, "parts", NODES);
	grown = realloc(ps->e->node, (ps->e->nodes + 1) * sizeof(*grown));
	if (!grown)
		return diag_internal(ps->d, -ENOMEM, "the condition");
	ps->e->node = grown;
	*out = (unsigned)ps->e->nodes;
	grown[ps->e->nodes++] = n;
	return 0;
}

/* "20% of rss" or "rss"; what is none of these is a literal, whose kind the other side tells. */
static int parse_operand(struct parser *ps, struct operand *o)
{
	int err = operand_parse(&ps->token, o, ps->d);

	if (err == -ENOENT)
		return wrong(ps, "a fact or a value");
	if (err)
		return err;
	advance(ps);
	if (o->kind != OPERAND_PERCENT || !is_word(ps, "of"))
		return 0;
	advance(ps);
	err = operand_share(&ps->token, o, ps->d);
	if (err == -ENOENT)
		return wrong(ps, "the name of a fact");
	if (!err)
		advance(ps);
	return err;
}

static int parse_comparison(struct parser *ps, unsigned *out)
{
	struct comparison *c = &ps->e->compare[ps->e->compares];
	int err;

	if (ps->e->compares == EXPR_COMPARISONS)
		return too_much(ps, "comparisons", EXPR_COMPARISONS);
	memset(c, 0, sizeof(*c));
	err = parse_operand(ps, &c->left);
	if (err)
		return err;
	if (comparison_operator(&ps->token, &c->op)) {
		advance(ps);
		err = parse_operand(ps, &c->right);
	} else if (!operand_is_truth(&c->left)) {
		return wrong(ps, "one of > >= < <= = !=");
	} else {
		comparison_with_true(c);
	}
	if (!err)
		err = comparison_fit(c, ps->d);
	if (err)
		return err;
	return add_node(ps, (struct node){ NODE_COMPARE, (unsigned)ps->e->compares++, 0 }, out);
}

static int parse_or(struct parser *ps, unsigned *out);

static int parse_inner(struct parser *ps, unsigned *out);

static int parse_not(struct parser *ps, unsigned *out)
{
	unsigned inner;
	int err = parse_inner(ps, &inner);

	return err ? err : add_node(ps, (struct node){ NODE_NOT, inner, 0 }, out);
}

static int parse_group(struct parser *ps, unsigned *out)
{
	int err = parse_or(ps, out);

	if (err)
		return err;
	if (!is_word(ps, ")"))
		return wrong(ps, "and, or, or )");
	advance(ps);
	return 0;
}

static int parse_inner(struct parser *ps, unsigned *out)
{
	bool negation = is_word(ps, "not") || is_word(ps, "!");
	int err;

	if (!negation && !is_word(ps, "("))
		return parse_comparison(ps, out);
	if (ps->depth == EXPR_DEPTH)
		return too_much(ps, "levels", EXPR_DEPTH);
	ps->depth++;
	advance(ps);
	err = negation ? parse_not(ps, out) : parse_group(ps, out);
	ps->depth--;
	return err;
}

static int parse_chain(struct parser *ps, const char *word, enum node_kind kind,
		       int (*part)(struct parser *ps, unsigned *out), unsigned *out)
{
	int err = part(ps, out);

	while (!err && is_word(ps, word)) {
		unsigned right;

		advance(ps);
		err = part(ps, &right);
		if (!err)
			err = add_node(ps, (struct node){ kind, *out, right }, out);
	}
	return err;
}

static int parse_and(struct parser *ps, unsigned *out)
{
	return parse_chain(ps, "and", NODE_AND, parse_inner, out);
}

static int parse_or(struct parser *ps, unsigned *out)
{
	return parse_chain(ps, "or", NODE_OR, parse_and, out);
}

int expr_parse(const char *text, struct expr **out, struct diag *d)
{
	struct parser ps = { .p = text, .d = d };
	unsigned root;
	int err;

	*out = NULL;
	ps.e = calloc(1, sizeof(*ps.e));
	if (!ps.e)
		return diag_internal(d, -ENOMEM, "the condition");
	advance(&ps);
	err = parse_or(&ps, &root);
	if (!err && ps.token.text[0])
		err = wrong(&ps, "and, or, or the end");
	if (err) {
		expr_free(ps.e);
		return err;
	}
	*out = ps.e;
	return 0;
}

void expr_free(struct expr *e)
{
	if (!e)
		return;
	free(e->node);
	free(e);
}

static enum expr_truth both(enum expr_truth a, enum expr_truth b)
{
	if (a == EXPR_FALSE || b == EXPR_FALSE)
		return EXPR_FALSE;
	return a == EXPR_TRUE && b == EXPR_TRUE ? EXPR_TRUE : EXPR_UNKNOWN;
}

static enum expr_truth negated(enum expr_truth a)
{
	if (a == EXPR_UNKNOWN)
		return a;
	return a == EXPR_TRUE ? EXPR_FALSE : EXPR_TRUE;
}

/* The last node is the root, and no node comes before its parts. */
static enum expr_truth node_truth(const struct expr *e, const struct facts *f, const struct node *n)
{
	enum expr_truth a, b;

	if (n->kind == NODE_COMPARE)
		return comparison_truth(&e->compare[n->a], f);
	a = node_truth(e, f, &e->node[n->a]);
	if (n->kind == NODE_NOT)
		return negated(a);
	b = node_truth(e, f, &e->node[n->b]);
	return n->kind == NODE_AND ? both(a, b) : negated(both(negated(a), negated(b)));
}

enum expr_truth expr_eval(const struct expr *e, const struct facts *f)
{
	return node_truth(e, f, &e->node[e->nodes - 1]);
}

bool expr_names(const struct expr *e, enum fact_id id)
{
	for (size_t i = 0; i < e->compares; i++)
		if (operand_names(&e->compare[i].left, id) ||
		    operand_names(&e->compare[i].right, id))
			return true;
	return false;
}

enum fact_id expr_unknown(const struct expr *e, const struct facts *f)
{
	for (unsigned id = 0; id < FACT_COUNT; id++)
		if (expr_names(e, (enum fact_id)id) && !facts_known(f, (enum fact_id)id))
			return (enum fact_id)id;
	return FACT_COUNT;
}

static const char *explain(const struct expr *e, const struct facts *f, bool raw, bool known,
			   char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < e->compares; i++) {
		const struct comparison *c = &e->compare[i];
		char one[COMPARISON_TEXT];
		size_t n;

		if (known && comparison_truth(c, f) == EXPR_UNKNOWN)
			continue;
		comparison_explain(c, f, raw, one, sizeof(one));
		n = strlen(one) + (used ? 2 : 0);
		if (used + n + sizeof("...") > size) {
			snprintf(buf + used, size - used, "...");
			break;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", one);
	}
	return buf;
}

const char *expr_explain(const struct expr *e, const struct facts *f, bool raw, char *buf,
			 size_t size)
{
	return explain(e, f, raw, false, buf, size);
}

const char *expr_explain_known(const struct expr *e, const struct facts *f, bool raw, char *buf,
			       size_t size)
{
	return explain(e, f, raw, true, buf, size);
}
