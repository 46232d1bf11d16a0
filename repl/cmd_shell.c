// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "../inject/clock.h"
#include "context.h"
#include "help.h"
#include "nap.h"
#include "nearest.h"
#include "script.h"
#include "signals.h"

/* In JSON mode stdout is for objects only: what a person is told goes to stderr. */
static FILE *talk(const struct context *c)
{
	return c->set.json ? c->sink->err : c->sink->out;
}

static int list_settings(struct context *c)
{
	size_t n;
	const struct option_row *row = option_table(&n);

	for (size_t i = 0; i < n; i++) {
		char value[64];

		if (!(row[i].places & OPT_SET))
			continue;
		settings_format(&c->base, &row[i], value, sizeof(value));
		fprintf(talk(c), "%-10s %-8s %s\n", row[i].name, value, row[i].help);
	}
	return 0;
}

static const char *next_key(size_t i, const void *arg)
{
	size_t n;
	const struct option_row *row = option_table(&n);

	(void)arg;
	for (; n; row++, n--)
		if ((row->places & OPT_SET) && i-- == 0)
			return row->name;
	return NULL;
}

static int unknown_key(const char *key, struct diag *d)
{
	const char *near = nearest(key, next_key, NULL);
	char hint[100] = "`set` lists them";

	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s? `set` lists them", near);
	return diag_fail(d, -EINVAL, HM_USAGE, "unknown-setting", hint,
			 "no setting is named '%.60s'", key);
}

/* The values too, but not what a promise forbids: that depends on what was promised before. */
int check_set(const struct args *a, struct diag *d)
{
	const struct option_row *row;
	struct settings scratch;
	int err;

	if (a->argc == 0)
		return 0;
	row = option_by_name(a->argv[0], strlen(a->argv[0]), OPT_SET);
	if (!row)
		return unknown_key(a->argv[0], d);
	if (a->argc != 2)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "usage: set KEY VALUE",
				 "set %s needs a value", row->name);
	settings_default(&scratch);
	err = settings_apply(&scratch, row, a->argv[1], d);
	return err && d->exit == HM_USAGE ? err : 0;
}

int cmd_set(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct option_row *row;
	int err;

	(void)r;
	if (a->argc == 0)
		return list_settings(c);
	row = option_by_name(a->argv[0], strlen(a->argv[0]), OPT_SET);
	if (!row)
		return unknown_key(a->argv[0], d);
	err = settings_apply(&c->base, row, a->argv[1], d);
	if (err)
		return err;
	sink_color(c->sink, c->base.color);
	c->set = context_settings(c);
	return context_sync(c, d);
}

int cmd_echo(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)r;
	(void)d;
	for (int i = 0; i < a->argc; i++)
		fprintf(talk(c), "%s%s", i ? " " : "", a->argv[i]);
	putc('\n', talk(c));
	return 0;
}

int check_sleep(const struct args *a, struct diag *d)
{
	uint64_t ns;

	return time_parse_arg("sleep", a->argv[0], &ns, d);
}

int cmd_sleep(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	uint64_t ns;
	int err = time_parse_arg("sleep", a->argv[0], &ns, d);

	(void)r;
	if (err)
		return err;
	if (ns > (uint64_t)INT64_MAX / 2)
		ns = (uint64_t)INT64_MAX / 2;
	context_park(c);
	/* What was printed so far should not wait with us. */
	if (sink_flush(c->sink))
		return 0;
	if (nap_until(clock_now() + ns, -1) == NAP_OVER)
		return 0;
	return diag_fail(d, -ECANCELED, HM_CALL_FAILED, "interrupted",
			 "the commands behind it were not run", "sleep was interrupted");
}

int cmd_help(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct command *row;

	(void)r;
	if (a->argc == 0) {
		help_commands(talk(c));
		return 0;
	}
	row = command_find(a->argv[0]);
	if (!row)
		return command_unknown(a->argv[0], d);
	help_command(talk(c), row, c->interactive);
	return 0;
}

int cmd_quit(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	(void)a;
	(void)r;
	(void)d;
	c->quit = true;
	return 0;
}

int cmd_source(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct settings *outer = c->over;
	struct settings mine = c->set;
	int given = 0;

	while (a->words[given])
		given++;
	/* Options behind `source` hold for all that it runs. */
	if (given != a->argc + 1)
		c->over = &mine;
	d->exit = script_file(c, a->argv[0], a->argc - 1, a->argv + 1);
	c->over = outer;
	if (d->exit == HM_OK)
		return 0;
	/* The command that failed has been told with its own place. */
	r->silent = true;
	return -ECANCELED;
}
