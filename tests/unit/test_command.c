// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/commands.h"
#include "../../repl/exits.h"
#include "../../repl/grammar.h"
#include "../../repl/help.h"
#include "../../repl/nearest.h"
#include "../../repl/options.h"

/* The words of a command line; no quotes are needed here. */
struct words {
	char text[128];
	char *argv[12];
	int argc;
};

static void split(struct words *w, const char *line)
{
	char *save = NULL;

	memset(w, 0, sizeof(*w));
	snprintf(w->text, sizeof(w->text), "%s", line);
	for (char *p = strtok_r(w->text, " ", &save); p; p = strtok_r(NULL, " ", &save))
		w->argv[w->argc++] = p;
}

/* Parses line against its row; what is left in args is the caller's. */
static int parse(struct words *w, const char *line, struct args *a, struct settings *s,
		 struct diag *d)
{
	const struct command *row;

	split(w, line);
	row = command_find(w->argv[0]);
	cr_assert_not_null(row, "%s", line);
	settings_default(s);
	return args_parse(row, w->argc, w->argv, a, s, d);
}

static void expect_usage(const char *line, const char *text, const char *hint)
{
	struct settings s;
	struct words w;
	struct args a;
	struct diag d;

	cr_assert_eq(parse(&w, line, &a, &s, &d), -EINVAL, "%s", line);
	cr_expect_eq(d.exit, HM_USAGE);
	cr_expect_not_null(strstr(d.text, text), "%s", d.text);
	cr_expect_not_null(strstr(d.hint, hint), "%s", d.hint);
	cr_expect_null(a.argv);
}

Test(command, every_row_is_whole)
{
	size_t n;
	const struct command *row = command_table(&n);

	cr_assert_geq(n, 14u);
	for (size_t i = 0; i < n; i++) {
		cr_expect_not_null(row[i].run, "%s", row[i].name);
		cr_expect_not_null(row[i].usage, "%s", row[i].name);
		cr_expect_not_null(row[i].examples[0].line, "%s", row[i].name);
		cr_expect_gt(strlen(row[i].help), 3u);
		cr_expect_lt(strlen(row[i].help), 75u, "%s", row[i].name);
		cr_expect(row[i].max < 0 || row[i].max >= row[i].min, "%s", row[i].name);
		cr_expect_eq(command_find(row[i].name), &row[i]);
		/* Either it needs no process, or it says what it does to one. */
		cr_expect(row[i].flags & (CMD_NO_PROCESS | CMD_PASSIVE | CMD_HOLDS | CMD_CALLS),
			  "%s", row[i].name);
		/* What changes the target can only do so by a call. */
		cr_expect(!(row[i].flags & CMD_WRITES) || (row[i].flags & CMD_CALLS));
	}
}

Test(command, names_and_near_misses)
{
	struct diag d;

	cr_expect_eq(command_find("exit"), command_find("quit"));
	cr_expect_null(command_find("tri"));
	cr_expect_null(command_find(""));
	cr_expect_eq(command_unknown("tirm", &d), -EINVAL);
	cr_expect_not_null(strstr(d.hint, "`trim`"), "%s", d.hint);
	command_unknown("malloctl", &d);
	cr_expect_not_null(strstr(d.hint, "`mallctl`"), "%s", d.hint);
	command_unknown("xyzzyplugh", &d);
	cr_expect_null(strstr(d.hint, "did you mean"), "%s", d.hint);
	cr_expect_eq(d.exit, HM_USAGE);
}

Test(command, words_and_options)
{
	struct settings s;
	struct words w;
	struct args a;
	struct diag d;

	cr_assert_eq(parse(&w, "trim --min-yield 5M 64K -by", &a, &s, &d), 0);
	cr_expect_eq(a.argc, 1);
	cr_expect_str_eq(a.argv[0], "64K");
	cr_expect_str_eq(a.opt[TRIM_MIN_YIELD], "5M");
	cr_expect(s.bytes && s.yes);
	args_free(&a);
	cr_assert_eq(parse(&w, "info --file=x --raw --json", &a, &s, &d), 0);
	cr_expect_str_eq(a.opt[INFO_FILE], "x");
	cr_expect_str_eq(a.opt[INFO_RAW], "");
	cr_expect_null(a.opt[INFO_ALL]);
	cr_expect(s.json);
	args_free(&a);
	cr_assert_eq(parse(&w, "mallopt M_TRIM_THRESHOLD -1", &a, &s, &d), 0);
	cr_expect_str_eq(a.argv[1], "-1");
	args_free(&a);
	cr_assert_eq(parse(&w, "echo -- --json -x", &a, &s, &d), 0);
	cr_expect_eq(a.argc, 2);
	cr_expect_not(s.json);
	args_free(&a);
	/* --help behind a command is about it, whatever else is missing. */
	cr_assert_eq(parse(&w, "mallopt --help", &a, &s, &d), 0);
	cr_expect(s.help);
	args_free(&a);
}

Test(command, usage_errors)
{
	expect_usage("mallopt M_MMAP_MAX", "too few", "NAME VALUE");
	expect_usage("trim 1 2", "too many", "usage: trim [PAD]");
	expect_usage("check now", "too many", "usage: check");
	expect_usage("trim --min-yeild", "--min-yeild", "--min-yield");
	expect_usage("trim --min-yield", "needs SIZE", "");
	expect_usage("info --raw=1", "takes no value", "");
	expect_usage("info --pid 5", "no option", "");
	expect_usage("trim -p 5", "no option '-p'", "help trim");
	expect_usage("trim --timeout soon", "not a time", "");
}

static unsigned effect(const char *line)
{
	const struct command *row;
	struct settings s;
	struct words w;
	struct args a;
	struct diag d;
	unsigned flags;

	cr_assert_eq(parse(&w, line, &a, &s, &d), 0);
	row = command_find(w.argv[0]);
	flags = row->effect ? row->effect(&a) : row->flags;
	args_free(&a);
	return flags;
}

/* What --read-only and --passive refuse hangs on this. */
Test(command, effect_depends_on_the_words)
{
	cr_expect_eq(effect("mallctl stats.allocated"), CMD_CALLS);
	cr_expect_eq(effect("mallctl arenas.dirty_decay_ms 0"), CMD_CALLS | CMD_WRITES);
	cr_expect_eq(effect("mallctl arena.0.purge"), CMD_CALLS | CMD_WRITES);
	cr_expect_eq(effect("mallctl no.such.name"), CMD_CALLS);
	cr_expect_not(effect("mallctl --list arena") & (CMD_CALLS | CMD_WRITES));
	cr_expect_eq(effect("info"), CMD_CALLS);
	cr_expect(effect("info --file x") & CMD_NO_PROCESS);
	cr_expect(effect("trim") & CMD_WRITES);
	cr_expect(effect("mallopt M_MMAP_MAX 0") & CMD_WRITES);
	cr_expect_not(effect("bt") & (CMD_CALLS | CMD_WRITES));
	cr_expect(effect("diff a b") & CMD_NO_PROCESS, "two files");
	cr_expect_not(effect("diff a") & CMD_NO_PROCESS, "and now");
	cr_expect_not(effect("snapshot a") & (CMD_WRITES | CMD_LOADED));
}

Test(command, letters)
{
	char buf[6];

	cr_expect_str_eq(command_letters(CMD_PASSIVE | CMD_CALLS | CMD_WRITES, buf), "pcw");
	cr_expect_str_eq(command_letters(CMD_HOLDS | CMD_EXPERT | CMD_CONTROL, buf), "sx");
	cr_expect_str_eq(command_letters(CMD_NO_PROCESS, buf), "");
}

/* Help on row, or of the program where it is NULL. */
static char *help_text_in(const struct command *row, bool shell)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	if (row)
		help_command(f, row, shell);
	else
		help_program(f);
	cr_assert_eq(fclose(f), 0);
	return text;
}

static char *help_text(const struct command *row)
{
	return help_text_in(row, false);
}

Test(help, names_every_command_and_option)
{
	char *text = help_text(NULL);
	size_t n, lines = 0;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++)
		cr_expect_not_null(strstr(text, row[i].help), "%s", row[i].name);
	cr_expect_not_null(strstr(text, "--read-only"));
	cr_expect_not_null(strstr(text, " 8  the call still runs"));
	cr_expect_null(strstr(text, "--confirm"), "a key of set is no option");
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	cr_expect_lt(lines, 90u);
	free(text);
}

Test(help, of_a_command_shows_usage_and_example)
{
	char *text = help_text(command_find("trim"));

	cr_expect_eq(strncmp(text, "trim [PAD]\n", 11), 0);
	cr_expect_not_null(strstr(text, "changes the target"));
	cr_expect_not_null(strstr(text, "--min-yield SIZE"));
	cr_expect_not_null(strstr(text, "heapmedic -p 4711 trim"));
	free(text);
	text = help_text(command_find("mallopt"));
	cr_expect_not_null(strstr(text, "M_ARENA_MAX"));
	free(text);
}

Test(help, in_the_shell_examples_are_as_typed_there)
{
	char *text = help_text_in(command_find("trim"), true);

	cr_expect_not_null(strstr(text, "\n  trim --min-yield 100M "), "%s", text);
	cr_expect_null(strstr(text, "heapmedic"), "%s", text);
	free(text);
	text = help_text_in(command_find("diagnose"), true);
	cr_expect_not_null(strstr(text, "\n  heapmedic -p 4711 --passive diagnose"), "%s", text);
	free(text);
}

Test(help, names_the_exit_codes_of_the_command)
{
	char *text = help_text(command_find("trim"));

	cr_expect_not_null(strstr(text, "\n   0  also where there was nothing"), "%s", text);
	cr_expect_not_null(strstr(text, "\n   7  less came back"), "%s", text);
	cr_expect_not_null(strstr(text, "\n   9  the target has died"), "%s", text);
	free(text);
	text = help_text(command_find("echo"));
	cr_expect_null(strstr(text, "\n   3  "), "%s", text);
	cr_expect_not_null(strstr(text, "\n   2  usage"), "%s", text);
	free(text);
	cr_expect_null(exit_meaning((enum hm_exit)11));
}

/* What an example shows must be what the program takes: up to where the system's shell takes over.
 */
static void expect_accepted(const char *line)
{
	const char *end = strstr(line, " > r.new");
	const struct grammar_vars vars = { .pid = 4711 };
	struct options o = { 0 };
	struct grammar g;
	struct args a = { 0 };
	struct diag d = { 0 };
	struct statement words;
	unsigned at;

	cr_assert_eq(grammar_parse(line, end ? (size_t)(end - line) : strlen(line), 1, &vars, &g,
				   &at, &d),
		     0, "%s: %s", line, d.text);
	cr_assert_eq(g.n, 1u, "%s", line);
	words = g.v[0];
	if (strcmp(words.argv[0], "heapmedic") == 0) {
		cr_assert_eq(options_parse(words.argc, words.argv, &o, &d), 0, "%s: %s", line,
			     d.text);
		words.argc = o.words;
		words.argv = o.word;
	} else {
		settings_default(&o.set);
	}
	cr_assert_gt(words.argc, 0, "%s", line);
	cr_assert_not_null(command_find(words.argv[0]), "%s", line);
	cr_expect_eq(
		args_parse(command_find(words.argv[0]), words.argc, words.argv, &a, &o.set, &d), 0,
		"%s: %s", line, d.text);
	args_free(&a);
	options_free(&o);
	grammar_free(&g);
}

Test(help, every_example_is_accepted)
{
	size_t n;
	const struct command *row = command_table(&n);

	for (size_t i = 0; i < n; i++)
		for (size_t e = 0; e < COMMAND_EXAMPLES && row[i].examples[e].line; e++) {
			const struct command_example *x = &row[i].examples[e];

			cr_expect(strstr(x->line, row[i].name) || strstr(x->line, "--load"), "%s",
				  x->line);
			cr_expect(x->what && *x->what, "%s", x->line);
			expect_accepted(x->line);
		}
}

static const char *next_fruit(size_t i, const void *arg)
{
	static const char *const fruit[] = { "apple", "banana", "cherry", NULL };

	(void)arg;
	return fruit[i];
}

Test(nearest, typing_errors)
{
	cr_expect_str_eq(nearest("aplpe", next_fruit, NULL), "apple");
	cr_expect_str_eq(nearest("bananna", next_fruit, NULL), "banana");
	cr_expect_str_eq(nearest("che", next_fruit, NULL), "cherry");
	cr_expect_null(nearest("x", next_fruit, NULL));
	cr_expect_str_eq(nearest_option("--bananna=7", next_fruit, NULL), "banana");
	cr_expect_str_eq(nearest_option("-aplpe", next_fruit, NULL), "apple");
	cr_expect_null(nearest_option("--", next_fruit, NULL));
	cr_expect_null(nearest("", next_fruit, NULL));
	cr_expect_null(nearest("wombat", next_fruit, NULL));
	cr_expect_null(nearest("0123456789012345678901234567890123456789012345", next_fruit, NULL));
}

Test(nearest, garbage_stays_inside)
{
	unsigned seed = 2;

	for (int round = 0; round < 5000; round++) {
		char word[64];
		size_t len = (size_t)(rand_r(&seed) % (int)(sizeof(word) - 1));

		for (size_t i = 0; i < len; i++)
			word[i] = (char)(1 + rand_r(&seed) % 255);
		word[len] = '\0';
		(void)nearest(word, next_fruit, NULL);
	}
}

static void expect_narrow(const struct command *row)
{
	char *text = help_text(row), *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cr_expect_leq(strlen(line), 80, "%zu columns: %s", strlen(line), line);
	free(text);
}

Test(help, fits_a_terminal_of_80_columns)
{
	size_t n;
	const struct command *row = command_table(&n);

	expect_narrow(NULL);
	for (size_t i = 0; i < n; i++)
		expect_narrow(&row[i]);
}

/* ---- prof: what its first word takes */

Test(command, prof_takes_words_and_options_by_its_first_word)
{
	static const char *const good[] = {
		"prof status",
		"prof on",
		"prof on --for 60s",
		"prof off",
		"prof reset",
		"prof reset 17",
		"prof dump a.heap --raw --force",
		"prof dump --mangled a.heap",
		"prof top",
		"prof top --file a.heap",
		"prof diff a b",
	};
	struct settings s;
	struct words w;
	struct args a;
	struct diag d;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(parse(&w, good[i], &a, &s, &d), 0, "%s: %s", good[i], d.text);
		args_free(&a);
	}
	expect_usage("prof", "too few", "prof WHAT");
	expect_usage("prof stat", "'stat'", "did you mean `prof status`?");
	expect_usage("prof zzz", "'zzz'", "help prof");
	expect_usage("prof status now", "too many arguments (1)", "usage: prof status");
	expect_usage("prof dump", "too few arguments (0)", "usage: prof dump FILE");
	expect_usage("prof diff a", "too few", "usage: prof diff A B");
	expect_usage("prof status --for 1s", "no option --for", "help prof");
	expect_usage("prof off --raw", "no option --raw", "help prof");
	expect_usage("prof on --for soon", "--for", "");
	expect_usage("prof reset 64", "0 to 63", "19");
	expect_usage("prof reset x", "'x'", "19");
	expect_usage("prof reset 1x", "'1x'", "19");
}

static unsigned effect_of(const char *line)
{
	struct settings s;
	struct words w;
	struct args a;
	struct diag d;
	unsigned flags;

	cr_assert_eq(parse(&w, line, &a, &s, &d), 0, "%s: %s", line, d.text);
	flags = effect_prof(&a);
	args_free(&a);
	return flags;
}

Test(command, prof_changes_the_target_only_where_it_says_so)
{
	cr_expect_eq(effect_of("prof status"), CMD_CALLS);
	cr_expect_eq(effect_of("prof dump f"), CMD_CALLS);
	cr_expect_eq(effect_of("prof top"), CMD_CALLS);
	cr_expect_eq(effect_of("prof on"), CMD_CALLS | CMD_WRITES | CMD_STREAMS);
	cr_expect_eq(effect_of("prof off"), CMD_CALLS | CMD_WRITES);
	cr_expect_eq(effect_of("prof reset"), CMD_CALLS | CMD_WRITES);
	cr_expect(effect_of("prof top --file f") & CMD_NO_PROCESS);
	cr_expect(effect_of("prof diff a b") & CMD_NO_PROCESS);
}
