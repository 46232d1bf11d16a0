// SPDX-License-Identifier: GPL-3.0-or-later
/* The causes that the program knows are those that README explains, word for word. */
#include "../../inject/cause.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAUSES_HEADING "## Why not: causes and remedies"
#define OTHERS_HEADING "## Other words in `error.code`"
#define MOST	       200

/* One row of README's tables: "| `code` | exit | what it means | remedy |". */
struct row {
	char code[64], exit[8], meaning[512], remedy[512];
	bool said; /* met in the sources */
};

static struct row rows[MOST];
static size_t n_rows;

static char *trim_cell(char *s)
{
	size_t n;

	s += strspn(s, " `");
	n = strlen(s);
	while (n && strchr(" `", s[n - 1]))
		s[--n] = '\0';
	return s;
}

static bool take_row(char *line, struct row *r)
{
	char *cell[6] = { 0 };
	size_t n = 0;

	for (char *at = line; at && n < 6; at = strchr(at, '|')) {
		*at++ = '\0';
		cell[n++] = at;
	}
	if (n != 5)
		return false;
	snprintf(r->code, sizeof(r->code), "%s", trim_cell(cell[0]));
	snprintf(r->exit, sizeof(r->exit), "%s", trim_cell(cell[1]));
	snprintf(r->meaning, sizeof(r->meaning), "%s", trim_cell(cell[2]));
	snprintf(r->remedy, sizeof(r->remedy), "%s", cell[3] + strspn(cell[3], " "));
	n = strlen(r->remedy);
	while (n && r->remedy[n - 1] == ' ')
		r->remedy[--n] = '\0';
	return true;
}

/* Adds the rows of the table below that heading. */
static void read_table(const char *heading)
{
	FILE *f = fopen("README.md", "re");
	char line[2048];
	bool inside = false;

	cr_assert_not_null(f, "README.md is not here: run the tests from the top directory");
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "## ", 3) == 0)
			inside = strncmp(line, heading, strlen(heading)) == 0;
		if (!inside || strncmp(line, "| `", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		cr_assert_lt(n_rows, MOST);
		cr_assert(take_row(line, &rows[n_rows++]), "no row of four cells: %s", line);
	}
	fclose(f);
}

static struct row *find_row(const char *code)
{
	struct row *found = NULL;

	for (size_t i = 0; i < n_rows; i++) {
		if (strcmp(rows[i].code, code) != 0)
			continue;
		cr_expect_null(found, "%s has two rows", code);
		found = &rows[i];
	}
	return found;
}

Test(cause, readme_has_each_with_its_exit_code_and_remedy)
{
	read_table(CAUSES_HEADING);
	for (int i = 0; i < CAUSES; i++) {
		const struct cause_row *c = cause_row((enum cause)i);
		const struct row *r = find_row(c->code);

		cr_expect_not_null(r, "README does not explain %s", c->code);
		if (!r)
			continue;
		cr_expect_eq(strtol(r->exit, NULL, 10), (long)c->exit, "%s: exit %s", c->code,
			     r->exit);
		cr_expect_str_eq(r->remedy, c->remedy, "%s", c->code);
		cr_expect_gt(strlen(r->meaning), 10, "%s", c->code);
	}
	cr_expect_eq(n_rows, (size_t)CAUSES, "README explains %zu, the program knows %d", n_rows,
		     CAUSES);
}

Test(cause, each_has_a_code_of_its_own)
{
	for (int i = 0; i < CAUSES; i++) {
		const struct cause_row *a = cause_row((enum cause)i);
		struct diag d;

		cr_assert_not_null(a);
		cr_expect_lt(strlen(a->code), sizeof(d.code), "%s is cut", a->code);
		cr_expect_lt(strlen(a->remedy), sizeof(d.hint));
		cr_expect_neq(a->exit, HM_OK);
		for (int k = 0; k < i; k++)
			cr_expect_str_neq(a->code, cause_row((enum cause)k)->code);
		cr_expect_eq(cause_fail(&d, -5, (enum cause)i, "%d%%", 7), -5);
		cr_expect_str_eq(d.text, "7%");
		cr_expect_str_eq(d.hint, a->remedy);
		cr_expect_str_eq(d.code, a->code);
		cr_expect_eq(d.exit, a->exit);
	}
	cr_expect_null(cause_row(CAUSES));
}

/* ---- codes without a row in cause.h */

static const struct {
	const char *name;
	enum hm_exit exit;
} exits[] = {
	{ "HM_GONE,", HM_GONE },
	{ "HM_NOT_PERMITTED,", HM_NOT_PERMITTED },
	{ "HM_UNSUPPORTED,", HM_UNSUPPORTED },
	{ "HM_UNSAFE,", HM_UNSAFE },
	{ "HM_UNMET,", HM_UNMET },
	{ "HM_RUNNING,", HM_RUNNING },
	{ "HM_DIED,", HM_DIED },
};

static bool is_cause(const char *code)
{
	for (int i = 0; i < CAUSES; i++)
		if (strcmp(cause_row((enum cause)i)->code, code) == 0)
			return true;
	return false;
}

/* "5", or "1, 5". */
static bool has_exit(const struct row *r, enum hm_exit exit)
{
	for (const char *at = r->exit; at; at = strchr(at, ',')) {
		at += strspn(at, ", ");
		if (strtol(at, NULL, 10) == (long)exit)
			return true;
	}
	return false;
}

static void check_code(const char *file, const char *code, enum hm_exit exit)
{
	struct row *r = find_row(code);

	cr_expect_not(is_cause(code), "%s: %s has a row in cause.h: cause_fail", file, code);
	cr_expect_not_null(r, "%s: README does not explain %s (exit %d)", file, code, (int)exit);
	if (!r)
		return;
	r->said = true;
	cr_expect(has_exit(r, exit), "%s: %s with exit %d, README says %s", file, code, (int)exit,
		  r->exit);
}

static char *read_source(const char *file)
{
	FILE *f = fopen(file, "re");
	char *text = calloc(1, 1 << 20);

	cr_assert(f && text, "%s", file);
	cr_assert_lt(fread(text, 1, 1 << 20, f), 1 << 20);
	fclose(f);
	return text;
}

/* An exit code that is followed by a word: diag_fail(d, err, HM_UNSAFE, "word", ...). */
static unsigned scan_source(const char *file)
{
	char *text = read_source(file);
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		for (char *at = strstr(text, exits[i].name); at; at = strstr(at, exits[i].name)) {
			char code[64];

			at += strlen(exits[i].name);
			/* a word; what help says of an exit code is a sentence */
			if (sscanf(at, " \"%63[^\"]\"", code) != 1 || strchr(code, ' '))
				continue;
			check_code(file, code, exits[i].exit);
			found++;
		}
	free(text);
	return found;
}

/* What a user can meet is in one of the tables, with the exit code that it has. */
Test(cause, readme_has_the_other_codes_too)
{
	unsigned found = 0;
	size_t first;
	glob_t g;

	read_table(CAUSES_HEADING);
	first = n_rows;
	read_table(OTHERS_HEADING);
	cr_assert_eq(glob("inject/*.c", 0, NULL, &g), 0);
	cr_assert_eq(glob("agent/*.c", GLOB_APPEND, NULL, &g), 0);
	cr_assert_eq(glob("repl/*.c", GLOB_APPEND, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++)
		found += scan_source(g.gl_pathv[i]);
	globfree(&g);
	cr_expect_gt(found, 30, "%u", found);
	/* --passive and --read-only are refused in one place, for their option's name; a guard ends
	 * with the exit code of its action */
	for (size_t i = first; i < n_rows; i++)
		cr_expect(rows[i].said || !strcmp(rows[i].code, "passive") ||
				  !strcmp(rows[i].code, "read-only") ||
				  !strcmp(rows[i].code, "action-failed"),
			  "nobody says %s", rows[i].code);
}

/* The words for what mallctl returns are in README's table of them. */
Test(cause, readme_has_the_words_of_mallctl)
{
	static const char *const files[] = { "agent/ctl_error.c", "agent/ctl_build.c" };
	char *readme = read_source("README.md");
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *text = read_source(files[i]);

		for (char *at = text; (at = strstr(at, "\"mallctl-")) != NULL; at++) {
			char word[64], cell[80];

			cr_assert_eq(sscanf(at, "\"%63[^\"]\"", word), 1);
			snprintf(cell, sizeof(cell), "| `%s` |", word);
			cr_expect_not_null(strstr(readme, cell), "README has no %s", word);
			found++;
		}
		free(text);
	}
	cr_expect_gt(found, 20);
	free(readme);
}
