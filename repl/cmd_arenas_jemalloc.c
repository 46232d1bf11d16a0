// SPDX-License-Identifier: GPL-3.0-or-later
/* jemalloc's rows of `arenas`: what it has said by calls. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../agent/jemalloc_arenas.h"
#include "commands.h"
#include "context.h"

#define ROWS_SHOWN 20
#define ORIGIN	   "called"
#define INDENT	   2 /* of a note that goes on below */

/* ---- text */

static const struct column columns[] = {
	{ "ARENA", true },   { "ALLOCATED", true }, { "ACTIVE", true },	  { "DIRTY", true },
	{ "MUZZY", true },   { "RETAINED", true },  { "METADATA", true }, { "TCACHE", true },
	{ "THREADS", true }, { "DECAY", false },    { "FLAGS", false },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))
/* The figure behind each column of bytes, from the second on. */
static const enum jemalloc_figure figures[] = { JEM_ALLOCATED, JEM_ACTIVE,   JEM_DIRTY, JEM_MUZZY,
						JEM_RETAINED,  JEM_METADATA, JEM_TCACHE };
#define FIGURES (sizeof(figures) / sizeof(figures[0]))
/* `decay` and `mallctl` have them as well. */
static const unsigned optional[] = { 7 /* TCACHE */, 6 /* METADATA */, 8 /* THREADS */,
				     9 /* DECAY */,  5 /* RETAINED */, 4 /* MUZZY */ };

const char *decay_text(int64_t ms, char buf[SIZE_TEXT])
{
	if (ms < 0)
		snprintf(buf, SIZE_TEXT, "never");
	else if (ms == 0)
		snprintf(buf, SIZE_TEXT, "at once");
	else if (ms % 1000 == 0)
		snprintf(buf, SIZE_TEXT, "%" PRId64 " s", ms / 1000);
	else
		snprintf(buf, SIZE_TEXT, "%" PRId64 " ms", ms);
	return buf;
}

/* "10 s, muzzy at once" */
static void decays(const struct jemalloc_arena *a, char *buf, size_t size)
{
	char dirty[SIZE_TEXT], muzzy[SIZE_TEXT];
	int64_t d, m;

	if (!jemalloc_figure(a, JEM_DIRTY_DECAY, &d))
		snprintf(buf, size, "-");
	else if (!jemalloc_figure(a, JEM_MUZZY_DECAY, &m))
		snprintf(buf, size, "%s", decay_text(d, dirty));
	else
		snprintf(buf, size, "%s, muzzy %s", decay_text(d, dirty), decay_text(m, muzzy));
}

static void print_row(struct table *t, const struct jemalloc_arena *a, bool total, bool bytes)
{
	char cell[COLUMNS][SIZE_TEXT * 2 + 16];
	const char *cells[COLUMNS];
	int64_t v;

	memset(cell, 0, sizeof(cell));
	for (size_t i = 0; i < COLUMNS; i++)
		cells[i] = cell[i];
	if (total)
		cells[0] = "total";
	else
		snprintf(cell[0], sizeof(cell[0]), "%u", a->index);
	for (size_t i = 0; i < FIGURES; i++)
		cells[i + 1] = jemalloc_figure(a, figures[i], &v)
				       ? text_size(cell[i + 1], (uint64_t)v, bytes)
				       : "-";
	if (jemalloc_figure(a, JEM_THREADS, &v))
		snprintf(cell[8], sizeof(cell[8]), "%" PRId64, v);
	if (!total)
		decays(a, cell[9], sizeof(cell[9]));
	snprintf(cell[10], sizeof(cell[10]), "%s%s%s", a->huge ? "huge" : "",
		 a->huge && a->impossible ? "," : "", a->impossible ? "impossible" : "");
	table_row(t, cells);
}

static bool has_huge(const struct jemalloc_arenas *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].huge)
			return true;
	return false;
}

static void print_notes(const struct context *c, const struct jemalloc_arenas *a)
{
	char size[SIZE_TEXT], text[256], huge[96] = "", epoch[48] = "";
	int64_t dirty, muzzy;

	if (jemalloc_figure(&a->total, JEM_DIRTY, &dirty)) {
		(void)jemalloc_figure(&a->total, JEM_MUZZY, &muzzy);
		snprintf(text, sizeof(text),
			 "`purge` returns dirty and muzzy pages: %s; muzzy ones stay in RSS until "
			 "the kernel needs them, retained is address space without memory",
			 text_size(size, (uint64_t)(dirty + muzzy), c->set.bytes));
		sink_words(c->sink, INDENT, text);
	}
	if (a->threshold && has_huge(a))
		snprintf(huge, sizeof(huge),
			 "; huge is for blocks of %s and more, its pages go back at once",
			 text_size(size, a->threshold, c->set.bytes));
	if (a->fresh.known)
		snprintf(epoch, sizeof(epoch), ", epoch %" PRIu64, a->fresh.epoch);
	snprintf(text, sizeof(text), "%zu of %" PRIu64 " arenas are initialised%s (" ORIGIN "%s)",
		 a->n, a->narenas, huge, epoch);
	sink_words(c->sink, INDENT, text);
}

static int print_arenas(const struct context *c, const struct jemalloc_arenas *a, bool all,
			bool titled)
{
	size_t shown = all || a->n < ROWS_SHOWN ? a->n : ROWS_SHOWN;
	struct table *t = table_new(columns, COLUMNS);
	int err;

	if (!t)
		return -ENOMEM;
	if (titled)
		fprintf(c->sink->out, "\n%sjemalloc:%s\n", sink_paint(c->sink, PAINT_HEAD),
			sink_plain(c->sink));
	table_optional(t, optional, sizeof(optional) / sizeof(optional[0]));
	for (size_t i = 0; i < shown; i++)
		print_row(t, &a->v[i], false, c->set.bytes);
	print_row(t, &a->total, true, c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	if (shown < a->n)
		fprintf(c->sink->out, "and %zu more arenas (arenas --all)\n", a->n - shown);
	print_notes(c, a);
	return err;
}

/* ---- JSON */

static void add_figures(struct reply *r, json_t *o, const struct jemalloc_arena *a, unsigned end)
{
	int64_t v;

	for (unsigned f = 0; f < end; f++) {
		bool known = jemalloc_figure(a, (enum jemalloc_figure)f, &v);

		reply_member(r, o, jemalloc_figure_name((enum jemalloc_figure)f),
			     known ? json_integer(v) : json_null());
	}
}

static void reply_arenas(struct reply *r, const struct jemalloc_arenas *a)
{
	json_t *list = json_object_get(r->result, "arenas");

	for (size_t i = 0; i < a->n; i++) {
		json_t *o = json_object(), *flags = json_array();

		reply_member(r, o, "allocator", json_string("jemalloc"));
		reply_member(r, o, "index", json_integer(a->v[i].index));
		add_figures(r, o, &a->v[i], JEM_FIGURES);
		if ((a->v[i].huge && json_array_append_new(flags, json_string("huge"))) ||
		    (a->v[i].impossible && json_array_append_new(flags, json_string("impossible"))))
			r->failed = true;
		reply_member(r, o, "flags", flags);
		reply_member(r, o, "origin", json_string(ORIGIN));
		if (json_array_append_new(list, o))
			r->failed = true;
	}
}

static void reply_all(struct reply *r, const struct jemalloc_arenas *a)
{
	json_t *all = json_object(), *total = json_object();

	reply_arenas(r, a);
	add_figures(r, total, &a->total, JEM_DIRTY_DECAY);
	reply_member(r, all, "initialised", json_u64(a->n));
	reply_member(r, all, "narenas", json_u64(a->narenas));
	reply_member(r, all, "page", a->page ? json_u64(a->page) : json_null());
	reply_member(r, all, "oversize_threshold",
		     a->threshold ? json_u64(a->threshold) : json_null());
	reply_member(r, all, "total", total);
	reply_member(r, all, "epoch", a->fresh.known ? json_u64(a->fresh.epoch) : json_null());
	reply_member(r, all, "as_of", json_time(&a->fresh.at));
	reply_member(r, all, "origin", json_string(ORIGIN));
	reply_set(r, "jemalloc", all);
}

int show_jemalloc_arenas(struct context *c, struct reply *r, const struct jemalloc_arenas *a,
			 bool all, bool titled, struct diag *d)
{
	if (a->cut)
		reply_warn(c, r, "sweep-cut",
			   "jemalloc says that it has %" PRIu64 " arenas, more than there can be: "
			   "the first %d were looked at",
			   a->narenas, JEMALLOC_ARENAS_MAX);
	if (a->total.impossible)
		reply_warn(c, r, "impossible",
			   "a number that jemalloc has given is larger than any address space: it "
			   "is left out");
	if (c->set.json)
		reply_all(r, a);
	else if (print_arenas(c, a, all, titled))
		return diag_internal(d, -ENOMEM, "the table");
	return 0;
}
