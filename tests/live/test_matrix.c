// SPDX-License-Identifier: GPL-3.0-or-later
/* README's table of what works on what: each of its lines is tried, and there is no other. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "victim.h"

#define HEADING "### What works on what"
#define ROWS	32
#define CELLS	6

enum { NAME, CHECK, STATS, TRIM, FACTS, DIAGNOSE };

/* A line of the table, and what it is tried on. */
static const struct {
	const char *name;
	struct victim_plan plan;
} subjects[] = {
	{ "glibc", { .argv = { "@retained", "2", "200" } } },
	{ "glibc, in a static program", { .argv = { "@static" } } },
	{ "glibc behind another malloc that hands on to it",
	  { .argv = { "@retained", "2", "200" }, .env = "LD_PRELOAD=@wrapper.so" } },
	{ "another malloc, with memory of its own",
	  { .argv = { "@retained", "2", "200" }, .env = "LD_PRELOAD=@ownmalloc.so" } },
	{ "jemalloc", { .argv = { "@jemlinked", "2", "200" } } },
	{ "jemalloc, stripped", { .argv = { "@jem-bare" } } },
	{ "tcmalloc (gperftools), a library", { .argv = { "@tcm-linked", "2", "200" } } },
	{ "tcmalloc (gperftools), linked into the program",
	  { .argv = { "@tcm-static", "2", "200" } } },
	{ "tcmalloc (gperftools), stripped", { .argv = { "@tcm-bare", "2", "200" } } },
	{ "tcmalloc (Google's), by the functions it exports", { .argv = { "@fakegoogle" } } },
	{ "mimalloc",
	  { .argv = { "@retained", "2", "200" }, .env = "LD_PRELOAD=libmimalloc.so.2" } },
	{ "musl", { .argv = { "@muslretained", "2", "200" } } },
	{ "Go with cgo", { .argv = { "@gocgo" } } },
	{ "Go without cgo", { .argv = { "@gopure" } } },
	{ "Java", { .argv = { "java", "-Xmx64m", "-cp", "@", "Jvm" } } },
	{ "Python", { .argv = { "python3", "@py.py" } } },
	{ "no C library at all", { .argv = { "@nolibc" } } },
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

struct line {
	char cell[CELLS][96];
};
static struct line table[ROWS];
static size_t lines;

static bool take_line(char *text, struct line *l)
{
	size_t n = 0;

	for (char *at = strtok(text, "|\n"); at; at = strtok(NULL, "|\n"), n++) {
		size_t len;

		if (n == CELLS)
			return false;
		at += strspn(at, " ");
		len = strlen(at);
		while (len && at[len - 1] == ' ')
			len--;
		snprintf(l->cell[n], sizeof(l->cell[n]), "%.*s", (int)len, at);
	}
	return n == CELLS;
}

static void read_table(void)
{
	FILE *f = fopen("README.md", "re");
	bool inside = false;
	char text[1024];

	cr_assert_not_null(f, "README.md is not here: run the tests from the top directory");
	while (fgets(text, sizeof(text), f)) {
		if (text[0] == '#')
			inside = !strncmp(text, HEADING, strlen(HEADING));
		if (!inside || text[0] != '|' || !strncmp(text, "| allocator", 11) ||
		    !strncmp(text, "|--", 3))
			continue;
		cr_assert_lt(lines, ROWS);
		cr_assert(take_line(text, &table[lines]), "%s", text);
		lines++;
	}
	fclose(f);
}

/* ---- one cell */

/* "yes", or "5 `musl`". */
static void check_command(const struct victim *v, const char *command, const struct line *l,
			  const char *cell)
{
	int exit = !strcmp(cell, "yes") ? 0 : atoi(cell);
	const char *code = strchr(cell, '`');
	struct run r;
	json_t *o;

	cr_assert(exit || !strcmp(cell, "yes"), "%s: '%s'", l->cell[NAME], cell);
	run(&r, v->pid, "--json", command, NULL);
	cr_assert_eq(r.exit, exit, "%s, %s: %s%s", l->cell[NAME], command, r.out, r.err);
	o = run_json(&r, 0, v->pid, command);
	if (exit) {
		cr_assert_not_null(code, "%s: '%s'", l->cell[NAME], cell);
		cr_assert_eq(strncmp(json_text(o, "error.code"), code + 1, strcspn(code + 1, "`")),
			     0, "%s, %s: %s", l->cell[NAME], command, r.out);
	}
	json_decref(o);
	run_free(&r);
}

/* Facts of an allocator or runtime, beside its version. */
static bool is_own_fact(const char *name)
{
	static const char *const of[] = { "glibc.", "jemalloc.", "tcmalloc.", "mimalloc.", "go." };

	if (strstr(name, ".version"))
		return false;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (!strncmp(name, of[i], strlen(of[i])))
			return true;
	return false;
}

static size_t count_facts(json_t *facts, const char *prefix)
{
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(facts, name, value)
	{
		n += !json_is_null(value) && is_own_fact(name) &&
		     !strncmp(name, prefix, strlen(prefix));
	}
	return n;
}

static void check_page(const struct victim *v, const struct line *l)
{
	char prefix[32] = "", owner[32] = "";
	bool seen = false;
	struct run r;
	json_t *o, *row;
	size_t i;

	sscanf(l->cell[FACTS], "`%31[^`]`", prefix);
	cr_assert_eq(sscanf(l->cell[DIAGNOSE], "`%31[^`]`", owner), 1, "%s", l->cell[DIAGNOSE]);
	run(&r, v->pid, "--json", "diagnose", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "diagnose");
	if (prefix[0])
		cr_assert_gt(count_facts(json_at(o, "result.facts"), prefix), 1, "%s",
			     l->cell[NAME]);
	else
		cr_assert_eq(count_facts(json_at(o, "result.facts"), ""), 0, "%s: %s",
			     l->cell[NAME], r.out);
	json_array_foreach(json_at(o, "result.rows"), i, row)
	{
		seen |= !strcmp(json_text(row, "owner"), owner) &&
			json_int(row, "resident_bytes") > 0;
	}
	cr_assert(seen, "%s: no row %s: %s", l->cell[NAME], owner, r.out);
	json_decref(o);
	run_free(&r);
}

/* ---- one line */

static void try_line(const struct line *l, const struct victim_plan *plan)
{
	struct victim v;

	victim_start(&v, plan);
	check_command(&v, "check", l, l->cell[CHECK]);
	check_page(&v, l);
	check_command(&v, "stats", l, l->cell[STATS]);
	check_command(&v, "trim", l, l->cell[TRIM]);
	victim_stop(&v);
}

static const struct line *find_line(const char *name)
{
	for (size_t i = 0; i < lines; i++)
		if (!strcmp(table[i].cell[NAME], name))
			return &table[i];
	return NULL;
}

Test(matrix, readme_says_what_is_so, .timeout = 300)
{
	read_table();
	cr_assert_eq(lines, SUBJECTS, "README's table has %zu lines, %zu are tried", lines,
		     SUBJECTS);
	for (size_t i = 0; i < SUBJECTS; i++) {
		const struct line *l = find_line(subjects[i].name);

		cr_assert_not_null(l, "README's table has no line '%s'", subjects[i].name);
		try_line(l, &subjects[i].plan);
	}
}
