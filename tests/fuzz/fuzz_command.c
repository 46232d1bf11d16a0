// SPDX-License-Identifier: GPL-3.0-or-later
/* What people and runbooks type: the grammar, options, arguments, completion. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/command.h"
#include "../../repl/complete.h"
#include "../../repl/grammar.h"
#include "../../repl/options.h"
#include "fuzz.h"

const char fuzz_name[] = "command";

#define OFFERS 16

static void check_command(struct statement *st)
{
	const struct command *row = command_find(st->argv[0]);
	struct settings set;
	struct args args;
	struct diag d;

	diag_clear(&d);
	settings_default(&set);
	if (!row) {
		FUZZ_CHECK(command_unknown(st->argv[0], &d) < 0);
		fuzz_diag(&d);
	} else if (args_parse(row, st->argc, st->argv, &args, &set, &d)) {
		fuzz_diag(&d);
	} else {
		FUZZ_CHECK(args.argc < st->argc &&
			   (row->max < 0 || set.help || args.argc <= row->max));
		if (row->effect)
			row->effect(&args);
		args_free(&args);
	}
}

static void check_options(struct statement *st)
{
	struct options o;
	struct diag d;

	diag_clear(&d);
	if (options_parse(st->argc, st->argv, &o, &d))
		fuzz_diag(&d);
	else
		FUZZ_CHECK(o.words < st->argc && o.targets < (size_t)st->argc);
	options_free(&o);
}

static void parse(const char *text, size_t size)
{
	char *argv[] = { (char *)"one", (char *)"two words", (char *)"" };
	struct grammar_vars vars = { .argc = 3, .argv = argv, .pid = 42 };
	struct grammar g;
	unsigned line;
	struct diag d;
	int rc;

	diag_clear(&d);
	rc = grammar_parse(text, size, 1, &vars, &g, &line, &d);
	FUZZ_CHECK(rc == 0 || rc == -EAGAIN || rc == -EINVAL);
	FUZZ_CHECK(rc == 0 || (g.n == 0 && !g.v));
	if (rc == -EINVAL)
		fuzz_diag(&d);
	for (size_t i = 0; i < g.n; i++) {
		FUZZ_CHECK(g.v[i].argc > 0 && !g.v[i].argv[g.v[i].argc]);
		FUZZ_CHECK(g.v[i].line >= 1 && g.v[i].line <= line);
		if (i < 64) {
			check_command(&g.v[i]);
			check_options(&g.v[i]);
		}
	}
	grammar_free(&g);
}

static void offer(const char *line, size_t cursor)
{
	const pid_t tids[] = { 12, 345 };
	const struct complete_env env = { .tid = tids, .tids = 2 };
	char *out[OFFERS];
	size_t start, n;
	int files;

	n = complete(line, cursor, &env, out, OFFERS, &start, &files);
	FUZZ_CHECK(n <= OFFERS && start <= cursor);
	while (n)
		free(out[--n]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	parse(text, size);
	offer(text, strlen(text));
	offer(text, strlen(text) / 2);
	free(text);
	return 0;
}
