// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OPTIONS_H
#define HM_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

#include "settings.h"
#include "targets.h"

/* The program's command line, taken apart. Strings are those of argv. */
struct options {
	struct settings set;
	struct selector *target; /* allocated */
	size_t targets;
	char **expr; /* of -e, allocated */
	size_t exprs;
	const char *file; /* of -f, NULL: none */
	char **word; /* the command and its words, or a runbook's arguments; allocated, then NULL */
	int words;
	const char *audit; /* NULL: none */
	const char *load;  /* a snapshot in place of targets, NULL: none */
	bool version;
};

/*
 * Options stand before or behind the command; the ones that only the command knows stay in word,
 * with a `--` in front of what it ended. A first word that is a number is a target. Exit 2 with the
 * nearest name for an option that nobody knows, and for what does not go together. Also on error
 * out->set is what was understood so far, and options_free is needed. Pure.
 */
HM_MUST_CHECK int options_parse(int argc, char **argv, struct options *out, struct diag *d);
void options_free(struct options *o);
#endif
