// SPDX-License-Identifier: GPL-3.0-or-later
/* decay: after what time jemalloc gives unused pages back. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../agent/ctl_rule.h"
#include "../agent/jemalloc.h"
#include "../agent/jemalloc_change.h"
#include "commands.h"
#include "context.h"
#include "effect_text.h"

struct decay_args {
	bool kinds[DECAY_KINDS]; /* which are meant */
	enum decay_kind kind;	 /* of a write */
	bool has_place;
	enum decay_place place;
	long index;
	bool write;
	int64_t ms;
};

static int parse_kind(const char *word, struct decay_args *out, struct diag *d)
{
	for (unsigned k = 0; k < DECAY_KINDS; k++) {
		out->kinds[k] = !word || strcmp(word, decay_kind_name((enum decay_kind)k)) == 0;
		if (out->kinds[k])
			out->kind = (enum decay_kind)k;
	}
	if (out->kinds[DECAY_DIRTY] || out->kinds[DECAY_MUZZY])
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "write dirty or muzzy",
			 "'%.40s' is no kind of unused pages", word);
}

/* Milliseconds as jemalloc counts them, a time with its unit, or off. */
static int parse_ms(const char *word, int64_t *out, struct diag *d)
{
	const struct ctl_name *row = ctl_find("arena.<i>.dirty_decay_ms");
	struct ctl_value v = { .type = CTL_SSIZE, .i = -1 };
	uint64_t ns;
	int err = 0;

	if (strcmp(word, "off") != 0 && strcmp(word, "never") != 0) {
		if (word[strspn(word, "-0123456789")] == '\0') {
			err = ctl_value_parse(row, word, &v, d);
		} else {
			err = time_parse_arg("MS", word, &ns, d);
			v.i = err ? 0 : (int64_t)(ns / 1000000);
		}
	}
	*out = v.i;
	return err ? err : ctl_check_value(row, &v, d);
}

static int decay_args(const struct args *a, struct decay_args *out, struct diag *d)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->place = DECAY_ALL;
	err = parse_kind(a->argc ? a->argv[0] : NULL, out, d);
	if (!err && a->argc > 1) {
		out->has_place = true;
		if (strcmp(a->argv[1], "default") == 0)
			out->place = DECAY_DEFAULT;
		else
			err = arena_parse(a->argv[1], &out->index, d);
		if (!err && out->place != DECAY_DEFAULT)
			out->place = out->index == JEMALLOC_ALL ? DECAY_ALL : DECAY_ONE;
	}
	if (!err && a->argc > 2) {
		out->write = true;
		err = parse_ms(a->argv[2], &out->ms, d);
	}
	return err;
}

int check_decay(const struct args *a, struct diag *d)
{
	struct decay_args args;

	return decay_args(a, &args, d);
}

unsigned effect_decay(const struct args *a)
{
	return a->argc > 2 ? CMD_CALLS | CMD_WRITES : CMD_CALLS;
}

static const enum jemalloc_figure decay_figure[DECAY_KINDS] = {
	[DECAY_DIRTY] = JEM_DIRTY_DECAY, [DECAY_MUZZY] = JEM_MUZZY_DECAY
};

#define TIME_WIDTH 8

/* One line of what stands there; index -1: the default. */
static void show_times(struct context *c, struct reply *r, const struct decay_args *args,
		       int64_t index, bool huge, const int64_t ms[DECAY_KINDS],
		       const bool known[DECAY_KINDS])
{
	json_t *o = json_object();
	char text[SIZE_TEXT];
	int pad = 0; /* written late, so that nothing trails */

	if (!c->set.json && index < 0)
		fprintf(c->sink->out, "%-9s", "default");
	else if (!c->set.json)
		fprintf(c->sink->out, "arena %-3" PRId64, index);
	else if (index >= 0)
		reply_member(r, o, "index", json_integer(index));
	for (unsigned k = 0; k < DECAY_KINDS; k++) {
		const char *word = decay_kind_name((enum decay_kind)k);

		if (!args->kinds[k])
			continue;
		if (!c->set.json) {
			const char *time = known[k] ? decay_text(ms[k], text) : "-";

			fprintf(c->sink->out, "%*s  %s %s", pad, "", word, time);
			pad = strlen(time) < TIME_WIDTH ? TIME_WIDTH - (int)strlen(time) : 0;
		}
		snprintf(text, sizeof(text), "%s_ms", word);
		reply_member(r, o, text, known[k] ? json_integer(ms[k]) : json_null());
	}
	if (!c->set.json)
		fprintf(c->sink->out, "%*s%s\n", huge ? pad : 0, "",
			huge ? "  huge: its pages go back at once" : "");
	reply_member(r, o, "huge", json_boolean(huge));
	if (index < 0)
		reply_set(r, "default", o);
	else if (json_array_append_new(json_object_get(r->result, "arenas"), o))
		r->failed = true;
}

static int show_decay(struct context *c, struct reply *r, const struct allocator *jemalloc,
		      const struct decay_args *args, struct diag *d)
{
	struct jemalloc_arenas all;
	int64_t ms[DECAY_KINDS];
	bool known[DECAY_KINDS], found = args->place != DECAY_ONE;
	int err = jemalloc_decay_defaults(c->process, jemalloc, ms, known, d);

	if (!err)
		err = jemalloc_arenas_read(c->process, jemalloc, &all, d);
	if (err)
		return err;
	reply_set(r, "arenas", json_array());
	if (args->place != DECAY_ONE)
		show_times(c, r, args, -1, false, ms, known);
	for (size_t i = 0; i < all.n && args->place != DECAY_DEFAULT; i++) {
		if (args->place == DECAY_ONE && (long)all.v[i].index != args->index)
			continue;
		for (unsigned k = 0; k < DECAY_KINDS; k++)
			known[k] = jemalloc_figure(&all.v[i], decay_figure[k], &ms[k]);
		show_times(c, r, args, all.v[i].index, all.v[i].huge, ms, known);
		found = true;
	}
	if (!found)
		err = diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-no-arena",
				"`arenas` lists those that are",
				"arena %ld is not initialised: %zu of %" PRIu64 " are", args->index,
				all.n, all.narenas);
	jemalloc_arenas_free(&all);
	return err;
}

static const char *row_name(const struct decay_row *row, char buf[SIZE_TEXT])
{
	if (row->index < 0)
		snprintf(buf, SIZE_TEXT, "default");
	else
		snprintf(buf, SIZE_TEXT, "arena %" PRId64, row->index);
	return buf;
}

static void tell_rows(struct context *c, struct reply *r, const struct decay_change *change)
{
	char name[SIZE_TEXT], old[SIZE_TEXT], new[SIZE_TEXT];

	for (size_t i = 0; i < change->n; i++) {
		const struct decay_row *row = &change->v[i];

		row_name(row, name);
		if (row->left)
			reply_warn(
				c, r, "huge-arena-left",
				"%s was left as it is: it is jemalloc's own for blocks of %s and "
				"more, and gives their pages back at once; give its number to "
				"change it",
				name, text_size(old, change->threshold, c->set.bytes));
		else if (row->rc)
			reply_warn(c, r, "arena-refused", "%s: mallctl returned %d (%s)", name,
				   row->rc, strerror(row->rc > 0 ? row->rc : EPROTO));
		else if (!c->set.json)
			fprintf(c->sink->out, "%-10s %s %s -> %s\n", name,
				decay_kind_name(change->kind),
				row->known ? decay_text(row->old, old) : "-",
				decay_text(change->ms, new));
		if (row->huge && !row->left && change->ms > 0)
			reply_warn(
				c, r, "huge-arena",
				"%s is jemalloc's own for large blocks: it now keeps their pages "
				"for a while; where background_thread is on, jemalloc may start a "
				"thread for it",
				name);
	}
}

static json_t *old_json(const struct decay_row *row)
{
	return row->known ? json_integer(row->old) : json_null();
}

/* old and new of the whole are those of the default, of one arena those of the arena. */
static void rows_json(struct reply *r, const struct decay_change *change)
{
	json_t *list = json_array();

	for (size_t i = 0; i < change->n; i++) {
		const struct decay_row *row = &change->v[i];
		json_t *o = json_object();

		if (row->index >= 0)
			reply_member(r, o, "index", json_integer(row->index));
		reply_member(r, o, "old", old_json(row));
		reply_member(r, o, "new",
			     row->rc || row->left ? json_null() : json_integer(change->ms));
		reply_member(r, o, "huge", json_boolean(row->huge));
		if (row->index < 0)
			reply_set(r, "default", o);
		else if (json_array_append_new(list, o))
			r->failed = true;
	}
	reply_set(r, "kind", json_string(decay_kind_name(change->kind)));
	reply_set(r, "old", change->n ? old_json(&change->v[0]) : json_null());
	reply_set(r, "new", json_integer(change->ms));
	reply_set(r, "arenas", list);
}

static int plan_decay(struct context *c, struct reply *r, const struct decay_args *args)
{
	char ms[SIZE_TEXT];
	const char *where = args->place == DECAY_DEFAULT ? "the default"
			    : args->place == DECAY_ALL	 ? "the default and each initialised arena"
							 : "one arena";

	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "kind", json_string(decay_kind_name(args->kind)));
		reply_set(r, "old", json_null());
		reply_set(r, "new", json_integer(args->ms));
	} else {
		fprintf(c->sink->out, "would set %s of %s to %s%s\n", decay_kind_name(args->kind),
			where, decay_text(args->ms, ms), context_undone(c));
	}
	return 0;
}

int cmd_decay(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct decay_change change;
	struct decay_args args;
	int err = decay_args(a, &args, d);

	if (!err)
		err = find_jemalloc(c, r, &jemalloc, d);
	if (err)
		return err;
	if (!args.write)
		return show_decay(c, r, jemalloc, &args, d);
	if (c->set.dry_run)
		return plan_decay(c, r, &args);
	err = jemalloc_decay(c->process, jemalloc, args.kind, args.place,
			     args.place == DECAY_ONE ? (uint32_t)args.index : 0, args.ms, &change,
			     d);
	if (err)
		return err;
	tell_rows(c, r, &change);
	if (c->set.json) {
		rows_json(r, &change);
		effect_json(r, &change.effect, NULL);
	} else {
		effect_line(c, &change.effect);
	}
	decay_change_free(&change);
	return 0;
}
