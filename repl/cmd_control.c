// SPDX-License-Identifier: GPL-3.0-or-later
/* What steers a runbook: require, when, on-error. */
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "cond.h"

static unsigned effect_of(char *const *words, int n)
{
	const unsigned flags = CMD_PASSIVE | CMD_LOADED | CMD_CONTROL;
	enum fact_cost cost = COST_CALL;
	struct expr *e;
	struct diag d;

	if (cond_parse(words, n, &e, &d) == 0)
		cost = cond_cost(e);
	expr_free(e);
	return cost == COST_CALL ? flags | CMD_CALLS : flags;
}

static int check_condition(char *const *words, int n, struct diag *d)
{
	struct expr *e;
	int err = cond_parse(words, n, &e, d);

	expr_free(e);
	return err;
}

static int find(struct context *c, char *const *words, int n, struct cond *out, struct diag *d)
{
	struct expr *e;
	int err = cond_parse(words, n, &e, d);

	if (!err)
		err = cond_find(c, e, out, d);
	expr_free(e);
	return err;
}

/* ---- require */

unsigned effect_require(const struct args *a)
{
	return effect_of(a->argv, a->argc);
}

int check_require(const struct args *a, struct diag *d)
{
	return check_condition(a->argv, a->argc, d);
}

int cmd_require(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct cond cond;
	int err = find(c, a->argv, a->argc, &cond, d);

	(void)r;
	if (err)
		return err;
	if (cond.truth == EXPR_TRUE) {
		context_verbose(c, "required, and so it is: %s", cond.text);
		return 0;
	}
	c->unmet = true;
	if (cond.truth == EXPR_FALSE)
		return diag_fail(d, -ECANCELED, HM_UNMET, "not-met",
				 "what stands behind it is not run", "required, but: %s",
				 cond.text);
	return diag_fail(d, -ECANCELED, HM_UNMET, "not-known",
			 "`facts` shows what is known of this process",
			 "required, but undecided: %.250s; %.200s", cond.text, cond.missing);
}

/* ---- when */

#define NESTED_MOST 16 /* `when ... then when ...` in one line */

/* The words of the condition; behind them and `then` stands the command. -1: there is no `then`. */
static int condition_words(const struct args *a)
{
	for (int i = 0; i < a->argc; i++)
		if (strcmp(a->argv[i], "then") == 0)
			return i;
	return -1;
}

unsigned effect_when(const struct args *a)
{
	return effect_of(a->argv, condition_words(a));
}

static int check_nested(const struct args *a, struct diag *d)
{
	int nested = 1;

	for (int i = 0; i + 1 < a->argc; i++)
		nested += !strcmp(a->argv[i], "then") && !strcmp(a->argv[i + 1], "when");
	if (nested <= NESTED_MOST)
		return 0;
	return diag_fail(d, -E2BIG, HM_USAGE, "too-deep", "join the conditions with `and`",
			 "%d `when` stand in one another, more than %d", nested, NESTED_MOST);
}

/* The command itself is checked here too, so that a typing error in it is found before it is time.
 */
int check_when(const struct args *a, struct diag *d)
{
	int n = condition_words(a), err;
	const struct command *row;
	struct settings scratch;
	struct args inner;

	if (n < 0 || n == a->argc - 1)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "as in: when rss > 1G then trim",
				 "when: %s",
				 n < 0 ? "`then` is missing" : "no command follows `then`");
	err = check_nested(a, d);
	if (!err)
		err = check_condition(a->argv, n, d);
	if (err)
		return err;
	row = command_find(a->argv[n + 1]);
	if (!row)
		return command_unknown(a->argv[n + 1], d);
	settings_default(&scratch);
	err = args_parse(row, a->argc - n - 1, a->argv + n + 1, &inner, &scratch, d);
	if (!err)
		args_free(&inner);
	return err;
}

static const char *truth_name(enum expr_truth t)
{
	return t == EXPR_TRUE ? "true" : t == EXPR_FALSE ? "false" : "not known";
}

/* Decisions are told where they are what one wants to see. */
static void tell_decision(struct context *c, const struct cond *cond, const char *command)
{
	const char *why = cond->truth == EXPR_UNKNOWN ? cond->missing : cond->text;

	if (c->set.dry_run)
		context_note(c, "when: %s (%s): %s %s", truth_name(cond->truth), why, command,
			     cond->truth == EXPR_TRUE ? "would run" : "would not run");
	else
		context_verbose(c, "when: %s (%s): %s %s", truth_name(cond->truth), why, command,
				cond->truth == EXPR_TRUE ? "is run" : "is not run");
}

int cmd_when(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct settings *outer = c->over;
	struct settings mine = c->set;
	int n = condition_words(a);
	struct cond cond;
	int err = find(c, a->argv, n, &cond, d);

	if (err)
		return err;
	tell_decision(c, &cond, a->argv[n + 1]);
	if (cond.truth != EXPR_TRUE)
		return 0;
	/* options behind `when` hold for the command too */
	if (a->argv[0] != a->words[1])
		c->over = &mine;
	d->exit = command_run(c, a->argc - n - 1, a->argv + n + 1);
	c->over = outer;
	if (d->exit == HM_OK)
		return 0;
	/* it has told its error itself */
	r->silent = true;
	return -ECANCELED;
}

/* ---- on-error */

int check_on_error(const struct args *a, struct diag *d)
{
	if (strcmp(a->argv[0], "continue") == 0 || strcmp(a->argv[0], "stop") == 0)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "usage", "on-error continue, or on-error stop",
			 "on-error: '%.60s' is neither", a->argv[0]);
}

int cmd_on_error(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)r;
	(void)d;
	c->go_on = strcmp(a->argv[0], "continue") == 0;
	return 0;
}
