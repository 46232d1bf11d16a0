// SPDX-License-Identifier: GPL-3.0-or-later
#include "guard_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/size.h"
#include "../inject/clock.h"
#include "commands.h"
#include "cond.h"

#define EVERY	   (30 * NS_PER_SEC)
#define EVERY_MIN  NS_PER_SEC
#define EVERY_MOST ((uint64_t)INT64_MAX / 4) /* with what the clock says it is a time still */
#define COOLDOWN   (600 * NS_PER_SEC)

void guard_args_free(struct guard_args *g)
{
	expr_free(g->when);
	expr_free(g->clear);
	grammar_free(&g->action);
}

static int parse_max(const char *text, uint64_t *out, struct diag *d)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out > 0)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "a number from 1 on",
			 "--max: '%.60s' is no number of actions", text);
}

static int parse_condition(const char *text, struct expr **out, struct diag *d)
{
	char *words[] = { (char *)text };

	return cond_parse(words, 1, out, d);
}

static int parse_times(const struct args *a, struct guard_args *g, struct diag *d)
{
	int err = 0;

	g->every = EVERY;
	g->rule.cooldown = COOLDOWN;
	if (a->opt[GUARD_EVERY])
		err = time_parse_arg("--every", a->opt[GUARD_EVERY], &g->every, d);
	if (!err && g->every < EVERY_MIN)
		err = diag_fail(d, -ERANGE, HM_USAGE, "bad-time", "1s at least",
				"--every: '%.60s' is too short", a->opt[GUARD_EVERY]);
	if (!err && a->opt[GUARD_COOLDOWN])
		err = time_parse_arg("--cooldown", a->opt[GUARD_COOLDOWN], &g->rule.cooldown, d);
	if (!err && a->opt[GUARD_FOR])
		err = time_parse_arg("--for", a->opt[GUARD_FOR], &g->span, d);
	if (g->every > EVERY_MOST)
		g->every = EVERY_MOST;
	if (g->span > EVERY_MOST)
		g->span = EVERY_MOST;
	if (!err && a->opt[GUARD_MAX])
		err = parse_max(a->opt[GUARD_MAX], &g->rule.max, d);
	return err;
}

/* The command that `when ... then` leads to, however often: *argc words at *argv. */
static const struct command *innermost(int *argc, char *const **argv)
{
	for (int i = 1; i + 1 < *argc && strcmp((*argv)[0], "when") == 0; i++) {
		if (strcmp((*argv)[i], "then") != 0)
			continue;
		*argv += i + 1;
		*argc -= i + 1;
		i = 0;
	}
	return command_find((*argv)[0]);
}

/* A guard changes what its action changes; it asks for facts by a call where that is allowed. */
static unsigned effect_of_action(const struct command *row, const struct args *a)
{
	unsigned does = row->effect ? row->effect(a) : row->flags;
	unsigned flags = CMD_PASSIVE | CMD_CALLS | (does & (CMD_HOLDS | CMD_WRITES));

	/* it can do nothing else: so that it is refused here, not when it is time */
	return (does & CMD_CALLS) && !(does & CMD_PASSIVE) ? flags | CMD_HOLDS : flags;
}

static int check_action(struct guard_args *g, struct diag *d)
{
	static const char *const endless[] = { "guard", "watch", "source", "quit" };
	int argc = g->action.v[0].argc, err;
	char *const *argv = g->action.v[0].argv;
	const struct command *row = command_find(argv[0]);
	struct settings scratch;
	struct args inner;

	if (!row)
		return command_unknown(argv[0], d);
	settings_default(&scratch);
	err = args_parse(row, argc, argv, &inner, &scratch, d);
	if (err)
		return err;
	args_free(&inner);
	row = innermost(&argc, &argv);
	for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++)
		if (strcmp(row->name, endless[i]) == 0)
			return diag_fail(d, -EINVAL, HM_USAGE, "usage", "as in: --do 'trim'",
					 "--do cannot run %s", row->name);
	err = args_parse(row, argc, argv, &inner, &scratch, d);
	if (err)
		return err;
	g->effect = effect_of_action(row, &inner);
	args_free(&inner);
	return 0;
}

/* What is done is one command, of those that end by themselves. */
static int parse_action(const char *text, struct guard_args *g, struct diag *d)
{
	unsigned line;
	int err = grammar_parse(text, strlen(text), 1, NULL, &g->action, &line, d);

	if (err == -EAGAIN || (!err && g->action.n != 1))
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "as in: --do 'trim'",
				 "--do takes one command");
	return err ? err : check_action(g, d);
}

int guard_args(const struct args *a, struct guard_args *g, struct diag *d)
{
	int err;

	memset(g, 0, sizeof(*g));
	if (!a->opt[GUARD_WHEN] || !a->opt[GUARD_DO])
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "as in: guard --when 'rss > 3G' --do trim",
				 "guard needs --when and --do");
	err = parse_times(a, g, d);
	if (!err)
		err = parse_condition(a->opt[GUARD_WHEN], &g->when, d);
	if (!err && a->opt[GUARD_CLEAR])
		err = parse_condition(a->opt[GUARD_CLEAR], &g->clear, d);
	if (!err)
		err = parse_action(a->opt[GUARD_DO], g, d);
	if (err)
		guard_args_free(g);
	return err;
}
