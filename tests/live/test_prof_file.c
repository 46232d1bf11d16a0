// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Heap profiles that jemalloc has dumped, looked at when the process is gone: against jeprof and
 * pprof, which read the same files, and all that is written of them.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define TOP	20
#define ROWS	200
#define NAME	200
#define CLOSE	0.01 /* of each other: the same number */
#define CONF	"MALLOC_CONF=prof:true,prof_accum:true,lg_prof_sample:13"
#define PROFILE "profiled"

static const char *const shapes[] = { "flat", "deep", "small", "threads", "freed" };
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* ---- files of a test: in a directory of its own */

struct place {
	char dir[64], heap[96], other[96], out[96];
};

static void program_at(struct run *r, const char *program, ...)
{
	struct run_opts o = { .program = program };
	const char *args[RUN_ARGS + 1];
	size_t n = 0;
	va_list ap;

	va_start(ap, program);
	while ((args[n] = va_arg(ap, const char *)) != NULL)
		cr_assert_lt(++n, RUN_ARGS);
	va_end(ap);
	run_with(r, &o, args);
}

/* The object that one run has said; there is no process in it. */
static json_t *answer(const struct run *r)
{
	json_error_t error;
	json_t *o = json_loads(r->out, 0, &error);

	cr_assert_not_null(o, "%s: %s", error.text, r->out);
	cr_assert_str_eq(json_text(o, "schema"), "heapmedic/1");
	cr_assert_str_eq(json_text(o, "command"), "prof");
	cr_assert(json_is_null(json_at(o, "pid")));
	cr_assert_eq(json_bool(o, "ok"), r->exit == 0);
	return o;
}

static void dump(const char *shape, const char *path)
{
	struct run r;
	static char conf[] = CONF;

	cr_assert_eq(putenv(conf), 0);
	program_at(&r, victim_path(PROFILE), shape, path, NULL);
	unsetenv("MALLOC_CONF");
	if (r.exit == 3)
		cr_skip_test("this jemalloc has no profiling compiled in: install libjemalloc-dev");
	cr_assert_eq(r.exit, 0, "%s: %d %s", shape, r.exit, r.err);
	run_free(&r);
}

static void place_make(struct place *p, const char *shape)
{
	strcpy(p->dir, "/tmp/heapmedic-live-XXXXXX");
	cr_assert(mkdtemp(p->dir));
	snprintf(p->heap, sizeof(p->heap), "%s/a.heap", p->dir);
	snprintf(p->other, sizeof(p->other), "%s/b.heap", p->dir);
	p->out[0] = '\0';
	dump(shape, p->heap);
}

static const char *place_out(struct place *p, const char *name)
{
	if (p->out[0])
		unlink(p->out);
	snprintf(p->out, sizeof(p->out), "%s/%s", p->dir, name);
	return p->out;
}

static void place_end(struct place *p)
{
	unlink(p->heap);
	unlink(p->other);
	if (p->out[0])
		unlink(p->out);
	cr_assert_eq(rmdir(p->dir), 0, "something is left in %s", p->dir);
}

/* ---- rows of a profile, whoever has made them */

struct row {
	char name[NAME];
	double flat, cum;
};
struct rows {
	struct row v[ROWS];
	size_t n;
	double total;
};

static void own_rows(const struct place *p, bool by_cum, struct rows *out)
{
	struct run r;
	json_t *o, *list;

	memset(out, 0, sizeof(*out));
	program_at(&r, NULL, "--json", "prof", "top", "all", "--file", p->heap,
		   by_cum ? "--cum" : NULL, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	out->total = (double)json_int(o, "result.total_bytes");
	list = json_at(o, "result.rows");
	for (size_t i = 0; i < json_array_size(list) && i < ROWS; i++) {
		json_t *row = json_array_get(list, i);

		snprintf(out->v[i].name, NAME, "%s", json_text(row, "symbol"));
		out->v[i].flat = (double)json_int(row, "flat_bytes");
		out->v[i].cum = (double)json_int(row, "cum_bytes");
		out->n++;
	}
	json_decref(o);
	run_free(&r);
}

/* "  123  4.5%  6.7%  890  12.3% name": the sixth word on is the name. */
static void parse_row(const char *line, struct rows *out)
{
	struct row *row = &out->v[out->n];
	int at = 0;

	if (out->n == ROWS ||
	    sscanf(line, "%lf %*f%% %*f%% %lf %*f%% %n", &row->flat, &row->cum, &at) != 2 || !at)
		return;
	snprintf(row->name, NAME, "%s", line + at);
	row->name[strcspn(row->name, "\n")] = '\0';
	out->n++;
}

static void jeprof_rows(const struct place *p, bool by_cum, struct rows *out)
{
	struct run r;
	char *save = NULL;

	memset(out, 0, sizeof(*out));
	program_at(&r, "jeprof", "--text", "--show_bytes", by_cum ? "--cum" : "--inuse_space",
		   victim_path(PROFILE), p->heap, NULL);
	cr_assert_eq(r.exit, 0, "%s", r.err);
	for (char *line = strtok_r(r.out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "Total: %lf B", &out->total) != 1)
			parse_row(line, out);
	run_free(&r);
}

static bool close_to(double a, double b)
{
	double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);

	return fabs(a - b) <= CLOSE * larger + 1;
}

static const struct row *row_named(const struct rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(rows->v[i].name, name) == 0)
			return &rows->v[i];
	return NULL;
}

/* Each of the first rows is there under the same name, with the same numbers. Where jeprof has only
 * an address, a row with these numbers. */
static void expect_in(const struct rows *first, const struct rows *all, const char *shape)
{
	for (size_t i = 0; i < first->n && i < TOP; i++) {
		const struct row *a = &first->v[i], *b = row_named(all, a->name);

		for (size_t k = 0; !b && k < all->n && strncmp(a->name, "0x", 2) == 0; k++)
			if (close_to(a->flat, all->v[k].flat) && close_to(a->cum, all->v[k].cum))
				b = &all->v[k];
		cr_assert_not_null(b, "%s: row %zu, %s, is only on one side", shape, i, a->name);
		cr_assert(close_to(a->flat, b->flat), "%s: %s: flat %.0f and %.0f", shape, a->name,
			  a->flat, b->flat);
		cr_assert(close_to(a->cum, b->cum), "%s: %s: cum %.0f and %.0f", shape, a->name,
			  a->cum, b->cum);
	}
}

static bool there(const char *program)
{
	struct run r;
	char command[64];
	bool yes;

	snprintf(command, sizeof(command), "command -v %s", program);
	program_at(&r, "sh", "-c", command, NULL);
	yes = r.exit == 0;
	run_free(&r);
	return yes;
}

static void same_as_jeprof(const char *shape)
{
	struct place p;
	static struct rows own, other;

	if (!there("jeprof") || !there("addr2line"))
		cr_skip_test("jeprof or addr2line is missing: install libjemalloc-dev, binutils");
	place_make(&p, shape);
	for (int cum = 0; cum < 2; cum++) {
		own_rows(&p, cum, &own);
		jeprof_rows(&p, cum, &other);
		cr_assert_geq(other.n, (size_t)TOP);
		cr_assert(close_to(own.total, other.total), "%s: %.0f and %.0f in all", shape,
			  own.total, other.total);
		expect_in(&other, &own, shape);
		expect_in(&own, &other, shape);
	}
	place_end(&p);
}

/* The same top 20 within 1 %, by flat and by cum, on profiles of five kinds. */
Test(jeprof, flat, .timeout = 120)
{
	same_as_jeprof(shapes[0]);
}

Test(jeprof, deep, .timeout = 120)
{
	same_as_jeprof(shapes[1]);
}

Test(jeprof, small, .timeout = 120)
{
	same_as_jeprof(shapes[2]);
}

Test(jeprof, threads, .timeout = 120)
{
	same_as_jeprof(shapes[3]);
}

Test(jeprof, freed, .timeout = 120)
{
	same_as_jeprof(shapes[4]);
}

/* What was unbiased is what was allocated: the victim's own blocks, within what sampling costs. */
Test(prof_file, sums_are_those_of_the_program)
{
	struct place p;
	static struct rows own;
	double want = 0;

	/* work_flat: leaf_k is called by turns */
	for (unsigned i = 0; i < 8000; i++)
		want += 1000 + i % 900 + (10 + (i % 2 ? i * 7 : i) % 40) * 48.0;
	place_make(&p, "flat");
	own_rows(&p, false, &own);
	/* jemalloc counts what it has rounded up to, by a quarter at most */
	cr_assert(own.total > want * 0.9 && own.total < want * 1.3, "%.0f, not %.0f", own.total,
		  want);
	place_end(&p);
}

Test(prof_file, lines)
{
	struct place p;
	struct run r;
	json_t *o;

	place_make(&p, "flat");
	program_at(&r, NULL, "--json", "prof", "top", "3", "--file", p.heap, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	cr_assert_eq(json_array_size(json_at(o, "result.rows")), 3u);
	cr_assert_eq(json_int(o, "result.sample_bytes"), 8192);
	o = json_at(o, "result.rows");
	cr_assert_not_null(strstr(json_text(json_array_get(o, 0), "file"), "profiled.c"));
	cr_assert_gt(json_int(json_array_get(o, 0), "line"), 20);
	run_free(&r);
	program_at(&r, NULL, "prof", "top", "--file", p.heap, NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "FUNCTION\n"));
	cr_assert_not_null(strstr(r.out, "(profiled.c:"));
	cr_assert_not_null(strstr(r.out, "more functions (prof top all)"));
	run_free(&r);
	place_end(&p);
}

/* ---- what is exported */

static char *exported(struct place *p, const char *name, size_t *len)
{
	struct stat st;
	struct run r;
	char *text;
	FILE *f;

	program_at(&r, NULL, "prof", "export", place_out(p, name), "--file", p->heap, NULL);
	run_expect(&r, 0);
	run_free(&r);
	cr_assert_eq(stat(p->out, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600u);
	text = malloc((size_t)st.st_size + 1);
	f = fopen(p->out, "re");
	cr_assert(text && f);
	*len = fread(text, 1, (size_t)st.st_size, f);
	cr_assert_eq(*len, (size_t)st.st_size);
	text[*len] = '\0';
	fclose(f);
	return text;
}

Test(prof_file, folded)
{
	static struct rows own;
	struct place p;
	double sum = 0;
	size_t len;
	char *text, *save = NULL;

	place_make(&p, "deep");
	own_rows(&p, false, &own);
	text = exported(&p, "x.folded", &len);
	cr_assert_not_null(strstr(text, ";main;work_deep;descend"));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		sum += strtod(strrchr(line, ' '), NULL);
	cr_assert_float_eq(sum, own.total, own.total * 1e-4);
	free(text);
	place_end(&p);
}

Test(prof_file, picture_and_text)
{
	struct place p;
	struct run r;
	size_t len;
	char *text;

	place_make(&p, "flat");
	text = exported(&p, "x.txt", &len);
	cr_assert_not_null(strstr(text, "flat%"));
	cr_assert_not_null(strstr(text, "dispatch_even ("));
	free(text);
	text = exported(&p, "x.svg", &len);
	cr_assert(strncmp(text, "<?xml ", 6) == 0);
	cr_assert_not_null(strstr(text, "<title>dispatch_even ("));
	free(text);
	/* nothing that is there is written over unless that is said */
	program_at(&r, NULL, "prof", "export", p.out, "--file", p.heap, NULL);
	run_expect(&r, 2);
	cr_assert_not_null(strstr(r.err, "is there"));
	run_free(&r);
	program_at(&r, NULL, "prof", "export", p.out, "--force", "--file", p.heap, NULL);
	run_expect(&r, 0);
	run_free(&r);
	place_end(&p);
}

/* What stands behind word in what was said. */
static double said(const struct run *r, const char *word)
{
	const char *at = strstr(r->out, word);

	cr_assert_not_null(at, "%s: %s %s", word, r->out, r->err);
	return strtod(at + strlen(word), NULL);
}

/* The picture's script, in node: a frame fills the width and is put back, and what is searched has
 * the share that it has in the table. */
Test(prof_file, zoom_and_search)
{
	static struct rows own;
	struct place p;
	struct run r;
	double sum = 0;
	size_t len;

	if (!there("node"))
		cr_skip_test("node is missing: install nodejs");
	place_make(&p, "flat");
	own_rows(&p, false, &own);
	for (size_t i = 0; i < own.n; i++)
		sum += strncmp(own.v[i].name, "leaf_4", 6) == 0 ? own.v[i].flat : 0;
	free(exported(&p, "x.svg", &len));
	program_at(&r, "node", "tests/fixtures/flame/drive.js", p.out, "work_flat", "^leaf_4",
		   NULL);
	cr_assert_eq(r.exit, 0, "%s", r.err);
	cr_assert_float_eq(said(&r, "zoomed "), 1180, 0.1);
	cr_assert_lt(said(&r, " width "), 1180);
	cr_assert_eq(said(&r, "back "), said(&r, " width "));
	cr_assert_not_null(strstr(r.out, "hidden 0 reset hidden"));
	cr_assert_not_null(strstr(r.out, "details work_flat ("));
	cr_assert_gt(said(&r, "marked "), 10);
	cr_assert_float_eq(said(&r, "matched: "), 100 * sum / own.total, 0.1);
	cr_assert_eq(said(&r, "cleared "), 0);
	run_free(&r);
	place_end(&p);
}

Test(prof_file, pprof_reads_it, .timeout = 120)
{
	static struct rows own, other;
	struct place p;
	struct run r;
	char *text, *save = NULL;
	size_t len;

	if (!there("go"))
		cr_skip_test("go is missing: install golang-go");
	place_make(&p, "deep");
	own_rows(&p, false, &own);
	text = exported(&p, "x.pb.gz", &len);
	cr_assert(len > 2 && (unsigned char)text[0] == 0x1f && (unsigned char)text[1] == 0x8b);
	free(text);
	program_at(&r, "go", "tool", "pprof", "-top", "-unit=B", "-nodecount=1000",
		   "-nodefraction=0", "-symbolize=none", p.out, NULL);
	cr_assert_eq(r.exit, 0, "%s", r.err);
	cr_assert_not_null(strstr(r.out, "Type: inuse_space"));
	memset(&other, 0, sizeof(other));
	for (char *line = strtok_r(r.out, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *unit;

		/* "123B 4.5%": without the unit it reads like jeprof's */
		while ((unit = strstr(line, "B ")) != NULL)
			*unit = ' ';
		parse_row(line, &other);
	}
	cr_assert_geq(other.n, (size_t)TOP);
	expect_in(&own, &other, "pprof");
	expect_in(&other, &own, "pprof");
	run_free(&r);
	place_end(&p);
}

/* ---- two of them, and what is none */

Test(prof_file, diff)
{
	struct place p;
	struct run r;
	json_t *o;
	long long before, after;

	place_make(&p, "flat");
	dump("threads", p.other);
	program_at(&r, NULL, "--json", "prof", "diff", p.heap, p.other, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	before = json_int(o, "result.before_bytes");
	after = json_int(o, "result.after_bytes");
	cr_assert_eq(json_int(o, "result.delta_bytes"), after - before);
	cr_assert_gt(after, 3 * before); /* four threads do what one has done */
	cr_assert_gt(json_int(json_array_get(json_at(o, "result.rows"), 0), "delta_bytes"), 0);
	json_decref(o);
	run_free(&r);
	program_at(&r, NULL, "prof", "diff", p.heap, p.heap, NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "(0 B)"));
	run_free(&r);
	place_end(&p);
}

static void refused(const char *code, const char *a, const char *b, const char *c, const char *d)
{
	struct run r;
	json_t *o;

	program_at(&r, NULL, "--json", "prof", a, b, c, d, NULL);
	run_expect(&r, 2);
	o = answer(&r);
	cr_assert_str_eq(json_text(o, "error.code"), code);
	json_decref(o);
	run_free(&r);
}

Test(prof_file, what_is_none)
{
	refused("no-profile", "top", "--file", victim_path(PROFILE), NULL);
	refused("cannot-read", "top", "--file", "/nowhere/at/all", NULL);
	refused("cannot-read", "diff", "/nowhere/at/all", "/nowhere", NULL);
	refused("bad-suffix", "export", "/tmp/x.jpg", "--file", "/dev/null");
	refused("bad-number", "top", "0", "--file", "/dev/null");
	refused("bad-number", "top", "many", "--file", "/dev/null");
	refused("no-profile", "top", "--file", "/dev/null", NULL);
}

/* p->other is p->heap as sed makes it. */
static void edited(const struct place *p, const char *script)
{
	char command[200];
	struct run r;

	snprintf(command, sizeof(command), "sed '%s' \"$0\" >\"$1\"", script);
	program_at(&r, "sh", "-c", command, p->heap, p->other, NULL);
	cr_assert_eq(r.exit, 0);
	run_free(&r);
}

/* The program's file is none that p->other's addresses mean: that is said, and it has no names. */
static void expect_no_names(const struct place *p)
{
	json_t *o, *row;
	struct run r;

	program_at(&r, NULL, "--json", "prof", "top", "--file", p->other, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	cr_assert(json_warned(o, "no-names"));
	row = json_array_get(json_at(o, "result.rows"), 0);
	cr_assert(strncmp(json_text(row, "symbol"), "profiled+0x", 11) == 0, "%s",
		  json_text(row, "symbol"));
	json_decref(o);
	run_free(&r);
}

/* The program is another one than it was, or is gone: that is said, and there are no wrong names.
 */
Test(prof_file, program_is_gone)
{
	struct place p;
	struct run r;

	place_make(&p, "flat");
	edited(&p, "s,/[^ ]*/profiled$,/nowhere\\\\033[31m/profiled,");
	expect_no_names(&p);
	/* the path is somebody's, and no terminal obeys it */
	program_at(&r, NULL, "prof", "top", "--file", p.other, NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.err, "/nowhere\\x1b[31m/profiled: "), "%s", r.err);
	cr_assert_null(strchr(r.err, '\x1b'));
	run_free(&r);
	place_end(&p);
}

/* As it stands in a dump that was made after the program was replaced: what has its path now is
 * another file. */
Test(prof_file, program_was_replaced_before)
{
	struct place p;

	place_make(&p, "flat");
	edited(&p, "s,/profiled$,& (deleted),");
	expect_no_names(&p);
	place_end(&p);
}

/* Whether it is the same file is not known, by its inode: that is said. */
Test(prof_file, program_was_replaced_since)
{
	struct place p;
	struct run r;
	json_t *o;

	place_make(&p, "flat");
	program_at(&r, NULL, "--json", "prof", "top", "--file", p.heap, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	cr_assert_not(json_warned(o, "other-file"));
	json_decref(o);
	run_free(&r);
	edited(&p, "s,[0-9]* *\\(/[^ ]*/profiled\\)$,77 \\1,");
	program_at(&r, NULL, "--json", "prof", "top", "--file", p.other, NULL);
	run_expect(&r, 0);
	o = answer(&r);
	cr_assert(json_warned(o, "other-file"));
	json_decref(o);
	run_free(&r);
	place_end(&p);
}
