// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GRAMMAR_H
#define HM_GRAMMAR_H
#include <stdbool.h>
#include <stddef.h>

#include "../inject/diag.h"

/*
 * The one grammar of -e, -f, commands on stdin and the shell. A command is words up to a newline or
 * `;`. Blanks separate words; '...' takes everything as it is; "..." and bare words know \ escapes
 * and variables; a quote ends on the line where it began; # at the start of a word begins a
 * comment; \ at the end of a line continues it. $1 to $9 are the runbook's arguments, $@ all of
 * them (a word of its own: one word each), $$ the target's pid. Values are never split again.
 */
struct statement {
	char **argv; /* argc words, then NULL */
	int argc;
	unsigned line; /* where it begins */
};

struct grammar {
	struct statement *v;
	size_t n;
};

struct grammar_vars {
	int argc; /* arguments of a runbook */
	char *const *argv;
	long pid; /* for $$; 0: there is no target */
};

/*
 * Parses the whole text, whose first line has number first_line. 0; -EAGAIN when the text ends in a
 * line that `\` continues (more text is needed); -EINVAL with exit 2, the line in *err_line, for an
 * error of the text; -ENOMEM. On any error *out is empty. The caller frees *out with grammar_free.
 * vars may be NULL. Pure.
 */
HM_MUST_CHECK int grammar_parse(const char *text, size_t len, unsigned first_line,
				const struct grammar_vars *vars, struct grammar *out,
				unsigned *err_line, struct diag *d);
void grammar_free(struct grammar *g);

/*
 * Where the word that ends at cursor begins, and the words before it in the same command, for
 * completion: argv of *before gets at most max pointers into buf, which holds size bytes. Returns
 * how many, and the offset of the word's first character in *start. Unfinished quotes are allowed.
 * Pure.
 */
size_t grammar_before(const char *line, size_t cursor, char *buf, size_t size, char **before,
		      size_t max, size_t *start);
#endif
