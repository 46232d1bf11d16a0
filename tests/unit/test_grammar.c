// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/grammar.h"

static char first[] = "one", second[] = "two words";
static char *const two_args[] = { first, second, NULL };
static const struct grammar_vars with_args = { .argc = 2, .argv = two_args, .pid = 4711 };

/* The commands as text: words in [], commands on lines "LINE:[word][word]". */
static void flatten(const struct grammar *g, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < g->n; i++) {
		used += (size_t)snprintf(buf + used, size - used, "%u:", g->v[i].line);
		for (int j = 0; j < g->v[i].argc; j++)
			used += (size_t)snprintf(buf + used, size - used, "[%s]", g->v[i].argv[j]);
		cr_assert_null(g->v[i].argv[g->v[i].argc]);
		used += (size_t)snprintf(buf + used, size - used, "\n");
	}
}

static void expect(const char *text, const char *want)
{
	struct grammar g;
	struct diag d;
	unsigned line;
	char got[1024];
	int err = grammar_parse(text, strlen(text), 1, &with_args, &g, &line, &d);

	cr_assert_eq(err, 0, "'%s' gives %d: %s", text, err, err == -EINVAL ? d.text : "");
	flatten(&g, got, sizeof(got));
	cr_expect_str_eq(got, want, "'%s' gives %s, not %s", text, got, want);
	grammar_free(&g);
}

static void expect_error(const char *text, unsigned want_line, const char *part)
{
	struct grammar g;
	struct diag d;
	unsigned line = 0;
	int err = grammar_parse(text, strlen(text), 1, NULL, &g, &line, &d);

	cr_assert_eq(err, -EINVAL, "'%s' gives %d", text, err);
	cr_expect_eq(d.exit, HM_USAGE);
	cr_expect_str_eq(d.code, "syntax");
	cr_expect_eq(line, want_line, "'%s': line %u", text, line);
	cr_expect_not_null(strstr(d.text, part), "'%s': %s", text, d.text);
	cr_expect_eq(g.n, 0u);
}

Test(grammar, words_and_commands)
{
	expect("", "");
	expect("  \n\n\t\n", "");
	expect("trim", "1:[trim]\n");
	expect("  trim   64M \t", "1:[trim][64M]\n");
	expect("check\ntrim\n", "1:[check]\n2:[trim]\n");
	expect("check; trim;;info", "1:[check]\n1:[trim]\n1:[info]\n");
	expect("check\r\ntrim\r\n", "1:[check]\n2:[trim]\n");
}

Test(grammar, comments)
{
	expect("# nothing\ntrim # all of it; quit\n", "2:[trim]\n");
	expect("echo a#b", "1:[echo][a#b]\n");
	expect("echo '#' \\#", "1:[echo][#][#]\n");
}

Test(grammar, quotes)
{
	expect("echo 'a b' \"c d\"", "1:[echo][a b][c d]\n");
	expect("echo ''", "1:[echo][]\n");
	expect("echo a'b c'd\"e\"", "1:[echo][ab cde]\n");
	expect("echo 'a\\n$1'", "1:[echo][a\\n$1]\n");
	expect("echo \"a\\n\\\"\\\\\\$1\"", "1:[echo][a\n\"\\$1]\n");
	expect("echo ';' \"#\"", "1:[echo][;][#]\n");
}

Test(grammar, escapes)
{
	expect("echo a\\ b \\$1 \\; \\n", "1:[echo][a b][$1][;][n]\n");
}

Test(grammar, continued_lines)
{
	expect("trim \\\n 64M\ninfo", "1:[trim][64M]\n3:[info]\n");
	expect("tr\\\nim", "1:[trim]\n");
	expect("echo \"a\\\nb\"", "1:[echo][ab]\n");
	expect("trim \\\r\n1", "1:[trim][1]\n");
}

Test(grammar, needs_more)
{
	static const char *const texts[] = { "trim \\", "trim \\\n", "echo \"a\\\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct grammar g;
		struct diag d;
		unsigned line;

		cr_expect_eq(grammar_parse(texts[i], strlen(texts[i]), 1, NULL, &g, &line, &d),
			     -EAGAIN, "%s", texts[i]);
		cr_expect_eq(g.n, 0u);
	}
}

Test(grammar, variables)
{
	expect("trim $1", "1:[trim][one]\n");
	expect("echo $2 \"<$2>\"", "1:[echo][two words][<two words>]\n");
	expect("echo $@", "1:[echo][one][two words]\n");
	expect("echo \"$@\"", "1:[echo][one][two words]\n");
	expect("echo x$@y", "1:[echo][xone][two wordsy]\n");
	expect("echo $$.txt", "1:[echo][4711.txt]\n");
	expect("echo '$9'", "1:[echo][$9]\n");
}

Test(grammar, variables_are_not_split_again)
{
	char word[] = "a; quit # 'b";
	char *const nasty[] = { word, NULL };
	const struct grammar_vars vars = { .argc = 1, .argv = nasty };
	struct grammar g;
	struct diag d;
	unsigned line;

	cr_assert_eq(grammar_parse("echo $1 end", 11, 1, &vars, &g, &line, &d), 0);
	cr_assert_eq(g.n, 1u);
	cr_assert_eq(g.v[0].argc, 3);
	cr_expect_str_eq(g.v[0].argv[1], "a; quit # 'b");
	grammar_free(&g);
}

Test(grammar, errors_name_the_line)
{
	expect_error("check\necho 'a\ntrim", 2, "unclosed single quote");
	expect_error("check\n\necho \"a", 3, "unclosed double quote");
	expect_error("check; trim $1", 1, "$1 is not given");
	expect_error("echo $HOME", 1, "$ without a variable");
	expect_error("echo $", 1, "$ without a variable");
	expect_error("echo $12", 1, "$ without a variable");
	expect_error("\n\n\necho $$", 4, "no target");
	expect_error("trim \\\n\\\n'", 3, "unclosed");
}

Test(grammar, nul_is_an_error)
{
	struct grammar g;
	struct diag d;
	unsigned line;

	cr_expect_eq(grammar_parse("echo a\0b", 8, 1, NULL, &g, &line, &d), -EINVAL);
	cr_expect_eq(grammar_parse("echo '\0'", 8, 1, NULL, &g, &line, &d), -EINVAL);
	cr_expect_eq(grammar_parse("echo \\\0", 7, 1, NULL, &g, &line, &d), -EINVAL);
}

Test(grammar, all_arguments_are_bounded)
{
	static char big[1024 * 1024];
	char *const args[] = { big, NULL };
	const struct grammar_vars vars = { .argc = 1, .argv = args };
	struct grammar g;
	struct diag d;
	unsigned line;
	char text[100 * 3 + 1];

	memset(big, 'x', sizeof(big) - 1);
	for (size_t i = 0; i < 100; i++)
		snprintf(text + i * 3, sizeof(text) - i * 3, "$1 ");
	cr_expect_eq(grammar_parse(text, 300, 1, &vars, &g, &line, &d), -EINVAL);
	cr_expect_not_null(strstr(d.text, "too long"));
}

/* Whatever comes in, the answer is one of the four, and nothing leaks or crashes. */
Test(grammar, garbage)
{
	static const char alphabet[] = "ab 1$@'\"\\;#\n\r\t\0-";
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		char text[64];
		size_t len = (size_t)(rand_r(&seed) % (int)sizeof(text));
		struct grammar g;
		struct diag d;
		unsigned line;
		int err;

		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[rand_r(&seed) % (int)sizeof(alphabet)];
		err = grammar_parse(text, len, 1, round % 2 ? &with_args : NULL, &g, &line, &d);
		cr_assert(err == 0 || err == -EAGAIN || err == -EINVAL, "%d", err);
		cr_assert_geq(line, 1u);
		if (!err)
			grammar_free(&g);
	}
}

/* Quoting any words for the shell's grammar and parsing them gives them back. */
Test(grammar, quoting_round_trip)
{
	unsigned seed = 7;

	for (int round = 0; round < 2000; round++) {
		char word[16], text[160] = "echo ";
		size_t len = (size_t)(1 + rand_r(&seed) % 15), used = 5;
		struct grammar g;
		struct diag d;
		unsigned line;

		for (size_t i = 0; i < len; i++) {
			word[i] = (char)(32 + rand_r(&seed) % 95);
			text[used++] = '\\';
			text[used++] = word[i];
		}
		word[len == sizeof(word) ? len - 1 : len] = '\0';
		if (len == sizeof(word))
			used -= 2;
		cr_assert_eq(grammar_parse(text, used, 1, NULL, &g, &line, &d), 0);
		cr_assert_eq(g.v[0].argc, 2);
		cr_assert_str_eq(g.v[0].argv[1], word);
		grammar_free(&g);
	}
}

static size_t before(const char *line, char *buf, char **out, size_t *start)
{
	return grammar_before(line, strlen(line), buf, 64, out, 4, start);
}

Test(grammar, before_the_cursor)
{
	char buf[64], *out[4];
	size_t start;

	cr_expect_eq(before("tr", buf, out, &start), 0u);
	cr_expect_eq(start, 0u);
	cr_expect_eq(before("set tim", buf, out, &start), 1u);
	cr_expect_eq(start, 4u);
	cr_expect_str_eq(out[0], "set");
	cr_expect_eq(before("set timeout ", buf, out, &start), 2u);
	cr_expect_eq(start, 12u);
	cr_expect_str_eq(out[1], "timeout");
	cr_expect_eq(before("check; mall", buf, out, &start), 0u);
	cr_expect_eq(start, 7u);
	cr_expect_eq(before("echo 'a b' c", buf, out, &start), 2u);
	cr_expect_str_eq(out[1], "a b");
	cr_expect_eq(before("echo 'a b", buf, out, &start), 1u);
	cr_expect_eq(start, 5u);
}

Test(grammar, before_garbage_stays_inside)
{
	static const char alphabet[] = "ab '\"\\; ";
	unsigned seed = 3;

	for (int round = 0; round < 20000; round++) {
		char line[80], *buf = malloc(16), *out[4];
		size_t len = (size_t)(rand_r(&seed) % (int)sizeof(line)), start = 0, n;

		cr_assert_not_null(buf);
		for (size_t i = 0; i < len; i++)
			line[i] = alphabet[rand_r(&seed) % (int)(sizeof(alphabet) - 1)];
		n = grammar_before(line, len, buf, 16, out, 4, &start);
		cr_assert_leq(start, len);
		cr_assert_leq(n, 4u);
		for (size_t i = 0; i < n; i++)
			cr_assert_lt(strlen(out[i]), 16u);
		free(buf);
	}
}
