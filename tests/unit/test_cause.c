// SPDX-License-Identifier: GPL-3.0-or-later
/* The causes that the program knows are those that README explains, word for word. */
#include "../../inject/cause.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADING "## Why not: causes and remedies"

/* One row of README's table: "| `code` | exit | what it means | remedy |". */
struct row {
	char code[64], exit[8], meaning[512], remedy[512];
};

static struct row rows[2 * CAUSES];
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

static void read_table(void)
{
	FILE *f = fopen("README.md", "re");
	char line[2048];
	bool inside = false;

	cr_assert_not_null(f, "README.md is not here: run the tests from the top directory");
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "## ", 3) == 0)
			inside = strncmp(line, HEADING, strlen(HEADING)) == 0;
		if (!inside || strncmp(line, "| `", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		cr_assert_lt(n_rows, 2 * CAUSES);
		cr_assert(take_row(line, &rows[n_rows++]), "no row of four cells: %s", line);
	}
	fclose(f);
}

static const struct row *find_row(const char *code)
{
	const struct row *found = NULL;

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
	read_table();
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
