// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "../agent/allocator_choice.h"
#include "../agent/ctl_rule.h"
#include "../agent/jemalloc.h"
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

static json_t *value_json(const struct ctl_value *v)
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
		reply_set(r, "value", value_json(old));
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
		reply_set(r, "old", value_json(old));
		reply_set(r, "new", value_json(new));
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
		reply_set(r, "new", value ? value_json(value) : json_null());
		return 0;
	}
	fprintf(c->sink->out, "would %s %s", value ? "write" : "call", name);
	if (value) {
		putc(' ', c->sink->out);
		print_value(c, value);
	}
	fputs(", nothing was done\n", c->sink->out);
	return 0;
}

/* Where another one could be meant the one that owns malloc is asked, and that is said. */
static int find_jemalloc(struct context *c, struct reply *r, const struct allocator **out,
			 struct diag *d)
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

static int one_name(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const char *name = a->argv[0];
	const struct ctl_name *row = ctl_find(name);
	const struct allocator *jemalloc;
	struct ctl_value value, old = { .type = CTL_VOID };
	bool write = a->argc == 2;
	int err;

	if (!row)
		return ctl_unknown(name, d);
	err = ctl_check(row, name, write, d);
	if (!err && write)
		err = ctl_value_parse(row, a->argv[1], &value, d);
	if (!err && write)
		err = ctl_check_value(row, &value, d);
	if (!err)
		err = find_jemalloc(c, r, &jemalloc, d);
	if (err)
		return err;
	if (c->set.dry_run && (write || row->type == CTL_VOID))
		return plan(c, r, row, name, write ? &value : NULL);
	err = jemalloc_ctl(c->process, jemalloc, name, row, write ? &value : NULL,
			   row->type == CTL_VOID ? NULL : &old, d);
	if (err)
		return err;
	if (row->acts_on_caller)
		reply_warn(c, r, "acts-on-caller",
			   "%s is about the thread that asks: heapmedic's own, not one of the "
			   "application's",
			   name);
	if (write)
		answer_write(c, r, row, name, &old, &value);
	else
		answer_read(c, r, row, name, &old);
	return 0;
}

/* ---- --list */

/* Values are read where that is one plain read: no index to fill in, no write, not a thread's own.
 */
static bool has_value(const struct ctl_name *row)
{
	return (row->access & CTL_READ) && !row->forbidden && !row->acts_on_caller &&
	       row->type != CTL_VOID && row->type != CTL_OTHER && !ctl_is_pattern(row->name);
}

static void list_one(struct context *c, struct reply *r, const struct ctl_name *row,
		     const struct ctl_value *value, struct table *t)
{
	const char *access = row->access == (CTL_READ | CTL_WRITE) ? "rw"
			     : row->access == CTL_READ		   ? "r-"
			     : row->access == CTL_WRITE		   ? "-w"
								   : "--";
	char text[80] = "";
	json_t *o;

	if (!c->set.json) {
		if (value)
			ctl_value_format(value, text, sizeof(text));
		table_row(t, (const char *const[]){ row->name, row->ctype, access, text,
						    row->meaning });
		return;
	}
	o = json_object();
	reply_member(r, o, "name", json_string(row->name));
	reply_member(r, o, "type", json_string(row->ctype));
	reply_member(r, o, "access", json_string(access));
	reply_member(r, o, "value", value ? value_json(value) : json_null());
	reply_member(r, o, "meaning", json_string(row->meaning));
	if (json_array_append_new(json_object_get(r->result, "names"), o))
		r->failed = true;
}

/*
 * The jemalloc to ask for values, NULL for none: only with a target, not under --passive, and not
 * where every read would hold the target's only thread once more.
 */
static int list_source(struct context *c, struct reply *r, const struct allocator **out,
		       struct diag *d)
{
	struct process *p;
	int err;

	*out = NULL;
	if (!c->pid || c->set.passive || c->set.dry_run)
		return 0;
	err = context_process(c, &p, d);
	if (err)
		return err;
	err = find_jemalloc(c, r, out, d);
	if (!err)
		err = process_session(p, d);
	if (!err && !session_is_proxy(p->session))
		*out = NULL;
	return err;
}

static int list_rows(struct context *c, const char *prefix, struct reply *r,
		     const struct allocator *jemalloc, struct table *t, struct diag *d)
{
	size_t n, shown = 0;
	const struct ctl_name *row = ctl_table(&n);

	for (size_t i = 0; i < n; i++) {
		struct ctl_value v = { .type = CTL_VOID };
		bool known = false;

		if (strncmp(row[i].name, prefix, strlen(prefix)) != 0)
			continue;
		shown++;
		if (jemalloc && has_value(&row[i])) {
			int err = jemalloc_ctl(c->process, jemalloc, row[i].name, &row[i], NULL, &v,
					       d);

			/* A name that this build does not have has no value; more than that is lost
			 * with the session. */
			if (err && d->exit != HM_CALL_FAILED && d->exit != HM_UNSUPPORTED)
				return err;
			known = !err;
			diag_clear(d);
		}
		list_one(c, r, &row[i], known ? &v : NULL, t);
	}
	if (shown)
		return 0;
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "unknown-name", "`mallctl --list` shows all",
			 "no name of jemalloc begins with '%.60s'", prefix);
}

static int list_names(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	static const struct column columns[] = { { "NAME", false },
						 { "TYPE", false },
						 { "ACCESS", false },
						 { "VALUE", false },
						 { "MEANING", false } };
	const struct allocator *jemalloc;
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err = t ? 0 : diag_internal(d, -ENOMEM, "the table");

	if (!err)
		err = list_source(c, r, &jemalloc, d);
	if (!err && c->set.json)
		reply_set(r, "names", json_array());
	if (!err)
		err = list_rows(c, a->argc ? a->argv[0] : "", r, jemalloc, t, d);
	if (!err && !c->set.json && table_print(t, c->sink))
		err = diag_internal(d, -ENOMEM, "the table");
	table_free(t);
	return err;
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
		return list_names(c, a, r, d);
	return one_name(c, a, r, d);
}
