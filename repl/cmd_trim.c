// SPDX-License-Identifier: GPL-3.0-or-later
/* trim: predicted, done, measured. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../agent/allocator_choice.h"
#include "../agent/allocator_missing.h"
#include "../agent/guard.h"
#include "../agent/jemalloc.h"
#include "../agent/trim.h"
#include "../inject/clock.h"
#include "context.h"
#include "effect_text.h"

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
		snprintf(buf, size, "%s", a->ops->release ? a->ops->release : "nothing");
	return buf;
}

/* What to know about a prediction, and about memory that is free and yet not returned. */
static void tell_prediction(struct context *c, struct reply *r, const struct prediction *p)
{
	char size[SIZE_TEXT];

	if (p->known && p->moving && c->set.json) /* the text says `about` */
		reply_warn(c, r, "heap-moving",
			   "the heap changed while it was read: the prediction is near, not exact");
	if (p->known && p->partial && c->set.json) /* and `at least` */
		reply_warn(c, r, "heap-partial",
			   "a part of the heap could not be read: at least so much is predicted");
	if (p->locked)
		reply_warn(c, r, "locked",
			   "%s are free, but locked in memory (mlock): a trim cannot return them",
			   text_size_fine(size, p->locked, c->set.bytes));
	if (p->hugetlb)
		reply_warn(
			c, r, "hugetlb",
			"%s are free, but of the pool of huge pages: a trim does not return them",
			text_size_fine(size, p->hugetlb, c->set.bytes));
}

static const char *predicted_word(const struct prediction *p)
{
	if (!p->known)
		return "";
	if (p->partial)
		return "predicted at least ";
	if (p->most)
		return "predicted at most ";
	return p->moving ? "predicted about " : "predicted ";
}

static void plan_text(struct context *c, const struct allocator *a, const char *call,
		      const struct prediction *p)
{
	char size[SIZE_TEXT], time[SIZE_TEXT];

	fprintf(c->sink->out, "would call %s in %s%s%s (%s%s)%s\n", call, a->ops->name,
		a->version[0] ? " " : "", a->version, linkage_name(a->linkage),
		a->owns_malloc ? ", owns malloc" : "", context_undone(c));
	if (p->known)
		fprintf(c->sink->out, "%s%s in %" PRIu64 " range%s, about %s\n", predicted_word(p),
			text_delta(size, -(int64_t)p->bytes, c->set.bytes), p->ranges,
			p->ranges == 1 ? "" : "s", time_format(p->duration_ns, time));
	else if (!c->asks || strcmp(a->ops->name, "jemalloc") != 0 ||
		 !purge_outlook(c, a, JEMALLOC_ALL))
		fprintf(c->sink->out, "what it would return is not known without the call\n");
}

static int plan_one(struct context *c, struct reply *r, const struct allocator *a, uint64_t pad,
		    struct prediction *sum, struct diag *d)
{
	struct prediction p = { 0 };
	char call[64];
	json_t *o;
	int err = a->reach	    ? allocator_unreachable(a, d)
		  : a->ops->predict ? a->ops->predict(c->process, a, pad, &p, d)
				    : 0;

	if (err)
		return err;
	prediction_add(sum, &p);
	planned_call(a, pad, call, sizeof(call));
	if (!c->set.json) {
		plan_text(c, a, call, &p);
		return 0;
	}
	o = json_object();
	reply_member(r, o, "name", json_string(a->ops->name));
	reply_member(r, o, "version", json_text(a->version, strlen(a->version)));
	reply_member(r, o, "call", json_string(call));
	reply_member(r, o, "predicted_bytes", predicted_json(&p));
	reply_member(r, o, "predicted_ranges", p.known ? json_u64(p.ranges) : json_null());
	reply_member(r, o, "predicted_us", p.known ? json_u64(p.duration_ns / 1000) : json_null());
	if (json_array_append_new(json_object_get(r->result, "allocators"), o))
		r->failed = true;
	return 0;
}

static void warn_untrimmed(struct context *c, struct reply *r, const struct diag *d)
{
	if (d->exit)
		reply_warn(c, r, d->code, "not trimmed: %s", d->text);
}

/* As trim_run does it: one that cannot be trimmed does not keep the others from it. */
static int plan_each(struct context *c, struct reply *r, uint64_t pad, struct prediction *sum,
		     struct diag *d)
{
	const struct allocators *v = &c->process->allocs;
	struct diag first = { 0 };
	size_t able = 0;

	for (size_t i = 0; i < v->n; i++) {
		int err;

		if (!allocator_asked(c->process, &v->v[i]) || !v->v[i].ops->trim)
			continue;
		err = plan_one(c, r, &v->v[i], pad, sum, d);
		able += !err;
		if (err && d->exit != HM_UNSUPPORTED)
			return err;
		if (err && !first.exit)
			first = *d;
		if (err)
			diag_clear(d);
	}
	if (!able && !first.exit)
		return no_allocator(c, "trim", d);
	if (able) {
		warn_untrimmed(c, r, &first);
		return 0;
	}
	*d = first;
	return -ENOTSUP;
}

static int plan_all(struct context *c, struct reply *r, uint64_t pad, struct diag *d)
{
	struct prediction sum = { .known = true };
	struct usage now;
	int err = usage_read(&c->process->t, &now, d);

	if (!err)
		err = glibc_picture_keep(c->process, pad, d);
	/* what is refused would return nothing */
	if (!err)
		err = guard_run(c->process, d);
	if (err)
		return err;
	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "rss_before_bytes", json_u64(now.rss));
		reply_set(r, "swap_before_bytes", json_u64(now.swap));
		reply_set(r, "allocators", json_array());
	}
	err = plan_each(c, r, pad, &sum, d);
	if (err)
		return err;
	if (c->set.json)
		reply_set(r, "predicted_bytes", predicted_json(&sum));
	tell_prediction(c, r, &sum);
	return 0;
}

static int trim_plan(struct context *c, struct reply *r, uint64_t pad, struct diag *d)
{
	int err = plan_all(c, r, pad, d);

	glibc_picture_drop(c->process);
	return err;
}

static void trim_json(struct reply *r, const struct trim_report *t)
{
	reply_set(r, "rss_before_bytes", json_u64(t->before.rss));
	reply_set(r, "rss_after_bytes", json_u64(t->after.rss));
	reply_set(r, "swap_before_bytes", json_u64(t->before.swap));
	reply_set(r, "swap_after_bytes", json_u64(t->after.swap));
	reply_set(r, "returned_bytes", json_integer(t->returned_bytes));
	reply_set(r, "predicted_bytes", predicted_json(&t->predicted));
	reply_set(r, "minflt_delta", json_u64(t->minflt_delta));
	reply_set(r, "via", json_string(t->via ? t->via : ""));
	reply_set(r, "held", held_json(r, &t->held));
	reply_set(r, "allocators", parts_json(r, t->part, t->parts));
}

static void trim_line(const struct context *c, const struct trim_report *t)
{
	char rss[160], predicted[64], took[64], held[120], delta[SIZE_TEXT], call[SIZE_TEXT];
	const char *parts[4];
	uint64_t ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->parts; i++)
		ns += t->part[i].duration_ns;
	parts[n++] = rss_text(c, &t->before, &t->after, rss, sizeof(rss));
	if (t->predicted.known) {
		snprintf(predicted, sizeof(predicted), "%s%s%s", predicted_word(&t->predicted),
			 text_delta(delta, -(int64_t)t->predicted.bytes, c->set.bytes),
			 t->before.swap || t->after.swap ? " of rss and swap" : "");
		parts[n++] = predicted;
	}
	snprintf(took, sizeof(took), "call %s", time_format(ns, call));
	parts[n++] = took;
	parts[n++] = held_text(&t->held, held, sizeof(held));
	sink_parts(c->sink, parts, n);
	swap_line(c, &t->before, &t->after);
}

/* Of several allocators of one kind the file tells which it was. */
static bool is_one_of_many(const struct trim_report *t, const struct trim_part *p)
{
	size_t n = 0;

	for (size_t i = 0; i < t->parts; i++)
		n += strcmp(t->part[i].name, p->name) == 0;
	return n > 1;
}

static void trim_parts(const struct context *c, const struct trim_report *t)
{
	for (size_t i = 0; t->parts > 1 && i < t->parts; i++) {
		const struct trim_part *p = &t->part[i];
		char delta[SIZE_TEXT], call[SIZE_TEXT];
		bool many = is_one_of_many(t, p);

		fprintf(c->sink->out, "  %s%s%s%s%s%s: %s, call %s", p->call,
			p->version[0] || many ? " in " : "", p->version[0] || many ? p->name : "",
			many ? " (" : "", many ? p->file : "", many ? ")" : "",
			text_delta(delta, -p->returned_bytes, c->set.bytes),
			time_format(p->duration_ns, call));
		if (!p->no_rc)
			fprintf(c->sink->out, ", rc %ld", p->rc);
		putc('\n', c->sink->out);
	}
}

/* What of it a call by a thread of ours does not reach. */
static const char *nothing_text(const struct trim_part *p)
{
	if (strcmp(p->name, "mimalloc") == 0)
		return "; mi_collect does not reach the heaps of other threads that live "
		       "(--via direct --thread TID does, of that one)";
	return strcmp(p->name, "tcmalloc") == 0 ? "; the caches of threads stay" : "";
}

/* Why nothing came back, as far as the call itself tells: malloc_trim(3) returns 1 also where what
 * it gave back was not resident. */
static void trim_nothing(const struct context *c, const struct trim_report *t)
{
	for (size_t i = 0; t->returned_bytes <= 0 && i < t->parts; i++) {
		const struct trim_part *p = &t->part[i];
		bool glibc = strcmp(p->name, "glibc") == 0;

		if (p->no_rc)
			fprintf(c->sink->out, "nothing to release: no resident page came back%s\n",
				nothing_text(p));
		else if (glibc && p->rc == 0)
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
	return diag_fail(
		d, -ERANGE, HM_UNMET, "min-yield",
		"`arenas` (glibc) and `stats` show what the allocators keep, and what is in use",
		"the trim returned %s, less than the %s asked for",
		text_size_fine(got, returned > 0 ? (uint64_t)returned : 0, c->set.bytes),
		text_size_fine(wanted, a->min_yield, c->set.bytes));
}

int check_trim(const struct args *a, struct diag *d)
{
	struct trim_args args;

	return trim_args(a, &args, d);
}

/* For `watch`: what comes back is counted from here on. */
static void remember(struct context *c, const struct trim_report *t)
{
	c->trim = (struct trim_mark){
		.made = true,
		.at = clock_now(),
		.held = t->after.anon + t->after.swap,
		.returned = t->returned_bytes > 0 ? (uint64_t)t->returned_bytes : 0,
		.minflt = t->minflt,
		.rate_known = c->rate_known,
		.rate = c->rate,
	};
}

int trim_and_tell(struct context *c, struct reply *r, uint64_t pad, struct trim_report *out,
		  struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = trim_run(c->process, pad, out, d);
	if (err)
		return err;
	remember(c, out);
	warn_untrimmed(c, r, &out->untrimmed);
	tell_prediction(c, r, &out->predicted);
	if (c->set.json) {
		trim_json(r, out);
		return 0;
	}
	trim_line(c, out);
	trim_parts(c, out);
	trim_nothing(c, out);
	return 0;
}

int cmd_trim(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct trim_args args;
	struct trim_report report;
	int err = trim_args(a, &args, d);

	if (err)
		return err;
	memset(&report, 0, sizeof(report));
	c->process->force = a->opt[TRIM_FORCE] != NULL;
	err = c->set.dry_run ? trim_plan(c, r, args.pad, d)
			     : trim_and_tell(c, r, args.pad, &report, d);
	c->process->force = false;
	if (err || c->set.dry_run)
		return err;
	return check_yield(c, &args, report.returned_bytes, d);
}
