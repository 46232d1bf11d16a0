// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SETTINGS_H
#define HM_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/session.h"

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* What options and `set` say about how commands are run. */
struct settings {
	bool json, bytes, passive, read_only, yes, dry_run, confirm, quiet, help, pager;
	int verbose;
	enum color_when color;
	enum via via;
	char allocator[160];  /* that commands are for; "": all in use */
	pid_t thread;	      /* 0: choose */
	uint64_t deadline_ns; /* to find a safe point */
	uint64_t timeout_ns;  /* for one call */
};

enum option_kind {
	OPT_BOOL,
	OPT_COUNT,
	OPT_TIME,
	OPT_COLOR,
	OPT_VIA,
	OPT_TID,
	OPT_ALLOCATOR,
	/* These are no settings: the command line keeps them itself. */
	OPT_PID,
	OPT_NAME,
	OPT_CGROUP,
	OPT_EXPR,
	OPT_FILE,
	OPT_AUDIT,
	OPT_LOAD,
	OPT_VERSION,
};

enum option_place {
	OPT_ARGV = 1,	/* on the program's command line */
	OPT_LINE = 2,	/* behind any command, for that one command */
	OPT_SET = 4,	/* a key of `set` */
	OPT_ONEWAY = 8, /* a promise to the operator: `set` and options turn it on, nothing off */
};

/* One row per option: the parser, `set`, help and completion all read this table. */
struct option_row {
	const char *name;
	char letter; /* 0: long only */
	enum option_kind kind;
	size_t offset; /* in struct settings */
	unsigned places;
	const char *meta; /* NULL: takes no value */
	const char *help;
};

const struct option_row *option_table(size_t *n);
/* By long name (without dashes) or by letter, where it may stand in one of places. NULL: unknown.
 */
const struct option_row *option_by_name(const char *name, size_t len, unsigned places);
const struct option_row *option_by_letter(char letter, unsigned places);

void settings_default(struct settings *s);
/*
 * Applies value (NULL for one without: on) to the setting of row. Exit 2 for a value that is not of
 * its kind; a bool takes on and off. Turning a one-way setting off is exit 4.
 */
HM_MUST_CHECK int settings_apply(struct settings *s, const struct option_row *row,
				 const char *value, struct diag *d);
/* The value as `set` lists it. */
void settings_format(const struct settings *s, const struct option_row *row, char *buf,
		     size_t size);
/* A pid or tid: a decimal number from 1 on, nothing behind it. False if text is not one. */
bool pid_parse(const char *text, pid_t *out);
#endif
