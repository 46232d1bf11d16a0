// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/glibc.h"
#include "../agent/trim.h"
#include "context.h"

/* ---- stats */

static int show_stats(struct context *c, struct reply *r, const struct allocator *a, bool titled,
		      const char *text)
{
	json_t *list, *o;

	if (!c->set.json) {
		if (titled)
			fprintf(c->sink->out, "%s%s %s:%s\n", sink_paint(c->sink, PAINT_HEAD),
				a->ops->name, a->version, sink_plain(c->sink));
		sink_text(c->sink->out, text, strlen(text));
		return 0;
	}
	list = json_object_get(r->result, "allocators");
	o = json_object();
	reply_member(r, o, "name", json_string(a->ops->name));
	reply_member(r, o, "text", json_text(text, strlen(text)));
	return json_array_append_new(list, o);
}

/* "text" is the whole of it, also where several allocators answered. */
static json_t *joined_text(const json_t *list)
{
	json_t *all = json_string("");
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		json_t *next = json_sprintf("%s%s", json_string_value(all),
					    json_string_value(json_object_get(o, "text")));

		json_decref(all);
		all = next;
	}
	return all;
}

static int stats_of(struct context *c, struct reply *r, const struct allocator *a,
		    const struct args *args, bool titled, struct diag *d)
{
	char *text = NULL;
	int err = a->ops->stats(c->process, a, args->argc, args->argv, &text, d);

	if (err)
		return err;
	if (show_stats(c, r, a, titled, text))
		r->failed = true;
	free(text);
	return 0;
}

static size_t count_able(const struct allocators *v, bool trim)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->v[i].in_use &&
		     (trim ? v->v[i].ops->trim != NULL : v->v[i].ops->stats != NULL);
	return n;
}

static int no_allocator(const struct context *c, const char *what, struct diag *d)
{
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-allocator",
			 "`check` lists what was found",
			 "%s uses no allocator that heapmedic can %s", c->comm, what);
}

int cmd_stats(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	/* The process is refreshed between commands, not inside one: the list stays. */
	const struct allocators *v = &c->process->allocs;
	size_t n = count_able(v, false);
	int err = 0;

	if (n == 0)
		return no_allocator(c, "ask for statistics", d);
	if (c->set.json) {
		reply_set(r, "text", json_string(""));
		reply_set(r, "allocators", json_array());
	}
	for (size_t i = 0; i < v->n && !err; i++)
		if (v->v[i].in_use && v->v[i].ops->stats)
			err = stats_of(c, r, &v->v[i], a, n > 1, d);
	if (!err && c->set.json)
		reply_set(r, "text", joined_text(json_object_get(r->result, "allocators")));
	return err;
}

/* ---- trim */

struct trim_args {
	uint64_t pad;
	bool has_yield;
	uint64_t min_yield;
};

static int trim_args(const struct args *a, struct trim_args *out, struct diag *d)
{
	const char *yield = a->opt[TRIM_MIN_YIELD];
	int err = 0;

	memset(out, 0, sizeof(*out));
	if (a->argc)
		err = size_parse_arg("PAD", a->argv[0], &out->pad, d);
	if (!err && yield) {
		out->has_yield = true;
		err = size_parse_arg("--min-yield", yield, &out->min_yield, d);
	}
	return err;
}

static const char *planned_call(const struct allocator *a, uint64_t pad, char *buf, size_t size)
{
	if (strcmp(a->ops->name, "glibc") == 0)
		snprintf(buf, size, "malloc_trim(%" PRIu64 ")", pad);
	else if (strcmp(a->ops->name, "jemalloc") == 0)
		snprintf(buf, size, "%smallctl(\"arena.<all>.purge\")", a->prefix);
	else
		snprintf(buf, size, "its release call");
	return buf;
}

static void plan_one(struct context *c, struct reply *r, const struct allocator *a, uint64_t pad)
{
	char call[64];
	json_t *o;

	planned_call(a, pad, call, sizeof(call));
	if (!c->set.json) {
		fprintf(c->sink->out, "would call %s in %s %s (%s%s), nothing was done\n", call,
			a->ops->name, a->version, linkage_name(a->linkage),
			a->owns_malloc ? ", owns malloc" : "");
		return;
	}
	o = json_object();
	reply_member(r, o, "name", json_string(a->ops->name));
	reply_member(r, o, "version", json_text(a->version, strlen(a->version)));
	reply_member(r, o, "call", json_string(call));
	reply_member(r, o, "predicted_bytes", json_null());
	if (json_array_append_new(json_object_get(r->result, "allocators"), o))
		r->failed = true;
}

static int trim_plan(struct context *c, struct reply *r, uint64_t pad, struct diag *d)
{
	const struct allocators *v = &c->process->allocs;
	struct usage now;
	int err;

	if (count_able(v, true) == 0)
		return no_allocator(c, "trim", d);
	err = usage_read(&c->process->t, &now, d);
	if (err)
		return err;
	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "rss_before_bytes", json_u64(now.rss));
		reply_set(r, "swap_before_bytes", json_u64(now.swap));
		reply_set(r, "predicted_bytes", json_null());
		reply_set(r, "allocators", json_array());
	}
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].in_use && v->v[i].ops->trim)
			plan_one(c, r, &v->v[i], pad);
	return 0;
}

static json_t *held_json(struct reply *r, const struct held *h)
{
	json_t *o = json_object();

	reply_member(r, o, "threads", json_integer(h->threads));
	reply_member(r, o, "max_us", json_u64(h->max_ns / 1000));
	return o;
}

static json_t *part_json(struct reply *r, const struct trim_part *p)
{
	json_t *o = json_object();

	reply_member(r, o, "name", json_text(p->name, strlen(p->name)));
	reply_member(r, o, "version", json_text(p->version, strlen(p->version)));
	reply_member(r, o, "call", json_text(p->call, strlen(p->call)));
	reply_member(r, o, "rc", json_integer(p->rc));
	reply_member(r, o, "duration_us", json_u64(p->duration_ns / 1000));
	reply_member(r, o, "predicted_bytes", json_null());
	reply_member(r, o, "returned_bytes", json_integer(p->returned_bytes));
	return o;
}

static void trim_json(struct reply *r, const struct trim_report *t)
{
	json_t *parts = json_array();

	for (size_t i = 0; i < t->parts; i++)
		if (json_array_append_new(parts, part_json(r, &t->part[i])))
			r->failed = true;
	reply_set(r, "rss_before_bytes", json_u64(t->before.rss));
	reply_set(r, "rss_after_bytes", json_u64(t->after.rss));
	reply_set(r, "swap_before_bytes", json_u64(t->before.swap));
	reply_set(r, "swap_after_bytes", json_u64(t->after.swap));
	reply_set(r, "returned_bytes", json_integer(t->returned_bytes));
	reply_set(r, "predicted_bytes", json_null());
	reply_set(r, "minflt_delta", json_u64(t->minflt_delta));
	reply_set(r, "via", json_string(t->via ? t->via : ""));
	reply_set(r, "held", held_json(r, &t->held));
	reply_set(r, "allocators", parts);
}

static const char *held_text(const struct held *h, char *buf, size_t size)
{
	char time[SIZE_TEXT];

	if (h->threads == 0)
		snprintf(buf, size, "no thread held");
	else if (h->threads == 1)
		snprintf(buf, size, "one thread held %s", time_format(h->max_ns, time));
	else
		snprintf(buf, size, "one thread at a time held %u times, at most %s", h->threads,
			 time_format(h->max_ns, time));
	return buf;
}

static void trim_line(const struct context *c, const struct trim_report *t)
{
	bool raw = c->set.bytes;
	char before[SIZE_TEXT], after[SIZE_TEXT], delta[SIZE_TEXT], call[SIZE_TEXT], held[120];
	int64_t rss = (int64_t)t->after.rss - (int64_t)t->before.rss;
	uint64_t ns = 0;

	for (size_t i = 0; i < t->parts; i++)
		ns += t->part[i].duration_ns;
	fprintf(c->sink->out, "rss %s -> %s (%s%s%s), call %s, %s\n",
		text_size_fine(before, t->before.rss, raw),
		text_size_fine(after, t->after.rss, raw),
		rss < 0 ? sink_paint(c->sink, PAINT_GOOD) : "", text_delta(delta, rss, raw),
		rss < 0 ? sink_plain(c->sink) : "", time_format(ns, call),
		held_text(&t->held, held, sizeof(held)));
	if (t->before.swap || t->after.swap)
		fprintf(c->sink->out, "swap %s -> %s\n",
			text_size_fine(before, t->before.swap, raw),
			text_size_fine(after, t->after.swap, raw));
}

static void trim_parts(const struct context *c, const struct trim_report *t)
{
	for (size_t i = 0; t->parts > 1 && i < t->parts; i++) {
		const struct trim_part *p = &t->part[i];
		char delta[SIZE_TEXT], call[SIZE_TEXT];

		fprintf(c->sink->out, "  %s%s%s: %s, call %s, rc %ld\n", p->call,
			p->version[0] ? " in " : "", p->version[0] ? p->name : "",
			text_delta(delta, -p->returned_bytes, c->set.bytes),
			time_format(p->duration_ns, call), p->rc);
	}
}

/* Why nothing came back, as far as the call itself tells: malloc_trim(3) returns 1 also where what
 * it gave back was not resident. */
static void trim_nothing(const struct context *c, const struct trim_report *t)
{
	for (size_t i = 0; t->returned_bytes <= 0 && i < t->parts; i++) {
		const struct trim_part *p = &t->part[i];
		bool glibc = strcmp(p->name, "glibc") == 0;

		if (glibc && p->rc == 0)
			fprintf(c->sink->out,
				"nothing to release: %s returned 0, no arena has a whole free "
				"page\n",
				p->call);
		else
			fprintf(c->sink->out,
				"nothing to release: %s returned %ld, and no resident page came "
				"back\n",
				p->call, p->rc);
	}
}

static int check_yield(const struct context *c, const struct trim_args *a, int64_t returned,
		       struct diag *d)
{
	char got[SIZE_TEXT], wanted[SIZE_TEXT];

	if (!a->has_yield || (returned >= 0 && (uint64_t)returned >= a->min_yield))
		return 0;
	return diag_fail(d, -ERANGE, HM_UNMET, "min-yield",
			 "`info` and `stats` show what the allocators keep, and what is in use",
			 "the trim returned %s, less than the %s asked for",
			 text_size_fine(got, returned > 0 ? (uint64_t)returned : 0, c->set.bytes),
			 text_size_fine(wanted, a->min_yield, c->set.bytes));
}

int check_trim(const struct args *a, struct diag *d)
{
	struct trim_args args;

	return trim_args(a, &args, d);
}

int cmd_trim(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct trim_args args;
	struct trim_report report;
	int err = trim_args(a, &args, d);

	if (err)
		return err;
	if (c->set.dry_run)
		return trim_plan(c, r, args.pad, d);
	memset(&report, 0, sizeof(report));
	c->process->force = a->opt[TRIM_FORCE] != NULL;
	err = trim_run(c->process, args.pad, &report, d);
	c->process->force = false;
	if (err)
		return err;
	if (c->set.json) {
		trim_json(r, &report);
	} else {
		trim_line(c, &report);
		trim_parts(c, &report);
		trim_nothing(c, &report);
	}
	return check_yield(c, &args, report.returned_bytes, d);
}

/* ---- mallopt */

static int unknown_parameter(const char *name, struct diag *d)
{
	return diag_fail(d, -ENOENT, HM_USAGE, "unknown-mallopt", "see `help mallopt`",
			 "mallopt has no parameter '%.60s'", name);
}

static void mallopt_answer(struct context *c, struct reply *r, const struct mallopt_fact *f,
			   long value)
{
	if (c->set.json) {
		reply_set(r, "name", json_string(f->name));
		reply_set(r, "old", json_null());
		reply_set(r, "new", json_integer(value));
	} else {
		fprintf(c->sink->out, "%s%s %ld\n", c->set.dry_run ? "would set " : "", f->name,
			value);
	}
	if (f->limit && *f->limit)
		reply_warn(c, r, "limit", "%s", f->limit);
}

int check_mallopt(const struct args *a, struct diag *d)
{
	const struct mallopt_fact *f = mallopt_find(a->argv[0]);
	long value;

	return f ? mallopt_value_parse(f, a->argv[1], &value, d) : unknown_parameter(a->argv[0], d);
}

int cmd_mallopt(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct mallopt_fact *f = mallopt_find(a->argv[0]);
	long value = 0;
	int rc = 0, err;

	if (!f)
		return unknown_parameter(a->argv[0], d);
	err = mallopt_value_parse(f, a->argv[1], &value, d);
	if (err)
		return err;
	if (!process_allocator(c->process, "glibc"))
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-glibc-malloc",
				 "`check` lists the allocators; jemalloc has `mallctl`",
				 "%s does not allocate with glibc", c->comm);
	if (!c->set.dry_run) {
		err = glibc_mallopt(c->process, f, value, &rc, d);
		if (err)
			return err;
	}
	mallopt_answer(c, r, f, value);
	return 0;
}
