// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../agent/allocator_choice.h"
#include "../agent/ctl_error.h"
#include "../agent/ctl_rule.h"
#include "../agent/jemalloc.h"
#include "../agent/jemalloc_sweep.h"
#include "context.h"

/* With a value, or of a name without data, it is a change; nothing else is. */
unsigned effect_mallctl(const struct args *a)
{
	const struct ctl_name *row = a->argc ? ctl_find(a->argv[0]) : NULL;

	if (a->opt[CTL_LIST])
		return CMD_PASSIVE | CMD_NO_PROCESS;
	if (a->argc == 2 || (row && row->type == CTL_VOID))
		return CMD_CALLS | CMD_WRITES;
	return CMD_CALLS;
}

json_t *ctl_value_json(const struct ctl_value *v)
{
	switch (v->type) {
	case CTL_BOOL:
		return json_boolean(v->b);
	case CTL_UNSIGNED:
	case CTL_SIZE:
	case CTL_U32:
	case CTL_U64:
		return json_u64(v->u);
	case CTL_SSIZE:
	case CTL_INT:
		return json_integer(v->i);
	case CTL_STRING:
		return json_text(v->text, strnlen(v->text, sizeof(v->text)));
	default:
		return json_null();
	}
}

static void print_value(const struct context *c, const struct ctl_value *v)
{
	char text[1100];

	ctl_value_format(v, text, sizeof(text));
	sink_text(c->sink->out, text, strlen(text));
}

static void answer_read(struct context *c, struct reply *r, const struct ctl_name *row,
			const char *name, const struct ctl_value *old)
{
	if (c->set.json) {
		reply_set(r, "name", json_text(name, strlen(name)));
		reply_set(r, "type", json_string(row->ctype));
		reply_set(r, "value", ctl_value_json(old));
		return;
	}
	if (row->type == CTL_VOID)
		fprintf(c->sink->out, "%s done", name);
	else
		print_value(c, old);
	putc('\n', c->sink->out);
}

static void answer_write(struct context *c, struct reply *r, const struct ctl_name *row,
			 const char *name, const struct ctl_value *old, const struct ctl_value *new)
{
	if (c->set.json) {
		reply_set(r, "name", json_text(name, strlen(name)));
		reply_set(r, "type", json_string(row->ctype));
		reply_set(r, "old", ctl_value_json(old));
		reply_set(r, "new", ctl_value_json(new));
		return;
	}
	fprintf(c->sink->out, "%s ", name);
	if (old->type != CTL_VOID) {
		print_value(c, old);
		fputs(" -> ", c->sink->out);
	}
	print_value(c, new);
	putc('\n', c->sink->out);
}

/* A dry run: the value that stands there is not read either, that would be a call. */
static int plan(struct context *c, struct reply *r, const struct ctl_name *row, const char *name,
		const struct ctl_value *value)
{
	if (c->set.json) {
		reply_set(r, "dry_run", json_true());
		reply_set(r, "name", json_text(name, strlen(name)));
		reply_set(r, "type", json_string(row->ctype));
		reply_set(r, "old", json_null());
		reply_set(r, "new", value ? ctl_value_json(value) : json_null());
		return 0;
	}
	fprintf(c->sink->out, "would %s %s", value ? "write" : "call", name);
	if (value) {
		putc(' ', c->sink->out);
		print_value(c, value);
	}
	fprintf(c->sink->out, "%s\n", context_undone(c));
	return 0;
}

/* Where another one could be meant the one that owns malloc is asked, and that is said. */
int find_jemalloc(struct context *c, struct reply *r, const struct allocator **out, struct diag *d)
{
	const struct allocators *all = &c->process->allocs;
	char label[ALLOCATOR_LABEL];
	size_t others;
	int err = allocator_choose(c->process, "jemalloc", out, &others, d);

	if (err == -ENOENT)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-jemalloc",
				 "`check` lists the allocators; glibc has `mallopt` and `info`",
				 "%s does not allocate with jemalloc", c->comm);
	if (!err && others)
		reply_warn(c, r, "several-allocators",
			   "this is %s, which owns malloc; it is one of %zu jemallocs, "
			   "--allocator chooses another one",
			   allocator_label(all, *out, label, sizeof(label)), others + 1);
	return err;
}

void tell_fresh(struct context *c, struct reply *r, const struct ctl_fresh *fresh)
{
	struct tm tm;
	char text[32] = "";

	if (!fresh->known)
		return;
	reply_set(r, "epoch", json_u64(fresh->epoch));
	reply_set(r, "as_of", json_time(&fresh->at));
	if (c->set.json || !localtime_r(&fresh->at.tv_sec, &tm))
		return;
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	context_note(c, "statistics of %s.%03ld, epoch %" PRIu64, text, fresh->at.tv_nsec / 1000000,
		     fresh->epoch);
}

/* ---- `all`: one line for each */

struct telling {
	struct context *c;
	struct reply *r;
	const struct ctl_path *path;
	const struct ctl_value *value; /* written */
	size_t refused;
	struct diag *d;
};

static void tell_refused(struct telling *t, const char *name, int rc)
{
	const struct ctl_build none = { 0 };
	struct diag why = { 0 };

	(void)ctl_error(t->path->row, name, &none, t->value != NULL, rc, &why);
	t->refused++;
	reply_warn(t->c, t->r, why.code, "%s", why.text);
}

static void tell_cell(struct telling *t, const char *name, const struct ctl_cell *cell)
{
	FILE *out = t->c->sink->out;

	fprintf(out, "%s ", name);
	if (cell->value)
		print_value(t->c, cell->value);
	if (t->value && cell->value)
		fputs(" -> ", out);
	if (t->value)
		print_value(t->c, cell->now ? cell->now : t->value);
	putc('\n', out);
}

static int take_cell(void *arg, const struct ctl_cell *cell)
{
	struct telling *t = arg;
	json_t *o, *index;
	char name[128];

	if (ctl_path_name(t->path, cell->index, name, sizeof(name)))
		return ctl_unknown(t->path->row->name, t->d);
	if (cell->rc) {
		tell_refused(t, name, cell->rc);
		return 0;
	}
	if (!t->c->set.json) {
		tell_cell(t, name, cell);
		return 0;
	}
	o = json_object();
	index = json_array();
	for (unsigned i = 0; i < t->path->n; i++)
		if (json_array_append_new(index, json_u64(cell->index[i])))
			t->r->failed = true;
	reply_member(t->r, o, "name", json_string(name));
	reply_member(t->r, o, "index", index);
	reply_member(t->r, o, t->value ? "old" : "value",
		     cell->value ? ctl_value_json(cell->value) : json_null());
	if (t->value)
		reply_member(t->r, o, "new", ctl_value_json(cell->now ? cell->now : t->value));
	if (json_array_append_new(json_object_get(t->r->result, "values"), o))
		t->r->failed = true;
	return 0;
}

static void tell_left_out(struct telling *t, const struct ctl_sweep *s)
{
	char size[SIZE_TEXT];

	if (s->cut || s->which->cut)
		reply_warn(t->c, t->r, "sweep-cut",
			   "jemalloc says that there are %" PRIu64
			   " arenas; after %zu answers the rest was left out",
			   s->which->narenas, s->cells);
	if (s->skipped)
		reply_warn(t->c, t->r, "huge-arena-left",
			   "arena %u was left as it is: it is jemalloc's own for blocks of %s and "
			   "more, and gives their pages back at once; arena.%u%s changes it",
			   s->which->huge, text_size(size, s->which->threshold, t->c->set.bytes),
			   s->which->huge, t->path->row->name + sizeof("arena.<i>") - 1);
}

/* Of the decay times the huge arena has its own, which is no oversight. */
static bool leaves_huge(const struct ctl_name *row, const struct ctl_value *value)
{
	return value && strncmp(row->name, "arena.<i>.", 10) == 0 &&
	       strstr(row->name, "_decay_ms") != NULL;
}

/* A change that has changed nothing has failed; each refusal was told. */
static int all_refused(const struct telling *t, const struct ctl_sweep *s, const char *name)
{
	if (!t->value || !t->refused || t->refused < s->cells)
		return 0;
	return diag_fail(t->d, -EINVAL, HM_CALL_FAILED, "mallctl-refused",
			 "the reason stands with each of them",
			 "%.100s: jemalloc has refused all %zu writes", name, t->refused);
}

static int sweep(struct context *c, struct reply *r, const struct allocator *jemalloc,
		 const struct ctl_path *path, const char *name, const struct ctl_value *value,
		 struct diag *d)
{
	struct jemalloc_which *which = calloc(1, sizeof(*which));
	struct telling t = { .c = c, .r = r, .path = path, .value = value, .d = d };
	struct ctl_sweep s = {
		.which = which,
		.value = value,
		.skip_huge = leaves_huge(path->row, value),
	};
	int err;

	if (!which)
		return diag_internal(d, -ENOMEM, "the arenas");
	err = jemalloc_which_read(c->process, jemalloc, which, d);
	if (!err) {
		reply_set(r, "name", json_text(name, strlen(name)));
		reply_set(r, "type", json_string(path->row->ctype));
		reply_set(r, "values", json_array());
		err = jemalloc_sweep(c->process, jemalloc, path, &s, take_cell, &t, d);
	}
	if (!err) {
		tell_left_out(&t, &s);
		if (strncmp(path->row->name, "stats.", 6) == 0)
			tell_fresh(c, r, &which->fresh);
		err = all_refused(&t, &s, name);
	}
	free(which);
	return err;
}

/* A purge or decay of all arenas is one call: jemalloc has an index of its own for that. */
static bool is_sweep(const struct ctl_path *path)
{
	return ctl_path_sweeps(path) && !(ctl_takes_all(path->row) && path->row->type == CTL_VOID);
}

/* An option that can only be set at the start is set in a variable that depends on the build. */
static int exact_refusal(const struct context *c, const char *name, int err, struct diag *d)
{
	const struct allocator *a = process_allocator(c->process, "jemalloc");

	if (!a || d->exit != HM_CALL_FAILED || err != -EPERM)
		return err;
	return jemalloc_refused(a, name, true, EPERM, d);
}

/*
 * thread.* is about the thread that asks. That is one of ours, or with direct calls one of the
 * application's: there a change would stay, and nobody means that who has not named the thread.
 */
static int check_caller(struct context *c, const struct ctl_name *row, const char *name, bool write,
			struct reply *r, struct diag *d)
{
	bool direct;
	int err;

	if (!row->acts_on_caller)
		return 0;
	err = process_session(c->process, d);
	if (err)
		return err;
	direct = strcmp(session_via(c->process->session), "direct") == 0;
	if (direct && write && !c->set.thread)
		return diag_fail(d, -EPERM, HM_UNSAFE, "acts-on-caller",
				 "where that is meant, name it: --via direct --thread TID",
				 "%s would be changed for the application's own thread, which the "
				 "call is made on",
				 name);
	reply_warn(c, r, "acts-on-caller",
		   direct ? "%s is about the thread that asks: one of the application's, as the "
			    "call is direct"
			  : "%s is about the thread that asks: heapmedic's own, not one of the "
			    "application's",
		   name);
	return 0;
}

static int one_name(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const char *name = a->argv[0];
	const struct ctl_name *row = ctl_find(name);
	const struct allocator *jemalloc;
	struct ctl_value value, old = { .type = CTL_VOID }, now;
	bool write = a->argc == 2;
	struct ctl_fresh fresh;
	struct ctl_path path;
	int err;

	if (!row)
		return ctl_unknown(name, d);
	err = ctl_check(row, name, write, d);
	if (err)
		return exact_refusal(c, name, err, d);
	if (write)
		err = ctl_value_parse(row, a->argv[1], &value, d);
	if (!err && write)
		err = ctl_check_value(row, &value, d);
	if (!err && ctl_path_parse(row, name, &path))
		err = ctl_unknown(name, d);
	if (!err)
		err = find_jemalloc(c, r, &jemalloc, d);
	if (err)
		return err;
	if (c->set.dry_run && (write || row->type == CTL_VOID))
		return plan(c, r, row, name, write ? &value : NULL);
	if (is_sweep(&path))
		return sweep(c, r, jemalloc, &path, name, write ? &value : NULL, d);
	err = check_caller(c, row, name, write, r, d);
	if (err)
		return err;
	err = jemalloc_ctl_at(c->process, jemalloc, name, row, write ? &value : NULL,
			      row->type == CTL_VOID ? NULL : &old, &now, &fresh, false, d);
	if (err)
		return err;
	if (write)
		answer_write(c, r, row, name, &old, now.type == CTL_VOID ? &value : &now);
	else
		answer_read(c, r, row, name, &old);
	tell_fresh(c, r, &fresh);
	return 0;
}

int check_mallctl(const struct args *a, struct diag *d)
{
	const struct ctl_name *row = a->argc ? ctl_find(a->argv[0]) : NULL;
	struct ctl_value value;

	if (a->opt[CTL_LIST])
		return 0;
	if (a->argc == 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "usage", "`mallctl --list` shows the names",
				 "mallctl needs a name");
	/* Whether the name itself is good is jemalloc's to say, with exit 1: by its turn. */
	if (!row || a->argc < 2 || !(row->access & CTL_WRITE))
		return 0;
	return ctl_value_parse(row, a->argv[1], &value, d);
}

int cmd_mallctl(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	if (a->opt[CTL_LIST])
		return ctl_list(c, a, r, d);
	return one_name(c, a, r, d);
}
