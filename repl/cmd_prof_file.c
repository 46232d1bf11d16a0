// SPDX-License-Identifier: GPL-3.0-or-later
#include "prof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/profile_top.h"
#include "context.h"
#include "prof_view.h"

#define ROWS_SHOWN 20
#define NAME_LEAST 20 /* columns of a terminal that a name has at least */

static enum call_names names_of(const struct args *a)
{
	return a->opt[PROF_MANGLED] ? CALL_NAMES_MANGLED : CALL_NAMES_BRIEF;
}

static uint64_t bytes_of(double v)
{
	return profile_round(v);
}

static int64_t delta_of(double before, double after)
{
	return (int64_t)bytes_of(after) - (int64_t)bytes_of(before);
}

static double share(double part, double whole)
{
	return whole > 0 ? part * 100 / whole : 0;
}

/* A name and where it is, cut to what of the line is left in a terminal. */
static void function_text(const struct context *c, const char *symbol, const char *file,
			  unsigned line, unsigned before, char *buf, size_t size)
{
	unsigned width = sink_width(c->sink);
	size_t fit = width > before + NAME_LEAST ? width - before : width ? NAME_LEAST : size;
	const char *slash = strrchr(file, '/');
	int n;

	if (*file)
		n = snprintf(buf, size, "%s (%s:%u)", symbol, slash ? slash + 1 : file, line);
	else
		n = snprintf(buf, size, "%s", symbol);
	if (n > 2 && (size_t)n > fit && fit < size)
		memcpy(buf + fit - 2, "..", 3);
}

/* ---- top */

/* How many rows are wanted; SIZE_MAX for all of them. */
static bool rows_wanted(const char *word, size_t *n)
{
	char *end;

	if (strcmp(word, "all") == 0) {
		*n = SIZE_MAX;
		return true;
	}
	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*n = strtoul(word, &end, 10);
	return !errno && !*end && *n > 0;
}

int check_prof_top(const struct args *a, struct diag *d)
{
	size_t n;

	if (a->argc < 2 || rows_wanted(a->argv[1], &n))
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-number", "prof top 50, or prof top all",
			 "prof top: '%.60s' is no number of rows", a->argv[1]);
}

static void print_total(const struct context *c, const struct profile *p)
{
	char live[SIZE_TEXT], every[SIZE_TEXT];

	fprintf(c->sink->out,
		"%s live in %" PRIu64 " objects, by samples of one per %s, %zu stacks\n",
		text_size(live, bytes_of(p->total.live_bytes), c->set.bytes),
		profile_round(p->total.live_objects),
		text_size(every, p->sample_bytes, c->set.bytes), p->stacks);
}

static void top_row(const struct context *c, struct table *t, const struct top_row *row, double sum,
		    double whole)
{
	char cell[5][SIZE_TEXT], objects[SIZE_TEXT], name[1024];

	snprintf(cell[1], SIZE_TEXT, "%.1f", share(row->flat.live_bytes, whole));
	snprintf(cell[2], SIZE_TEXT, "%.1f", share(sum, whole));
	snprintf(cell[4], SIZE_TEXT, "%.1f", share(row->cum_bytes, whole));
	snprintf(objects, SIZE_TEXT, "%" PRIu64, profile_round(row->flat.live_objects));
	function_text(c, row->symbol, row->file, row->line, 60, name, sizeof(name));
	table_row(t,
		  (const char *const[]){
			  text_size(cell[0], bytes_of(row->flat.live_bytes), c->set.bytes), cell[1],
			  cell[2], text_size(cell[3], bytes_of(row->cum_bytes), c->set.bytes),
			  cell[4], objects, name });
}

static int print_top(const struct context *c, const struct profile *p, const struct profile_top *t,
		     size_t shown)
{
	static const struct column columns[] = {
		{ "FLAT", true }, { "%", true },       { "SUM %", true },     { "CUM", true },
		{ "%", true },	  { "OBJECTS", true }, { "FUNCTION", false },
	};
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	double sum = 0;
	int err;

	if (!table)
		return -ENOMEM;
	print_total(c, p);
	for (size_t i = 0; i < shown; i++) {
		sum += t->row[i].flat.live_bytes;
		top_row(c, table, &t->row[i], sum, t->total.live_bytes);
	}
	err = table_print(table, c->sink);
	table_free(table);
	if (shown < t->rows)
		fprintf(c->sink->out, "and %zu more functions (prof top all)\n", t->rows - shown);
	return err;
}

static void place_json(struct reply *r, json_t *o, const char *symbol, const char *file,
		       unsigned line)
{
	reply_member(r, o, "symbol", json_text(symbol, strlen(symbol)));
	reply_member(r, o, "file", *file ? json_text(file, strlen(file)) : json_null());
	reply_member(r, o, "line", line ? json_integer(line) : json_null());
}

static void answer_top(struct reply *r, const struct profile *p, const struct profile_top *t,
		       size_t shown)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < shown; i++) {
		const struct top_row *row = &t->row[i];
		json_t *o = json_object();

		reply_member(r, o, "flat_bytes", json_u64(bytes_of(row->flat.live_bytes)));
		reply_member(r, o, "flat_objects", json_u64(profile_round(row->flat.live_objects)));
		reply_member(r, o, "cum_bytes", json_u64(bytes_of(row->cum_bytes)));
		place_json(r, o, row->symbol, row->file, row->line);
		if (json_array_append_new(rows, o))
			r->failed = true;
	}
	reply_set(r, "total_bytes", json_u64(bytes_of(t->total.live_bytes)));
	reply_set(r, "total_objects", json_u64(profile_round(t->total.live_objects)));
	reply_set(r, "sample_bytes", json_u64(p->sample_bytes));
	reply_set(r, "stacks", json_u64(p->stacks));
	reply_set(r, "functions", json_u64(t->rows));
	reply_set(r, "rows", rows);
}

int prof_top(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct prof_view v;
	struct profile_top top;
	size_t n = ROWS_SHOWN;
	int err = prof_view_open(c, r, a->opt[PROF_FILE], names_of(a), false, &v, d);

	if (err)
		return err;
	if (a->argc > 1 && !rows_wanted(a->argv[1], &n))
		n = ROWS_SHOWN;
	err = profile_top_make(v.calls, a->opt[PROF_CUM] != NULL, &top);
	if (err) {
		prof_view_close(&v);
		return diag_internal(d, err, "the table");
	}
	n = n < top.rows ? n : top.rows;
	err = prof_view_places(&v, top.row, n, d);
	if (!err && c->set.json)
		answer_top(r, v.profile, &top, n);
	else if (!err && print_top(c, v.profile, &top, n))
		err = diag_internal(d, -ENOMEM, "the table");
	profile_top_free(&top);
	prof_view_close(&v);
	return err;
}

/* ---- diff */

static int print_changes(const struct context *c, const struct profile_change *x)
{
	static const struct column columns[] = {
		{ "DELTA", true }, { "BEFORE", true },	  { "AFTER", true },
		{ "CUM", true },   { "FUNCTION", false },
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t shown = x->rows < ROWS_SHOWN ? x->rows : ROWS_SHOWN;
	char cell[4][SIZE_TEXT], name[1024];
	bool raw = c->set.bytes;
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++) {
		const struct change_row *w = &x->row[i];

		function_text(c, w->symbol, w->file, w->line, 56, name, sizeof(name));
		table_row(
			t,
			(const char *const[]){
				text_delta(cell[0], delta_of(w->before_bytes, w->after_bytes), raw),
				text_size(cell[1], bytes_of(w->before_bytes), raw),
				text_size(cell[2], bytes_of(w->after_bytes), raw),
				text_delta(cell[3],
					   delta_of(w->cum_before_bytes, w->cum_after_bytes), raw),
				name });
	}
	fprintf(c->sink->out, "live %s -> %s (%s)\n",
		text_size(cell[0], bytes_of(x->before.live_bytes), raw),
		text_size(cell[1], bytes_of(x->after.live_bytes), raw),
		text_delta(cell[2], delta_of(x->before.live_bytes, x->after.live_bytes), raw));
	err = table_print(t, c->sink);
	table_free(t);
	if (shown < x->rows)
		fprintf(c->sink->out, "and %zu more functions with a change\n", x->rows - shown);
	return err;
}

static void answer_changes(struct reply *r, const struct profile_change *x)
{
	double before = x->before.live_bytes, after = x->after.live_bytes;
	json_t *rows = json_array();

	for (size_t i = 0; i < x->rows; i++) {
		const struct change_row *w = &x->row[i];
		json_t *o = json_object();

		reply_member(r, o, "before_bytes", json_u64(bytes_of(w->before_bytes)));
		reply_member(r, o, "after_bytes", json_u64(bytes_of(w->after_bytes)));
		reply_member(r, o, "delta_bytes",
			     json_integer(delta_of(w->before_bytes, w->after_bytes)));
		reply_member(r, o, "delta_objects",
			     json_integer(delta_of(w->before_objects, w->after_objects)));
		reply_member(r, o, "cum_delta_bytes",
			     json_integer(delta_of(w->cum_before_bytes, w->cum_after_bytes)));
		place_json(r, o, w->symbol, w->file, w->line);
		if (json_array_append_new(rows, o))
			r->failed = true;
	}
	reply_set(r, "before_bytes", json_u64(bytes_of(before)));
	reply_set(r, "after_bytes", json_u64(bytes_of(after)));
	reply_set(r, "delta_bytes", json_integer(delta_of(before, after)));
	reply_set(r, "rows", rows);
}

int prof_diff(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct prof_view v, w;
	struct profile_change x;
	int err = prof_view_open(c, r, a->argv[1], names_of(a), true, &v, d);

	if (err)
		return err;
	err = prof_view_open(c, r, a->argv[2], names_of(a), true, &w, d);
	if (err) {
		prof_view_close(&v);
		return err;
	}
	err = profile_change_make(v.calls, w.calls, &x);
	if (!err) {
		if (c->set.json)
			answer_changes(r, &x);
		else
			err = print_changes(c, &x);
		profile_change_free(&x);
	}
	prof_view_close(&v);
	prof_view_close(&w);
	return err ? diag_internal(d, err, "the comparison") : 0;
}
