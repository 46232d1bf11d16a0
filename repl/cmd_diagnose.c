// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "allocator_text.h"
#include "context.h"
#include "fact_text.h"
#include "owner_text.h"
#include "view.h"

#define ROWS_SHOWN 8 /* one screen holds all of it */

/* ---- rows */

/* Its memory was divided by what a call has told. */
static bool is_asked(enum owner owner, const struct look *l)
{
	return (owner == OWNER_JEMALLOC && l->jemalloc_asked) ||
	       (owner == OWNER_TCMALLOC && l->tcmalloc.asked);
}

/* Who the owner is: said by the kernel, read from memory, or asked. */
static const char *row_origin(const struct owner_row *row, const struct look *l)
{
	if (is_asked(row->owner, l))
		return origin_name(FROM_CALL);
	return origin_name(row->basis == BASIS_KERNEL ? FROM_KERNEL : FROM_PASSIVE);
}

static const char *row_detail(const struct owner_row *row, const struct look *l, char *buf,
			      size_t size)
{
	owner_row_text(row, buf, size);
	if ((row->owner == OWNER_JEMALLOC || row->owner == OWNER_TCMALLOC) &&
	    !is_asked(row->owner, l))
		snprintf(buf, size, "%s",
			 row->owner == OWNER_JEMALLOC &&
					 facts_known(&l->facts, FACT_JEMALLOC_PURGEABLE)
				 ? "without statistics"
				 : "not asked");
	if (row->owner == OWNER_MIMALLOC || row->owner == OWNER_MUSL)
		snprintf(buf, size, "does not tell what is in use");
	return buf;
}

/* ---- text */

static const struct column columns[] = {
	{ "OWNER", false }, { "RSS", true },	 { "%", true },
	{ "SWAP", true },   { "ORIGIN", false }, { "DETAIL", false },
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct shown {
	const char *owner, *origin, *detail;
	uint64_t resident, swap, rss;
};

static void print_row(struct table *t, const struct shown *s, bool raw)
{
	char resident[SIZE_TEXT], swap[SIZE_TEXT], share[16] = "";

	if (s->rss)
		snprintf(share, sizeof(share), "%.0f", (double)s->resident * 100 / (double)s->rss);
	table_row(t, (const char *const[]){ s->owner, text_size(resident, s->resident, raw), share,
					    s->swap ? text_size(swap, s->swap, raw) : "", s->origin,
					    s->detail });
}

static void print_rest(struct table *t, const struct owner_table *rows, size_t from, uint64_t rss,
		       bool raw)
{
	struct shown s = { .owner = "others", .origin = "", .rss = rss };
	char detail[48];

	if (from >= rows->n)
		return;
	for (size_t i = from; i < rows->n; i++) {
		s.resident += rows->v[i].a.resident;
		s.swap += rows->v[i].a.swap;
	}
	snprintf(detail, sizeof(detail), "%zu more rows (`maps`)", rows->n - from);
	s.detail = detail;
	print_row(t, &s, raw);
}

static int print_rows(const struct context *c, const struct look *l, const struct owner_table *rows)
{
	struct table *t = table_new(columns, COLUMNS);
	const struct memory *m = &l->memory;
	struct shown total = { "total", "", "", m->usage.rss, m->owners.total.swap, 0 };
	char rest[SIZE_TEXT], detail[OWNER_ROW_TEXT];
	/* one row less than there is room for is no saving */
	size_t n = rows->n <= ROWS_SHOWN + 1 ? rows->n : ROWS_SHOWN;
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct owner_row *row = &rows->v[i];

		print_row(t,
			  &(struct shown){ owner_name(row->owner), row_origin(row, l),
					   row_detail(row, l, detail, sizeof(detail)),
					   row->a.resident, row->a.swap, m->usage.rss },
			  c->set.bytes);
	}
	print_rest(t, rows, n, m->usage.rss, c->set.bytes);
	if (m->remainder)
		table_row(t, (const char *const[]){ "remainder",
						    text_delta(rest, m->remainder, c->set.bytes),
						    "", "", "", "changed while it was read" });
	print_row(t, &total, c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	return err;
}

#define LINE_FACTS 7
/* What each allocator has: known facts of these, in one line. */
static const struct {
	const char *name;
	const struct {
		enum fact_id id;
		const char *label;
	} fact[LINE_FACTS];
} lines[] = {
	{ "glibc",
	  { { FACT_GLIBC_ARENAS, "arenas" },
	    { FACT_GLIBC_IN_USE, "in use" },
	    { FACT_GLIBC_FREE_RESIDENT, "free and resident" },
	    { FACT_GLIBC_TRIMMABLE, "trimmable" },
	    { FACT_GLIBC_STRANDED, "stranded" },
	    { FACT_GLIBC_MMAPPED, "mmapped" },
	    { FACT_GLIBC_TCACHE, "thread caches" } } },
	/* of glibc, what a restart may set */
	{ "in force",
	  { { FACT_GLIBC_TRIM_THRESHOLD, "trim_threshold" },
	    { FACT_GLIBC_MMAP_THRESHOLD, "mmap_threshold" },
	    { FACT_GLIBC_ARENA_LIMIT, "arenas at most" } } },
	{ "jemalloc",
	  { { FACT_JEMALLOC_ALLOCATED, "allocated" },
	    { FACT_JEMALLOC_ACTIVE, "active" },
	    { FACT_JEMALLOC_DIRTY, "dirty" },
	    { FACT_JEMALLOC_MUZZY, "muzzy" },
	    { FACT_JEMALLOC_METADATA, "metadata" },
	    { FACT_JEMALLOC_FRAGMENTATION, "fragmentation" },
	    { FACT_JEMALLOC_NARENAS, "arenas" } } },
	{ "tcmalloc",
	  { { FACT_TCMALLOC_ALLOCATED, "allocated" },
	    { FACT_TCMALLOC_PAGEHEAP_FREE, "free spans" },
	    { FACT_TCMALLOC_THREAD_CACHES, "thread caches" },
	    { FACT_TCMALLOC_CENTRAL_CACHE, "central cache" },
	    { FACT_TCMALLOC_TRANSFER_CACHE, "transfer cache" },
	    { FACT_TCMALLOC_UNMAPPED, "unmapped" },
	    { FACT_TCMALLOC_HEAP, "heap" } } },
	{ "mimalloc",
	  { { FACT_MIMALLOC_COMMITTED, "committed" },
	    { FACT_MIMALLOC_COMMITTED_PEAK, "at most so far" } } },
	{ "go",
	  { { FACT_GO_HEAP_RESIDENT, "heap resident" }, { FACT_GO_HEAP_MAPPED, "heap mapped" } } },
};

/* Begins a line of the block below the rows. */
static void begin(const struct context *c, bool *begun, const char *name)
{
	fprintf(c->sink->out, "%s%-9s", *begun ? "" : "\n", name);
	*begun = true;
}

static void print_line(const struct context *c, const struct facts *f, size_t line, bool *begun)
{
	FILE *out = c->sink->out;
	enum fact_origin most = FROM_KERNEL;
	char value[48];
	unsigned seen = 0;

	for (size_t i = 0; i < LINE_FACTS && lines[line].fact[i].label; i++) {
		enum fact_id id = lines[line].fact[i].id;
		bool predicted = f->v[id].origin == FROM_PREDICTION;

		if (!facts_known(f, id))
			continue;
		if (!seen++)
			begin(c, begun, lines[line].name);
		if (!predicted)
			most = f->v[id].origin;
		fprintf(out, "%s %s %s%s", seen > 1 ? "," : "", lines[line].fact[i].label,
			fact_text(f, id, c->set.bytes, value, sizeof(value)),
			predicted ? " (predicted)" : "");
	}
	if (seen)
		fprintf(out, " (%s)\n", origin_name(most));
}

static void print_cgroup(const struct context *c, const struct memory_cgroup *g, bool *begun)
{
	char used[SIZE_TEXT], limit[SIZE_TEXT], room[SIZE_TEXT];
	const struct cgroup_limit *t = &g->tightest;
	FILE *out = c->sink->out;
	bool raw = c->set.bytes;

	if (!g->version || t->limit == CGROUP_NO_LIMIT)
		return;
	begin(c, begun, "cgroup");
	fprintf(out, " used %s of %s, room %s, oom kills %" PRIu64, text_size(used, t->usage, raw),
		text_size(limit, t->limit, raw), text_size(room, cgroup_room(t), raw),
		g->oom_kills);
	if (g->has_pressure)
		fprintf(out, ", memory pressure some %.1f %%, full %.1f %%", g->pressure_some,
			g->pressure_full);
	fputs(" (kernel)\n", out);
}

static void print_advice(const struct context *c, const struct advices *v)
{
	static const char *const when[] = {
		[ADVICE_TRIM] = "now",	      [ADVICE_PURGE] = "now", [ADVICE_RESTART] = "restart",
		[ADVICE_LOOK_AT] = "look at", [ADVICE_NOTE] = "note",
	};
	char size[SIZE_TEXT];

	for (size_t i = 0; i < v->n; i++) {
		const struct advice *a = &v->v[i];

		fprintf(c->sink->out, "%-9s %s", when[a->action], a->text);
		if (a->known)
			fprintf(c->sink->out, ": %s%s", a->action == ADVICE_RESTART ? "about " : "",
				text_delta(size, -(int64_t)a->expected, c->set.bytes));
		putc('\n', c->sink->out);
	}
}

static int print_all(const struct context *c, const struct look *l, const struct owner_table *rows)
{
	static const enum paint paints[] = {
		[VERDICT_RETAINED] = PAINT_WARN,      [VERDICT_FRAGMENTED] = PAINT_WARN,
		[VERDICT_LIVE] = PAINT_WARN,	      [VERDICT_GO_HEAP] = PAINT_WARN,
		[VERDICT_NOT_ALLOCATOR] = PAINT_WARN, [VERDICT_LOCKED] = PAINT_WARN,
		[VERDICT_HEALTHY] = PAINT_GOOD,	      [VERDICT_UNDECIDED] = PAINT_WARN,
	};
	const struct sink *s = c->sink;
	bool begun = false;
	int err;

	fprintf(s->out, "%s%s%s: %s\n\n", sink_paint(s, paints[l->verdict]),
		verdict_name(l->verdict), sink_plain(s), l->summary);
	err = print_rows(c, l, rows);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		print_line(c, &l->facts, i, &begun);
	print_cgroup(c, &l->cgroup, &begun);
	if (l->advice.n)
		putc('\n', s->out);
	print_advice(c, &l->advice);
	return err;
}

/* ---- JSON */

static json_t *row_json(struct reply *r, const struct owner_row *row, const struct look *l)
{
	char detail[OWNER_ROW_TEXT];
	json_t *o = json_object();

	row_detail(row, l, detail, sizeof(detail));
	reply_member(r, o, "owner", json_string(owner_name(row->owner)));
	reply_member(r, o, "detail", json_text(detail, strlen(detail)));
	reply_member(r, o, "resident_bytes", json_u64(row->a.resident));
	reply_member(r, o, "swap_bytes", json_u64(row->a.swap));
	reply_member(r, o, "origin", json_string(row_origin(row, l)));
	return o;
}

static json_t *advice_json(struct reply *r, const struct advice *a)
{
	json_t *o = json_object();

	reply_member(r, o, "action", json_string(advice_action_name(a->action)));
	reply_member(r, o, "text", json_text(a->text, strlen(a->text)));
	reply_member(r, o, "expected_bytes", a->known ? json_u64(a->expected) : json_null());
	return o;
}

static json_t *cgroup_json(struct reply *r, const struct memory_cgroup *g)
{
	bool limited = g->tightest.limit != CGROUP_NO_LIMIT;
	json_t *o;

	if (!g->version)
		return json_null();
	o = json_object();
	reply_member(r, o, "path", json_text(g->path, strlen(g->path)));
	reply_member(r, o, "used_bytes", json_u64(g->tightest.usage));
	reply_member(r, o, "limit_bytes", limited ? json_u64(g->tightest.limit) : json_null());
	reply_member(r, o, "room_bytes",
		     limited ? json_u64(cgroup_room(&g->tightest)) : json_null());
	reply_member(r, o, "oom_kills", json_u64(g->oom_kills));
	reply_member(r, o, "pressure_some",
		     g->has_pressure ? json_real(g->pressure_some) : json_null());
	reply_member(r, o, "pressure_full",
		     g->has_pressure ? json_real(g->pressure_full) : json_null());
	return o;
}

static void answer_json(struct context *c, struct reply *r, const struct look *l,
			const struct owner_table *rows)
{
	json_t *list = json_array();

	reply_set(r, "verdict", json_string(verdict_name(l->verdict)));
	reply_set(r, "summary", json_string(l->summary));
	reply_set(r, "facts", facts_json(r, &l->facts));
	reply_set(r, "origins", fact_origins_json(r, &l->facts));
	for (size_t i = 0; i < rows->n; i++)
		if (json_array_append_new(list, row_json(r, &rows->v[i], l)))
			r->failed = true;
	reply_set(r, "rows", list);
	reply_set(r, "remainder_bytes", json_integer(l->memory.remainder));
	reply_set(r, "cgroup", cgroup_json(r, &l->cgroup));
	reply_set(r, "allocators", allocators_json(r, view_allocators(c)));
	list = json_array();
	for (size_t i = 0; i < l->advice.n; i++)
		if (json_array_append_new(list, advice_json(r, &l->advice.v[i])))
			r->failed = true;
	reply_set(r, "advice", list);
}

/* ---- the command */

int cmd_diagnose(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct owner_table rows;
	const struct look *l;
	struct look own;
	int err = view_look(c, true, &own, &l, d);

	(void)a;
	if (err)
		return err;
	err = owners_table(&l->memory.owners, &rows);
	if (!err && c->set.json)
		answer_json(c, r, l, &rows);
	else if (!err)
		err = print_all(c, l, &rows);
	if (err)
		diag_internal(d, err, "the table");
	else
		look_warn(c, r, l, true);
	owner_table_free(&rows);
	if (l == &own)
		look_free(&own);
	return err;
}
