// SPDX-License-Identifier: GPL-3.0-or-later
#include "effect_text.h"

#include <inttypes.h>
#include <string.h>

#include "context.h"

const char *held_text(const struct held *h, char *buf, size_t size)
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

json_t *held_json(struct reply *r, const struct held *h)
{
	json_t *o = json_object();

	reply_member(r, o, "threads", json_integer(h->threads));
	reply_member(r, o, "max_us", json_u64(h->max_ns / 1000));
	return o;
}

const char *rss_text(const struct context *c, const struct usage *before, const struct usage *after,
		     char *buf, size_t size)
{
	char was[SIZE_TEXT], now[SIZE_TEXT], delta[SIZE_TEXT];
	int64_t by = (int64_t)after->rss - (int64_t)before->rss;
	bool raw = c->set.bytes;

	snprintf(buf, size, "rss %s -> %s (%s%s%s)", text_size_fine(was, before->rss, raw),
		 text_size_fine(now, after->rss, raw),
		 by < 0 ? sink_paint(c->sink, PAINT_GOOD) : "", text_delta(delta, by, raw),
		 by < 0 ? sink_plain(c->sink) : "");
	return buf;
}

void swap_line(const struct context *c, const struct usage *before, const struct usage *after)
{
	char was[SIZE_TEXT], now[SIZE_TEXT];
	bool raw = c->set.bytes;

	if (before->swap || after->swap)
		fprintf(c->sink->out, "swap %s -> %s\n", text_size_fine(was, before->swap, raw),
			text_size_fine(now, after->swap, raw));
}

json_t *predicted_json(const struct prediction *p)
{
	return p->known ? json_u64(p->bytes) : json_null();
}

static json_t *part_json(struct reply *r, const struct trim_part *p)
{
	json_t *o = json_object();

	reply_member(r, o, "name", json_text(p->name, strlen(p->name)));
	reply_member(r, o, "version", json_text(p->version, strlen(p->version)));
	reply_member(r, o, "file", json_text(p->file, strlen(p->file)));
	reply_member(r, o, "call", json_text(p->call, strlen(p->call)));
	reply_member(r, o, "rc", p->no_rc ? json_null() : json_integer(p->rc));
	reply_member(r, o, "duration_us", json_u64(p->duration_ns / 1000));
	reply_member(r, o, "predicted_bytes", predicted_json(&p->predicted));
	reply_member(r, o, "returned_bytes", json_integer(p->returned_bytes));
	return o;
}

json_t *parts_json(struct reply *r, const struct trim_part *v, size_t n)
{
	json_t *parts = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(parts, part_json(r, &v[i])))
			r->failed = true;
	return parts;
}

/* What jemalloc had unused before the call, with memory behind it: 5.0 and later know both. */
static bool unused(const struct jemalloc_effect *e, int64_t *bytes)
{
	int64_t dirty, muzzy;
	bool known = jemalloc_figure(&e->was, JEM_DIRTY, &dirty);

	known &= jemalloc_figure(&e->was, JEM_MUZZY, &muzzy);
	*bytes = dirty + muzzy;
	return known;
}

void effect_line(const struct context *c, const struct jemalloc_effect *e)
{
	char rss[160], predicted[64], took[64], held[120], delta[SIZE_TEXT], call[SIZE_TEXT];
	const char *parts[4];
	int64_t free;
	size_t n = 0;

	parts[n++] = rss_text(c, &e->before, &e->after, rss, sizeof(rss));
	if (e->duration_ns && unused(e, &free)) {
		snprintf(predicted, sizeof(predicted), "predicted %s",
			 text_delta(delta, -free, c->set.bytes));
		parts[n++] = predicted;
	}
	if (e->duration_ns) {
		snprintf(took, sizeof(took), "call %s", time_format(e->duration_ns, call));
		parts[n++] = took;
	}
	parts[n++] = held_text(&e->held, held, sizeof(held));
	sink_parts(c->sink, parts, n);
	swap_line(c, &e->before, &e->after);
}

static const struct {
	enum jemalloc_figure figure;
	const char *meaning;
} books[] = {
	{ JEM_DIRTY, "unused, and still in memory" },
	{ JEM_MUZZY, "lazily free: in RSS until the kernel needs memory" },
	{ JEM_RETAINED, "address space only, no memory" },
};
#define BOOK_WIDTH 10 /* of the words before the numbers */
#define BOOKS	   (sizeof(books) / sizeof(books[0]))

void effect_books(const struct context *c, const struct jemalloc_effect *e)
{
	char was[SIZE_TEXT], now[SIZE_TEXT], text[192];
	bool raw = c->set.bytes;

	for (size_t i = 0; i < BOOKS; i++) {
		int64_t a, b;

		if (!jemalloc_figure(&e->was, books[i].figure, &a) ||
		    !jemalloc_figure(&e->now, books[i].figure, &b))
			continue;
		snprintf(text, sizeof(text), "%-9s %s -> %s (%s)",
			 jemalloc_figure_name(books[i].figure), text_size(was, (uint64_t)a, raw),
			 text_size(now, (uint64_t)b, raw), books[i].meaning);
		sink_words(c->sink, BOOK_WIDTH, text);
	}
	if (e->before.lazyfree || e->after.lazyfree) {
		snprintf(text, sizeof(text),
			 "lazyfree  %s -> %s (as the kernel counts it; part of RSS, taken under "
			 "pressure)",
			 text_size(was, e->before.lazyfree, raw),
			 text_size(now, e->after.lazyfree, raw));
		sink_words(c->sink, BOOK_WIDTH, text);
	}
	if (e->returned_bytes <= 0)
		fputs("nothing to release: no resident page came back\n", c->sink->out);
}

static void add_books(struct reply *r, const struct jemalloc_effect *e)
{
	static const enum jemalloc_figure all[] = { JEM_ALLOCATED, JEM_ACTIVE, JEM_DIRTY, JEM_MUZZY,
						    JEM_RETAINED };
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		json_t *pair = json_object();
		int64_t was, now;
		bool a = jemalloc_figure(&e->was, all[i], &was);
		bool b = jemalloc_figure(&e->now, all[i], &now);

		reply_member(r, pair, "before", a ? json_integer(was) : json_null());
		reply_member(r, pair, "after", b ? json_integer(now) : json_null());
		reply_member(r, o, jemalloc_figure_name(all[i]), pair);
	}
	reply_set(r, "jemalloc", o);
}

/* A purge is a trim of one allocator. */
static void purge_json(struct reply *r, const struct jemalloc_effect *e, const struct allocator *a)
{
	struct trim_part part = { .duration_ns = e->duration_ns,
				  .returned_bytes = e->returned_bytes };
	int64_t free;

	part.predicted.known = unused(e, &free);
	part.predicted.bytes = part.predicted.known ? (uint64_t)free : 0;
	snprintf(part.name, sizeof(part.name), "%s", a->ops->name);
	snprintf(part.version, sizeof(part.version), "%s", a->version);
	snprintf(part.file, sizeof(part.file), "%s", a->file);
	snprintf(part.call, sizeof(part.call), "%s", e->call);
	reply_set(r, "predicted_bytes", predicted_json(&part.predicted));
	reply_set(r, "call", json_string(e->call));
	reply_set(r, "duration_us", json_u64(e->duration_ns / 1000));
	reply_set(r, "allocators", parts_json(r, &part, 1));
	add_books(r, e);
}

void effect_json(struct reply *r, const struct jemalloc_effect *e, const struct allocator *purged)
{
	reply_set(r, "rss_before_bytes", json_u64(e->before.rss));
	reply_set(r, "rss_after_bytes", json_u64(e->after.rss));
	reply_set(r, "swap_before_bytes", json_u64(e->before.swap));
	reply_set(r, "swap_after_bytes", json_u64(e->after.swap));
	reply_set(r, "lazyfree_before_bytes", json_u64(e->before.lazyfree));
	reply_set(r, "lazyfree_after_bytes", json_u64(e->after.lazyfree));
	reply_set(r, "returned_bytes", json_integer(e->returned_bytes));
	reply_set(r, "minflt_delta", json_u64(e->minflt_delta));
	reply_set(r, "via", json_string(e->via ? e->via : ""));
	reply_set(r, "held", held_json(r, &e->held));
	if (purged)
		purge_json(r, e, purged);
}
