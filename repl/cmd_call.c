// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/allocator_choice.h"
#include "../agent/glibc.h"
#include "../agent/jemalloc_stats.h"
#include "context.h"

/* ---- stats */

/* What `stats J` has printed, as members; null where it was cut, or is no JSON. */
static json_t *stats_tree(struct context *c, struct reply *r, const char *text)
{
	json_error_t error;
	json_t *tree = json_loads(text, JSON_DISABLE_EOF_CHECK, &error);

	if (tree)
		return tree;
	reply_warn(c, r, "stats-not-json", "line %d: %.100s; --omit leaves parts out", error.line,
		   error.text);
	return json_null();
}

static int show_stats(struct context *c, struct reply *r, const struct allocator *a, bool titled,
		      bool json, const char *text)
{
	char label[ALLOCATOR_LABEL];
	json_t *list, *o;

	if (!c->set.json) {
		if (titled)
			fprintf(c->sink->out, "%s%s%s%s in %s:%s\n",
				sink_paint(c->sink, PAINT_HEAD), a->ops->name,
				a->version[0] ? " " : "", a->version,
				allocator_label(&c->process->allocs, a, label, sizeof(label)),
				sink_plain(c->sink));
		sink_text(c->sink->out, text, strlen(text));
		return 0;
	}
	list = json_object_get(r->result, "allocators");
	o = json_object();
	reply_member(r, o, "name", json_string(a->ops->name));
	reply_member(r, o, "file", json_text(a->file, strlen(a->file)));
	reply_member(r, o, "symbol_prefix", json_string(a->prefix));
	reply_member(r, o, "text", json_text(text, strlen(text)));
	if (json)
		reply_member(r, o, "stats", stats_tree(c, r, text));
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
	const char *omit = args->opt[STATS_OMIT];
	char *words[3] = { args->argc ? args->argv[0] : (char *)"", (char *)omit, NULL };
	char *text = NULL;
	int n = omit ? 2 : args->argc, err;

	/* glibc's prints one thing only, and has no words for parts */
	if (omit && strcmp(a->ops->name, "jemalloc") != 0)
		n = args->argc;
	err = a->ops->stats(c->process, a, n, words, &text, d);

	if (err)
		return err;
	if (show_stats(c, r, a, titled, n && strchr(words[0], 'J') != NULL, text))
		r->failed = true;
	free(text);
	return 0;
}

/* One of several that cannot be asked does not keep the others from it. */
static int stats_or_warn(struct context *c, struct reply *r, const struct allocator *a,
			 const struct args *args, size_t of, size_t *mute, struct diag *d)
{
	int err = stats_of(c, r, a, args, of > 1, d);

	if (!err || d->exit != HM_UNSUPPORTED || ++*mute == of)
		return err;
	reply_warn(c, r, d->code, "%s", d->text);
	diag_clear(d);
	return 0;
}

static bool is_able(const struct process *p, const struct allocator *a)
{
	return allocator_asked(p, a) && a->ops->stats;
}

static size_t count_able(const struct process *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->allocs.n; i++)
		n += is_able(p, &p->allocs.v[i]);
	return n;
}

int no_allocator(const struct context *c, const char *what, struct diag *d)
{
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-allocator",
			 "`check` lists what was found",
			 "%s uses no allocator that heapmedic can %s", c->comm, what);
}

int check_stats(const struct args *a, struct diag *d)
{
	const char *omit = a->opt[STATS_OMIT];
	char opts[48] = "";

	return omit ? stats_omit(omit, 0, opts, sizeof(opts), d) : 0;
}

int cmd_stats(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	/* The process is refreshed between commands, not inside one: the list stays. */
	const struct allocators *v = &c->process->allocs;
	size_t n = count_able(c->process), mute = 0;
	const struct allocator *jemalloc;
	int err = 0;

	if (n == 0)
		return no_allocator(c, "ask for statistics", d);
	if (a->opt[STATS_OMIT])
		err = find_jemalloc(c, r, &jemalloc, d);
	if (err)
		return err;
	if (c->set.json) {
		reply_set(r, "text", json_string(""));
		reply_set(r, "allocators", json_array());
	}
	for (size_t i = 0; i < v->n && !err; i++)
		if (is_able(c->process, &v->v[i]))
			err = stats_or_warn(c, r, &v->v[i], a, n, &mute, d);
	if (!err && c->set.json)
		reply_set(r, "text", joined_text(json_object_get(r->result, "allocators")));
	return err;
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
