// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../agent/diff.h"
#include "context.h"
#include "owner_text.h"

#define ARENAS_SHOWN 8
#define NAMES_SHOWN  4
#define MINUTE	     60.0
#define HOUR	     3600.0

/* Two looks, and what is shown of them. */
struct pair {
	const struct snapshot *a, *b;
	struct diff diff;
	double unit; /* seconds of what rates are told for; 0: too near to each other */
};

/* ---- text */

static const char *when(const struct snapshot *s, char buf[64])
{
	struct tm tm;

	buf[0] = '\0';
	if (gmtime_r(&s->time.tv_sec, &tm))
		strftime(buf, 64, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

static void print_side(const struct context *c, const char *side, const struct snapshot *s)
{
	char time[64];

	fprintf(c->sink->out, "%-8s%s  %s (pid %d)%s%s\n", side, when(s, time), s->comm,
		(int)s->pid, *s->host ? " on " : "", s->host);
}

static const char *delta_text(int64_t delta, bool raw, char buf[SIZE_TEXT])
{
	return delta ? text_delta(buf, delta, raw) : "";
}

static const char *rate_text(const struct pair *p, int64_t delta, bool raw, char buf[SIZE_TEXT])
{
	double rate;

	if (!delta || p->unit <= 0)
		return "";
	rate = (double)delta * p->unit / p->diff.seconds;
	if (!(rate > -9e18 && rate < 9e18))
		return "";
	return text_delta(buf, (int64_t)rate, raw);
}

static void print_row(struct table *t, const struct pair *p, const struct diff_row *row,
		      const char *owner, bool raw)
{
	char detail[OWNER_ROW_TEXT] = "", cell[4][SIZE_TEXT];

	if (row->row)
		owner_row_text(row->row, detail, sizeof(detail));
	table_row(t, (const char *const[]){ owner, detail, text_size(cell[0], row->before, raw),
					    text_size(cell[1], row->after, raw),
					    delta_text(row->delta, raw, cell[2]),
					    rate_text(p, row->delta, raw, cell[3]) });
}

static int print_owners(const struct context *c, const struct pair *p)
{
	const struct column columns[] = {
		{ "OWNER", false },
		{ "DETAIL", false },
		{ "BEFORE", true },
		{ "AFTER", true },
		{ "DELTA", true },
		{ p->unit <= 0 ? "" : p->unit < HOUR ? "PER MIN" : "PER HOUR", true },
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t same = 0;
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < p->diff.rows; i++) {
		const struct diff_row *row = &p->diff.row[i];

		same += row->delta == 0;
		if (row->delta)
			print_row(t, p, row, owner_name(row->owner), c->set.bytes);
	}
	print_row(t, p, &p->diff.total,
		  p->a->look.memory.owners.total.swap || p->b->look.memory.owners.total.swap
			  ? "rss + swap"
			  : "rss",
		  c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	if (same)
		fprintf(c->sink->out, "and %zu row%s without a change\n", same,
			same == 1 ? "" : "s");
	return err;
}

static void print_arena(struct table *t, const struct diff_arena *x, const char *name, bool raw)
{
	char cell[4][SIZE_TEXT];

	table_row(t, (const char *const[]){ name, delta_text(x->system, raw, cell[0]),
					    delta_text(x->in_use, raw, cell[1]),
					    delta_text(x->free, raw, cell[2]),
					    delta_text(x->free_resident, raw, cell[3]),
					    !x->before	? "new"
					    : !x->after ? "gone"
							: "" });
}

static bool arena_changed(const struct diff_arena *x)
{
	return x->system || x->in_use || x->free || x->free_resident || !x->before || !x->after;
}

static int print_arenas(const struct context *c, const struct diff *f)
{
	static const struct column columns[] = {
		{ "ARENA", true }, { "SYSTEM", true },	 { "IN USE", true },
		{ "FREE", true },  { "FREE RSS", true }, { "", false },
	};
	struct table *t;
	size_t shown = 0, changed = 0;
	int err;

	for (size_t i = 0; i < f->arenas; i++)
		changed += arena_changed(&f->arena[i]);
	if (!changed)
		return 0;
	t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < f->arenas && shown < ARENAS_SHOWN; i++) {
		const struct diff_arena *x = &f->arena[i];
		char name[16];

		if (!arena_changed(x))
			continue;
		snprintf(name, sizeof(name), "%u", (x->after ? x->after : x->before)->index);
		print_arena(t, x, name, c->set.bytes);
		shown++;
	}
	print_arena(t, &f->all, "all", c->set.bytes);
	putc('\n', c->sink->out);
	err = table_print(t, c->sink);
	table_free(t);
	if (changed > shown)
		fprintf(c->sink->out, "and %zu more arenas with a change\n", changed - shown);
	return err;
}

static void print_names(FILE *out, const struct diff *f, bool gone, size_t n)
{
	size_t shown = 0;

	fprintf(out, ", %zu %s", n, gone ? "gone" : "new");
	for (size_t i = 0; i < f->threads && shown < NAMES_SHOWN; i++) {
		if (f->thread[i].gone != gone)
			continue;
		fprintf(out, "%s%s:%d", shown ? ", " : " (", f->thread[i].row->t.name,
			(int)f->thread[i].row->t.tid);
		shown++;
	}
	if (n)
		fprintf(out, "%s)", n > shown ? ", ..." : "");
}

static void print_threads(const struct context *c, const struct pair *p)
{
	char before[SIZE_TEXT], after[SIZE_TEXT], delta[SIZE_TEXT];
	const struct diff *f = &p->diff;
	FILE *out = c->sink->out;

	fprintf(out, "\nthreads  %zu -> %zu", p->a->threads.n, p->b->threads.n);
	print_names(out, f, false, f->fresh);
	print_names(out, f, true, f->gone);
	if (f->caches)
		fprintf(out, "; thread caches %s -> %s (%s)",
			text_size(before, f->cache_before, c->set.bytes),
			text_size(after, f->cache_after, c->set.bytes),
			text_delta(delta, (int64_t)(f->cache_after - f->cache_before),
				   c->set.bytes));
	putc('\n', out);
}

static int print_all(const struct context *c, const struct pair *p)
{
	const struct sink *s = c->sink;
	int err;

	print_side(c, "before", p->a);
	print_side(c, "after", p->b);
	putc('\n', s->out);
	err = print_owners(c, p);
	if (!err)
		err = print_arenas(c, &p->diff);
	if (err)
		return err;
	print_threads(c, p);
	fprintf(s->out, "growth   %s%s%s: %s\n",
		sink_paint(s, p->diff.growth == GROWTH_NONE ? PAINT_GOOD : PAINT_WARN),
		growth_name(p->diff.growth), sink_plain(s), p->diff.text);
	return 0;
}

/* ---- JSON */

static json_t *side_json(struct reply *r, const struct snapshot *s)
{
	json_t *o = json_object();

	reply_member(r, o, "time", json_time(&s->time));
	reply_member(r, o, "pid", json_integer(s->pid));
	reply_member(r, o, "comm", json_text(s->comm, strlen(s->comm)));
	reply_member(r, o, "host", json_text(s->host, strlen(s->host)));
	return o;
}

static json_t *row_json(struct reply *r, const struct diff_row *row, const char *owner)
{
	char detail[OWNER_ROW_TEXT] = "";
	json_t *o = json_object();

	if (row->row)
		owner_row_text(row->row, detail, sizeof(detail));
	reply_member(r, o, "owner", json_string(owner));
	reply_member(r, o, "detail", json_text(detail, strlen(detail)));
	reply_member(r, o, "before_bytes", json_u64(row->before));
	reply_member(r, o, "after_bytes", json_u64(row->after));
	reply_member(r, o, "delta_bytes", json_integer(row->delta));
	return o;
}

static json_t *arena_json(struct reply *r, const struct diff_arena *x)
{
	json_t *o = json_object();

	reply_member(r, o, "index", json_integer((x->after ? x->after : x->before)->index));
	reply_member(r, o, "system_delta_bytes", json_integer(x->system));
	reply_member(r, o, "in_use_delta_bytes", json_integer(x->in_use));
	reply_member(r, o, "free_delta_bytes", json_integer(x->free));
	reply_member(r, o, "free_resident_delta_bytes", json_integer(x->free_resident));
	reply_member(r, o, "new", json_boolean(!x->before));
	reply_member(r, o, "gone", json_boolean(!x->after));
	return o;
}

static json_t *threads_json(struct reply *r, const struct pair *p)
{
	json_t *o = json_object(), *list[2] = { json_array(), json_array() };
	const struct diff *f = &p->diff;

	for (size_t i = 0; i < f->threads; i++) {
		const struct thread *t = &f->thread[i].row->t;
		json_t *one = json_object();

		reply_member(r, one, "tid", json_integer(t->tid));
		reply_member(r, one, "name", json_text(t->name, strlen(t->name)));
		if (json_array_append_new(list[f->thread[i].gone], one))
			r->failed = true;
	}
	reply_member(r, o, "before", json_u64(p->a->threads.n));
	reply_member(r, o, "after", json_u64(p->b->threads.n));
	reply_member(r, o, "new", list[0]);
	reply_member(r, o, "gone", list[1]);
	reply_member(r, o, "tcache_before_bytes",
		     f->caches ? json_u64(f->cache_before) : json_null());
	reply_member(r, o, "tcache_after_bytes",
		     f->caches ? json_u64(f->cache_after) : json_null());
	return o;
}

static void answer_json(struct reply *r, const struct pair *p)
{
	json_t *list = json_array();
	const struct diff *f = &p->diff;

	reply_set(r, "seconds", json_real(f->seconds));
	for (size_t i = 0; i < f->rows; i++)
		if (json_array_append_new(list,
					  row_json(r, &f->row[i], owner_name(f->row[i].owner))))
			r->failed = true;
	reply_set(r, "rows", list);
	reply_set(r, "total", row_json(r, &f->total, "total"));
	reply_set(r, "growth",
		  f->growth == GROWTH_UNKNOWN ? json_null() : json_string(growth_name(f->growth)));
	reply_set(r, "summary", json_string(f->text));
	list = f->glibc ? json_array() : json_null();
	for (size_t i = 0; i < f->arenas; i++)
		if (json_array_append_new(list, arena_json(r, &f->arena[i])))
			r->failed = true;
	reply_set(r, "arenas", list);
	reply_set(r, "threads", threads_json(r, p));
	reply_set(r, "before", side_json(r, p->a));
	reply_set(r, "after", side_json(r, p->b));
}

/* ---- the command */

static void warn(struct context *c, struct reply *r, const struct pair *p)
{
	if (!p->diff.same)
		reply_warn(c, r, "other-process",
			   "these are two processes, %s (pid %d) and %s (pid %d), or two starts "
			   "of one",
			   p->a->comm, (int)p->a->pid, p->b->comm, (int)p->b->pid);
	if (p->diff.seconds < 0)
		reply_warn(c, r, "wrong-order",
			   "the first is later than the second: what grows here has shrunk");
}

static int compare(struct context *c, struct reply *r, const struct snapshot *a,
		   const struct snapshot *b, struct diag *d)
{
	struct pair p = { .a = a, .b = b };
	double apart;
	int err = diff_make(a, b, &p.diff);

	if (err)
		return diag_internal(d, err, "the comparison");
	apart = p.diff.seconds < 0 ? -p.diff.seconds : p.diff.seconds;
	p.unit = apart < 1 ? 0 : apart < 10 * MINUTE ? MINUTE : HOUR;
	warn(c, r, &p);
	if (c->set.json)
		answer_json(r, &p);
	else if (print_all(c, &p))
		err = diag_internal(d, -ENOMEM, "the table");
	diff_free(&p.diff);
	return err;
}

/* One file is compared with how it is now: that needs a process, or a snapshot in its place. */
unsigned effect_diff(const struct args *a)
{
	return a->argc == 2 ? CMD_NO_PROCESS : CMD_PASSIVE | CMD_CALLS | CMD_LOADED;
}

static int second(struct context *c, const struct args *a, struct snapshot *own,
		  const struct snapshot **out, struct diag *d)
{
	*out = own;
	if (a->argc == 2)
		return snapshot_load(a->argv[1], own, d);
	if (!c->loaded)
		return snapshot_take(c->process, !c->set.passive, own, d);
	*out = c->loaded;
	return 0;
}

int cmd_diff(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct snapshot before, own;
	const struct snapshot *after;
	int err = snapshot_load(a->argv[0], &before, d);

	if (err)
		return err;
	err = second(c, a, &own, &after, d);
	if (!err) {
		err = compare(c, r, &before, after, d);
		if (after == &own)
			snapshot_free(&own);
	}
	snapshot_free(&before);
	return err;
}
