// SPDX-License-Identifier: GPL-3.0-or-later
#include "settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/size.h"

#define AT(field) offsetof(struct settings, field)
#define ANYWHERE  (OPT_ARGV | OPT_LINE)

static const struct option_row rows[] = {
	{ "pid", 'p', OPT_PID, 0, OPT_ARGV, "PID", "this process (repeatable)" },
	{ "name", 'n', OPT_NAME, 0, OPT_ARGV, "COMM", "every process with exactly this name" },
	{ "cgroup", 'g', OPT_CGROUP, 0, OPT_ARGV, "PATH",
	  "every process below this control group" },
	{ "load", 0, OPT_LOAD, 0, OPT_ARGV, "SNAPSHOT", "look at what was saved, no process" },
	{ NULL, 'e', OPT_EXPR, 0, OPT_ARGV, "CMD", "run this command (repeatable, one session)" },
	{ NULL, 'f', OPT_FILE, 0, OPT_ARGV, "FILE", "run a runbook (help source); - is stdin" },
	{ "json", 0, OPT_BOOL, AT(json), ANYWHERE | OPT_SET, NULL,
	  "one JSON object per command and process" },
	{ "bytes", 'b', OPT_BOOL, AT(bytes), ANYWHERE | OPT_SET, NULL, "sizes in bytes" },
	{ "color", 0, OPT_COLOR, AT(color), OPT_ARGV | OPT_SET, "auto|always|never",
	  "auto: on a terminal, without NO_COLOR" },
	{ "passive", 0, OPT_BOOL, AT(passive), ANYWHERE | OPT_SET | OPT_ONEWAY, NULL,
	  "never hold a thread, never call" },
	{ "read-only", 0, OPT_BOOL, AT(read_only), ANYWHERE | OPT_SET | OPT_ONEWAY, NULL,
	  "refuse whatever changes the target" },
	{ "dry-run", 0, OPT_BOOL, AT(dry_run), ANYWHERE | OPT_SET | OPT_ONEWAY, NULL,
	  "say what would be done, change nothing" },
	{ "yes", 'y', OPT_BOOL, AT(yes), ANYWHERE, NULL, "do not ask before a change" },
	{ "confirm", 0, OPT_BOOL, AT(confirm), OPT_SET, NULL, "the shell asks before a change" },
	{ "pager", 0, OPT_BOOL, AT(pager), OPT_SET, NULL,
	  "the shell shows long output by screens" },
	{ "via", 0, OPT_VIA, AT(via), ANYWHERE | OPT_SET, "auto|proxy|direct",
	  "call on our own thread, or on one of theirs" },
	{ "thread", 0, OPT_TID, AT(thread), ANYWHERE, "TID", "borrow this thread (expert)" },
	{ "allocator", 0, OPT_ALLOCATOR, AT(allocator), ANYWHERE | OPT_SET, "WHICH",
	  "only this one: its file, prefix or kind" },
	{ "deadline", 0, OPT_TIME, AT(deadline_ns), ANYWHERE | OPT_SET, "TIME",
	  "to find a safe point (default 2s)" },
	{ "timeout", 0, OPT_TIME, AT(timeout_ns), ANYWHERE | OPT_SET, "TIME",
	  "for one call (default 30s)" },
	{ "audit", 0, OPT_AUDIT, 0, OPT_ARGV, "FILE|syslog",
	  "record each change before and after it" },
	{ "quiet", 'q', OPT_BOOL, AT(quiet), ANYWHERE, NULL, "only data and errors" },
	{ "verbose", 'v', OPT_COUNT, AT(verbose), ANYWHERE, NULL, "say how it was done" },
	{ "version", 'V', OPT_VERSION, 0, OPT_ARGV, NULL, "print the version" },
	{ "help", 'h', OPT_BOOL, AT(help), ANYWHERE, NULL,
	  "this text; behind a command: help on that" },
};

const struct option_row *option_table(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

const struct option_row *option_by_name(const char *name, size_t len, unsigned places)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].name && (rows[i].places & places) && strlen(rows[i].name) == len &&
		    memcmp(rows[i].name, name, len) == 0)
			return &rows[i];
	return NULL;
}

const struct option_row *option_by_letter(char letter, unsigned places)
{
	for (size_t i = 0; letter && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].letter == letter && (rows[i].places & places))
			return &rows[i];
	return NULL;
}

void settings_default(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	s->confirm = true;
	s->pager = true;
	s->deadline_ns = UINT64_C(2000000000);
	s->timeout_ns = UINT64_C(30000000000);
}

bool pid_parse(const char *text, pid_t *out)
{
	char *end;
	long v;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || *end || v < 1 || v > INT_MAX)
		return false;
	*out = (pid_t)v;
	return true;
}

static const char *const color_names[] = { "auto", "always", "never" };
static const char *const via_names[] = { "auto", "proxy", "direct" };

static int bad_value(struct diag *d, const struct option_row *row, const char *value,
		     const char *wants)
{
	char hint[200];

	snprintf(hint, sizeof(hint), "give %s %s", row->name, wants);
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", hint, "'%s' is no value for %s", value,
			 row->name);
}

static int apply_bool(bool *field, const struct option_row *row, const char *value, struct diag *d)
{
	bool on = !value || strcmp(value, "on") == 0;

	if (!on && strcmp(value, "off") != 0)
		return bad_value(d, row, value, "on or off");
	if (!on && (row->places & OPT_ONEWAY))
		return diag_fail(d, -EPERM, HM_NOT_PERMITTED, "one-way",
				 "end this session and start one without it",
				 "%s cannot be turned off inside a session", row->name);
	*field = on;
	return 0;
}

static int apply_name(const char *const names[3], const char *value, unsigned *out)
{
	for (unsigned i = 0; value && i < 3; i++)
		if (strcmp(names[i], value) == 0) {
			*out = i;
			return 0;
		}
	return -EINVAL;
}

static int apply_time(uint64_t *field, const struct option_row *row, const char *value,
		      struct diag *d)
{
	uint64_t ns;
	int err = time_parse_arg(row->name, value, &ns, d);

	if (err)
		return err;
	if (ns == 0)
		return bad_value(d, row, value, "a time such as 500ms, 2s or 10m");
	*field = ns;
	return 0;
}

int settings_apply(struct settings *s, const struct option_row *row, const char *value,
		   struct diag *d)
{
	void *field = (char *)s + row->offset;
	unsigned choice = 0;

	if (!value && row->meta)
		return bad_value(d, row, "", row->meta);
	switch (row->kind) {
	case OPT_BOOL:
		return apply_bool(field, row, value, d);
	case OPT_COUNT:
		++*(int *)field;
		return 0;
	case OPT_TIME:
		return apply_time(field, row, value, d);
	case OPT_COLOR:
		if (apply_name(color_names, value, &choice))
			return bad_value(d, row, value, "auto, always or never");
		s->color = (enum color_when)choice;
		return 0;
	case OPT_VIA:
		if (apply_name(via_names, value, &choice))
			return bad_value(d, row, value, "auto, proxy or direct");
		s->via = (enum via)choice;
		return 0;
	case OPT_TID:
		if (!value || !pid_parse(value, field))
			return bad_value(d, row, value ? value : "", "a thread id from `threads`");
		return 0;
	case OPT_ALLOCATOR:
		/* what it names is found out where there is a process; "all" is none */
		if (!value || strlen(value) >= sizeof(s->allocator))
			return bad_value(d, row, value ? value : "", "a name from `check`, or all");
		snprintf(s->allocator, sizeof(s->allocator), "%s",
			 strcmp(value, "all") == 0 ? "" : value);
		return 0;
	default:
		return diag_internal(d, -EINVAL, "an option that is no setting");
	}
}

void settings_format(const struct settings *s, const struct option_row *row, char *buf, size_t size)
{
	const void *field = (const char *)s + row->offset;
	char time[SIZE_TEXT];

	switch (row->kind) {
	case OPT_BOOL:
		snprintf(buf, size, "%s", *(const bool *)field ? "on" : "off");
		break;
	case OPT_TIME:
		snprintf(buf, size, "%s", time_format(*(const uint64_t *)field, time));
		break;
	case OPT_COLOR:
		snprintf(buf, size, "%s", color_names[s->color]);
		break;
	case OPT_VIA:
		snprintf(buf, size, "%s", via_names[s->via]);
		break;
	case OPT_ALLOCATOR:
		snprintf(buf, size, "%s", s->allocator[0] ? s->allocator : "all");
		break;
	default:
		snprintf(buf, size, "-");
	}
}
