// SPDX-License-Identifier: GPL-3.0-or-later
/* The pages and completions that are made of the tables name everything that is in these. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/facts.h"
#include "../../repl/command.h"
#include "../../repl/exits.h"
#include "../../repl/manual.h"
#include "../../repl/roff.h"
#include "../../repl/schema.h"

static char *text;
static size_t len;

static FILE *begin(void)
{
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	return out;
}

static void end(FILE *out)
{
	cr_assert_eq(fclose(out), 0);
	cr_assert_gt(len, 0);
}

static void page(void (*write)(FILE *, const char *))
{
	FILE *out = begin();

	write(out, "2026-01-31");
	end(out);
}

/* name as roff has it: with \- for each dash. */
static void expect_name(const char *before, const char *name, const char *behind)
{
	char want[200];
	size_t n = (size_t)snprintf(want, sizeof(want), "%s", before);

	for (; *name; name++)
		n += (size_t)snprintf(want + n, sizeof(want) - n, *name == '-' ? "\\-" : "%c",
				      *name);
	snprintf(want + n, sizeof(want) - n, "%s", behind);
	cr_expect_not_null(strstr(text, want), "'%s' is missing", want);
}

Test(manual, has_each_command_and_option)
{
	size_t n, options;
	const struct command *row = command_table(&n);
	const struct option_row *o = option_table(&options);

	page(manual_write);
	for (size_t i = 0; i < n; i++) {
		expect_name("\n.SS ", row[i].name, *row[i].usage || row[i].alias ? "" : "\n");
		for (size_t k = 0; k < COMMAND_OPTIONS && row[i].options[k].name; k++)
			expect_name(".TP\n\\fB\\-\\-", row[i].options[k].name, "\\fR");
		for (size_t k = 0; k < COMMAND_EXAMPLES && row[i].examples[k].line; k++)
			expect_name("", "heapmedic", "");
	}
	for (size_t i = 0; i < options; i++)
		if ((o[i].places & OPT_ARGV) && o[i].name)
			expect_name("\\-\\-", o[i].name, "\\fR");
	for (unsigned i = 0; i < FACT_COUNT; i++)
		expect_name(".TP\n\\fB", fact_info((enum fact_id)i)->name, "\\fR");
	for (int code = HM_OK; code <= HM_INTERNAL; code++)
		expect_name("", exit_meaning((enum hm_exit)code), "\n");
	free(text);
}

Test(manual, json_has_each_command_that_prints_some)
{
	size_t n;
	const struct command *row = command_table(&n);

	page(manual_json);
	for (size_t i = 0; i < n; i++) {
		bool there = false;
		const char *of;

		for (size_t k = 0; (of = schema_of(k)); k++)
			there |= strcmp(of, row[i].name) == 0;
		cr_expect_eq(there, !(row[i].flags & CMD_CONTROL), "%s", row[i].name);
		if (there)
			expect_name("\n.SS ", row[i].name, "\n");
	}
	free(text);
}

static size_t keys_seen;

static void check_key(const struct schema_key *key, void *of)
{
	static const char *const types[] = { "bytes", "count",	 "us",	   "ms",
					     "index", "seconds", "number", "fraction",
					     "text",  "word",	 "time",   "address",
					     "bool",  "list",	 "object", "any" };
	const char *type = key->type + (key->type[0] == '~');
	size_t n = strcspn(type, "?");
	bool known = false;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		known |= strlen(types[i]) == n && strncmp(types[i], type, n) == 0;
	cr_expect(known, "%s %s: %s", (const char *)of, key->key, key->type);
	cr_expect(*key->key && !strstr(key->key, ".."), "%s: '%s'", (const char *)of, key->key);
	keys_seen++;
}

Test(manual, keys_have_types)
{
	const char *of;

	for (size_t i = 0; (of = schema_of(i)); i++)
		schema_each(of, check_key, (void *)of);
	cr_expect_gt(keys_seen, 400);
}

Test(manual, completions_have_each_command_and_option)
{
	static void (*const write[])(FILE *) = { completion_bash, completion_zsh };
	size_t n, options;
	const struct command *row = command_table(&n);
	const struct option_row *o = option_table(&options);

	for (size_t w = 0; w < 2; w++) {
		FILE *out = begin();

		write[w](out);
		end(out);
		for (size_t i = 0; i < n; i++) {
			cr_expect_not_null(strstr(text, row[i].name));
			for (size_t k = 0; k < COMMAND_OPTIONS && row[i].options[k].name; k++)
				cr_expect_not_null(strstr(text, row[i].options[k].name));
		}
		for (size_t i = 0; i < options; i++)
			if ((o[i].places & OPT_ARGV) && o[i].name)
				cr_expect_not_null(strstr(text, o[i].name));
		free(text);
	}
}

/* What roff would take for its own comes out as it was. */
Test(manual, escapes)
{
	static const char before[] = ".not a request \\n\n'nor this --opt a-b ~^`code-x` \"q\"\n"
				     "\n  verbatim - 'x'\n  .more\n\nlast\n";
	static const char after[] =
		".PP\n\\&.not a request \\en\n"
		"\\&'nor this \\-\\-opt a-b \\(ti\\(ha\\fBcode\\-x\\fR "
		"\\(dqq\\(dq\n"
		".PP\n.in +4n\n.EX\n  verbatim \\- \\(aqx\\(aq\n  .more\n.EE\n.in\n"
		".PP\nlast\n";
	FILE *out = begin();

	roff_text(out, before);
	end(out);
	cr_expect_str_eq(text, after);
	free(text);
}
