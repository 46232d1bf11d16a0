// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nearest.h"

struct cursor {
	int argc, i;
	char **argv;
	struct options *out;
	const struct command *row; /* once the command's name was seen and is known */
	bool ended;		   /* after -- */
	struct diag *d;
};

/* Names that an unknown option is compared with: the program's, then the command's own. */
static const char *next_option(size_t i, const void *arg)
{
	const struct command *row = arg;
	size_t n;
	const struct option_row *common = option_table(&n);

	for (; n; common++, n--) {
		if (!common->name || !(common->places & OPT_ARGV))
			continue;
		if (i-- == 0)
			return common->name;
	}
	return row && i < COMMAND_OPTIONS ? row->options[i].name : NULL;
}

static int unknown_option(const struct cursor *c, const char *word)
{
	const char *near = nearest_option(word, next_option, c->row);
	char hint[160];

	if (c->out->file)
		snprintf(hint, sizeof(hint), "put -- before arguments of the runbook");
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean --%s? see heapmedic -h", near);
	else
		snprintf(hint, sizeof(hint), "see heapmedic -h");
	return diag_fail(c->d, -EINVAL, HM_USAGE, "unknown-option", hint, "unknown option '%.100s'",
			 word);
}

static void add_target(struct options *o, enum selector_kind kind, const char *text)
{
	o->target[o->targets++] = (struct selector){ .kind = kind, .text = text };
}

static int apply(struct cursor *c, const struct option_row *row, char *value)
{
	struct options *o = c->out;

	switch (row->kind) {
	case OPT_PID:
		add_target(o, SELECT_PID, value);
		return 0;
	case OPT_NAME:
		add_target(o, SELECT_NAME, value);
		return 0;
	case OPT_CGROUP:
		add_target(o, SELECT_CGROUP, value);
		return 0;
	case OPT_EXPR:
		o->expr[o->exprs++] = value;
		return 0;
	case OPT_FILE:
		if (o->file)
			return diag_fail(c->d, -EINVAL, HM_USAGE, "usage",
					 "a runbook can run another with `source FILE`",
					 "-f is given twice");
		o->file = value;
		return 0;
	case OPT_LOAD:
		if (o->load)
			return diag_fail(c->d, -EINVAL, HM_USAGE, "usage",
					 "`diff A B` compares two", "--load is given twice");
		o->load = value;
		return 0;
	case OPT_AUDIT:
		o->audit = value;
		return 0;
	case OPT_VERSION:
		o->version = true;
		return 0;
	default:
		return settings_apply(&o->set, row, value, c->d);
	}
}

/* The value of an option that wants one: what stands in the same word, or the next word. */
static int option_value(struct cursor *c, const char *name, const char *meta, char *attached,
			char **value)
{
	*value = attached;
	if (attached)
		return 0;
	if (c->i + 1 >= c->argc)
		return diag_fail(c->d, -EINVAL, HM_USAGE, "bad-option", "see heapmedic -h",
				 "%s needs %s", name, meta);
	*value = c->argv[++c->i];
	return 0;
}

static void keep_word(struct cursor *c, char *word)
{
	c->out->word[c->out->words++] = word;
}

/* An option of the command itself: kept among its words, checked again when it runs. */
static int take_own(struct cursor *c, char *word, int own, bool equals)
{
	keep_word(c, word);
	if (!c->row->options[own].meta || equals)
		return 0;
	if (c->i + 1 >= c->argc)
		return diag_fail(c->d, -EINVAL, HM_USAGE, "bad-option", "see heapmedic -h",
				 "%s needs %s", word, c->row->options[own].meta);
	keep_word(c, c->argv[++c->i]);
	return 0;
}

static int take_long(struct cursor *c, char *word)
{
	char *name = word + 2, *equals = strchr(name, '='), *value = NULL;
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = option_by_name(name, len, OPT_ARGV);
	int own = c->row ? command_option(c->row, name, len) : -1;
	int err = 0;

	if (own >= 0)
		return take_own(c, word, own, equals != NULL);
	if (!row)
		return unknown_option(c, word);
	if (!row->meta && equals)
		return diag_fail(c->d, -EINVAL, HM_USAGE, "bad-option", "see heapmedic -h",
				 "--%s takes no value", row->name);
	if (row->meta)
		err = option_value(c, word, row->meta, equals ? equals + 1 : NULL, &value);
	return err ? err : apply(c, row, value);
}

static int take_letters(struct cursor *c, char *word)
{
	for (char *p = word + 1; *p; p++) {
		const struct option_row *row = option_by_letter(*p, OPT_ARGV);
		char name[3] = { '-', *p, '\0' }, *value = NULL;
		int err = 0;

		if (!row)
			return unknown_option(c, word);
		if (row->meta)
			err = option_value(c, name, row->meta, p[1] ? p + 1 : NULL, &value);
		if (!err)
			err = apply(c, row, value);
		if (err || row->meta)
			return err;
	}
	return 0;
}

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static int take_word(struct cursor *c, char *word)
{
	struct options *o = c->out;

	if (o->words == 0 && !o->file && !c->ended && all_digits(word)) {
		add_target(o, SELECT_PID, word);
		return 0;
	}
	if (o->words == 0 && !o->file)
		c->row = command_find(word);
	keep_word(c, word);
	/* what follows is for the command behind it */
	if (o->words > 1 && c->row && (c->row->flags & CMD_PREFIX))
		c->ended = true;
	return 0;
}

/* A negative number and a lone - are words. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

static int take(struct cursor *c)
{
	char *word = c->argv[c->i];

	if (c->ended)
		return take_word(c, word);
	if (strcmp(word, "--") == 0) {
		c->ended = true;
		/* The command must not take what follows for its own options. */
		if (c->out->words && !c->out->file)
			keep_word(c, word);
		return 0;
	}
	if (!is_option(word))
		return take_word(c, word);
	return word[1] == '-' ? take_long(c, word) : take_letters(c, word);
}

static int check_together(struct options *o, struct diag *d)
{
	if (o->exprs && o->file)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "a runbook can be run with -e 'source FILE'",
				 "-e and -f do not go together");
	if (o->exprs && o->words)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "give each command its own -e",
				 "-e and a command ('%.60s') do not go together", o->word[0]);
	if (o->load && o->targets)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage",
				 "`diff FILE` compares a process with a snapshot of it",
				 "--load and a process do not go together");
	if (o->set.passive && o->set.via != VIA_AUTO)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "give one of them",
				 "--passive makes no calls, --via says how they are made");
	return 0;
}

/* Who wants JSON wants it of the error too, also where --json stands behind what is wrong. */
static void look_for_json(const struct cursor *c)
{
	for (int i = c->i; i < c->argc && strcmp(c->argv[i], "--") != 0; i++)
		if (strcmp(c->argv[i], "--json") == 0)
			c->out->set.json = true;
}

int options_parse(int argc, char **argv, struct options *out, struct diag *d)
{
	struct cursor c = { .argc = argc, .i = 1, .argv = argv, .out = out, .d = d };
	size_t most = (size_t)argc + 1;
	int err = 0;

	memset(out, 0, sizeof(*out));
	settings_default(&out->set);
	out->target = calloc(most, sizeof(*out->target));
	out->expr = calloc(most, sizeof(*out->expr));
	out->word = calloc(most, sizeof(*out->word));
	if (!out->target || !out->expr || !out->word)
		return diag_internal(d, -ENOMEM, "options");
	for (; c.i < argc && !err; c.i++)
		err = take(&c);
	if (err)
		look_for_json(&c);
	return err ? err : check_together(out, d);
}

void options_free(struct options *o)
{
	free(o->target);
	free(o->expr);
	free(o->word);
	memset(o, 0, sizeof(*o));
}
