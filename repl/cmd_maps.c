// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "../agent/owners_read.h"
#include "../inject/status.h"
#include "context.h"
#include "owner_text.h"
#include "view.h"

/* ---- figures */

static void add_figures(struct reply *r, json_t *o, const struct amounts *a)
{
	reply_member(r, o, "mapped_bytes", json_u64(a->mapped));
	reply_member(r, o, "resident_bytes", json_u64(a->resident));
	reply_member(r, o, "swap_bytes", json_u64(a->swap));
	reply_member(r, o, "huge_bytes", json_u64(a->huge));
	reply_member(r, o, "lazyfree_bytes", json_u64(a->lazyfree));
	reply_member(r, o, "locked_bytes", json_u64(a->locked));
	reply_member(r, o, "hugetlb_bytes", json_u64(a->hugetlb));
}

enum { CELLS = 6 };

/* Nothing is an empty cell, so that what there is stands out. */
static void figure_cells(const struct amounts *a, bool raw, char text[CELLS][SIZE_TEXT],
			 const char **cells)
{
	const uint64_t v[CELLS] = {
		a->mapped, a->resident, a->swap, a->huge, a->lazyfree, a->locked
	};

	for (size_t i = 0; i < CELLS; i++)
		cells[i] = v[i] || i == 1 ? text_size(text[i], v[i], raw) : "";
}

/* ---- the table by owner */

static void print_row(struct table *t, const struct owner_row *row, bool raw)
{
	char text[CELLS][SIZE_TEXT], count[24], detail[OWNER_ROW_TEXT];
	const char *cells[3 + CELLS] = { owner_name(row->owner), count };

	snprintf(count, sizeof(count), "%zu", row->count);
	owner_row_text(row, detail, sizeof(detail));
	figure_cells(&row->a, raw, text, cells + 2);
	cells[2 + CELLS] = detail;
	table_row(t, cells);
}

static void print_totals(struct table *t, const struct memory *m, bool raw)
{
	char text[CELLS][SIZE_TEXT], rest[SIZE_TEXT], rss[SIZE_TEXT];
	const char *cells[3 + CELLS] = { "total", "" };

	if (m->remainder)
		table_row(t, (const char *const[]){ "remainder", "", "",
						    text_delta(rest, m->remainder, raw), "", "", "",
						    "", "changed while it was read" });
	figure_cells(&m->owners.total, raw, text, cells + 2);
	cells[3] = text_size(rss, m->usage.rss, raw);
	cells[2 + CELLS] = "";
	table_row(t, cells);
}

static int print_table(const struct context *c, const struct memory *m,
		       const struct owner_table *rows)
{
	static const struct column columns[] = {
		{ "OWNER", false }, { "COUNT", true },	{ "MAPPED", true },
		{ "RSS", true },    { "SWAP", true },	{ "HUGE", true },
		{ "LAZY", true },   { "LOCKED", true }, { "DETAIL", false },
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	char size[SIZE_TEXT];
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++)
		print_row(t, &rows->v[i], c->set.bytes);
	print_totals(t, m, c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	if (!err && m->owners.total.hugetlb)
		fprintf(c->sink->out,
			"and %s in pages of the huge page pool, which no RSS counts\n",
			text_size(size, m->owners.total.hugetlb, c->set.bytes));
	return err;
}

static json_t *row_json(struct reply *r, const struct owner_row *row)
{
	char detail[OWNER_ROW_TEXT];
	json_t *o = json_object();

	owner_row_text(row, detail, sizeof(detail));
	reply_member(r, o, "owner", json_string(owner_name(row->owner)));
	reply_member(r, o, "detail", json_text(detail, strlen(detail)));
	reply_member(r, o, "count", json_u64(row->count));
	add_figures(r, o, &row->a);
	reply_member(r, o, "origin", json_string("kernel"));
	reply_member(r, o, "basis", json_string(basis_name(row->basis)));
	return o;
}

/* ---- each mapping */

static const char *access_text(const struct map *m, char buf[8])
{
	snprintf(buf, 8, "%c%c%c%c", m->prot & PROT_READ ? 'r' : '-',
		 m->prot & PROT_WRITE ? 'w' : '-', m->prot & PROT_EXEC ? 'x' : '-',
		 m->shared ? 's' : 'p');
	return buf;
}

static void print_piece(struct table *t, const struct piece *p, bool raw)
{
	char text[CELLS][SIZE_TEXT], at[40], access[8], name[256], id[64];
	const char *cells[4 + CELLS] = { at, access };
	const char *what = p->row->map.name[0] ? p->row->map.name : p->kind;

	snprintf(at, sizeof(at), "%" PRIx64 "-%" PRIx64, p->start, p->end);
	access_text(&p->row->map, access);
	figure_cells(&p->a, raw, text, cells + 2);
	cells[2 + CELLS] = owner_name(p->owner);
	escape_copy(name, sizeof(name), what, strlen(what));
	if (p->id >= 0)
		snprintf(id, sizeof(id), "%ld", p->id);
	cells[3 + CELLS] = p->id >= 0 ? id : name;
	table_row(t, cells);
}

static int print_all(const struct context *c, const struct memory *m)
{
	static const struct column columns[] = {
		{ "ADDRESS", false }, { "ACCESS", false }, { "MAPPED", true }, { "RSS", true },
		{ "SWAP", true },     { "HUGE", true },	   { "LAZY", true },   { "LOCKED", true },
		{ "OWNER", false },   { "DETAIL", false },
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < m->owners.n; i++)
		print_piece(t, &m->owners.v[i], c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	return err;
}

static json_t *piece_json(struct reply *r, const struct piece *p)
{
	const struct map *m = &p->row->map;
	char start[24], end[24], access[8];
	json_t *o = json_object();

	snprintf(start, sizeof(start), "0x%" PRIx64, p->start);
	snprintf(end, sizeof(end), "0x%" PRIx64, p->end);
	reply_member(r, o, "start", json_string(start));
	reply_member(r, o, "end", json_string(end));
	reply_member(r, o, "access", json_string(access_text(m, access)));
	reply_member(r, o, "name", json_text(m->name, strlen(m->name)));
	reply_member(r, o, "owner", json_string(owner_name(p->owner)));
	reply_member(r, o, "detail", json_string(p->kind));
	reply_member(r, o, "id", p->id >= 0 ? json_integer(p->id) : json_null());
	add_figures(r, o, &p->a);
	reply_member(r, o, "basis", json_string(basis_name(p->basis)));
	return o;
}

/* ---- the command */

static void answer_json(struct reply *r, const struct memory *m, const struct owner_table *rows,
			bool all)
{
	json_t *list = json_array(), *total = json_object();

	for (size_t i = 0; i < rows->n; i++)
		if (json_array_append_new(list, row_json(r, &rows->v[i])))
			r->failed = true;
	reply_set(r, "rows", list);
	add_figures(r, total, &m->owners.total);
	reply_set(r, "total", total);
	reply_set(r, "rss_bytes", json_u64(m->usage.rss));
	reply_set(r, "remainder_bytes", json_integer(m->remainder));
	if (!all)
		return;
	list = json_array();
	for (size_t i = 0; i < m->owners.n; i++)
		if (json_array_append_new(list, piece_json(r, &m->owners.v[i])))
			r->failed = true;
	reply_set(r, "maps", list);
}

static void warn(struct context *c, struct reply *r, const struct memory *m)
{
	if (m->owners.estimated)
		reply_warn(c, r, "divided-by-length",
			   "%zu mappings with more than one owner were divided by length: their "
			   "pages could not be counted",
			   m->owners.estimated);
	if (m->smaps.torn)
		reply_warn(c, r, "torn-read",
			   "mappings changed while they were read: what does not fit stands in the "
			   "remainder");
}

int cmd_maps(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct memory *m;
	struct memory own;
	struct owner_table rows;
	int err = view_memory(c, &own, &m, d);

	if (err)
		return err;
	err = owners_table(&m->owners, &rows);
	if (!err && c->set.json)
		answer_json(r, m, &rows, a->opt[MAPS_ALL] != NULL);
	else if (!err && a->opt[MAPS_ALL])
		err = print_all(c, m);
	else if (!err)
		err = print_table(c, m, &rows);
	if (err)
		diag_internal(d, err, "the table");
	else
		warn(c, r, m);
	owner_table_free(&rows);
	if (m == &own)
		memory_free(&own);
	return err;
}
