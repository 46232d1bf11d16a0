// SPDX-License-Identifier: GPL-3.0-or-later
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"

struct cursor {
	const struct command *row;
	int argc, i;
	char *const *argv;
	struct args *out;
	struct settings *s;
	struct diag *d;
};

/* Names that an unknown option is compared with: the command's own, then those of any command. */
static const char *next_option(size_t i, const void *arg)
{
	const struct command *row = arg;
	const struct option_row *common;
	size_t n, own = 0;

	while (own < COMMAND_OPTIONS && row->options[own].name)
		own++;
	if (i < own)
		return row->options[i].name;
	common = option_table(&n);
	for (i -= own; n; common++, n--) {
		if (!common->name || !(common->places & OPT_LINE))
			continue;
		if (i-- == 0)
			return common->name;
	}
	return NULL;
}

static int unknown_option(const struct cursor *c, const char *word)
{
	const char *near = nearest_option(word, next_option, c->row);
	char hint[160];

	if (near)
		snprintf(hint, sizeof(hint), "did you mean --%s? see `help %s`", near,
			 c->row->name);
	else
		snprintf(hint, sizeof(hint), "see `help %s`", c->row->name);
	return diag_fail(c->d, -EINVAL, HM_USAGE, "unknown-option", hint,
			 "%s has no option '%.100s'", c->row->name, word);
}

/* The value of an option: behind `=`, or the next word. */
static int take_value(struct cursor *c, const char *name, const char *equals, const char *meta,
		      const char **value)
{
	if (!meta && equals)
		return diag_fail(c->d, -EINVAL, HM_USAGE, "bad-option",
				 "see `help` and the command's name", "%s takes no value", name);
	*value = NULL;
	if (!meta)
		return 0;
	if (equals)
		*value = equals + 1;
	else if (c->i + 1 < c->argc)
		*value = c->argv[++c->i];
	else
		return diag_fail(c->d, -EINVAL, HM_USAGE, "bad-option",
				 "see `help` and the command's name", "%s needs %s", name, meta);
	return 0;
}

static int take_long(struct cursor *c, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '='), *value = NULL;
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *common;
	int own = command_option(c->row, name, len);
	int err;

	if (own >= 0) {
		err = take_value(c, word, equals, c->row->options[own].meta, &value);
		if (!err)
			c->out->opt[own] = value ? value : "";
		return err;
	}
	common = option_by_name(name, len, OPT_LINE);
	if (!common)
		return unknown_option(c, word);
	err = take_value(c, word, equals, common->meta, &value);
	return err ? err : settings_apply(c->s, common, value, c->d);
}

/* Only letters without a value stand behind a command. */
static int take_letters(struct cursor *c, const char *word)
{
	int err = 0;

	for (const char *p = word + 1; *p && !err; p++) {
		const struct option_row *common = option_by_letter(*p, OPT_LINE);

		err = common ? settings_apply(c->s, common, NULL, c->d) : unknown_option(c, word);
	}
	return err;
}

static int check_count(const struct cursor *c)
{
	const struct command *row = c->row;
	char hint[200];

	if (c->s->help || (c->out->argc >= row->min && (row->max < 0 || c->out->argc <= row->max)))
		return 0;
	snprintf(hint, sizeof(hint), "usage: %s%s%s", row->name, *row->usage ? " " : "",
		 row->usage);
	return diag_fail(c->d, -EINVAL, HM_USAGE, "usage", hint, "%s: %s arguments (%d)", row->name,
			 c->out->argc < row->min ? "too few" : "too many", c->out->argc);
}

int args_parse(const struct command *row, int argc, char *const *argv, struct args *out,
	       struct settings *s, struct diag *d)
{
	struct cursor c = { .row = row, .argc = argc, .argv = argv, .out = out, .s = s, .d = d };
	bool options = true;
	int err = 0;

	memset(out, 0, sizeof(*out));
	out->words = argv;
	out->argv = calloc((size_t)argc + 1, sizeof(*out->argv));
	if (!out->argv)
		return diag_internal(d, -ENOMEM, "arguments");
	for (c.i = 1; c.i < argc && !err; c.i++) {
		char *word = argv[c.i];

		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && strncmp(word, "--", 2) == 0)
			err = take_long(&c, word);
		else if (options && word[0] == '-' && word[1] && !strchr("0123456789.", word[1]))
			err = take_letters(&c, word);
		else
			out->argv[out->argc++] = word;
		if (out->argc && (row->flags & CMD_PREFIX))
			options = false;
	}
	if (!err)
		err = check_count(&c);
	if (!err && row->check && !s->help)
		err = row->check(out, d);
	if (err)
		args_free(out);
	return err;
}

void args_free(struct args *a)
{
	free(a->argv);
	a->argv = NULL;
	a->argc = 0;
}
