// SPDX-License-Identifier: GPL-3.0-or-later
/* mallctl --list: the names, and what stands there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../agent/ctl_path.h"
#include "../agent/jemalloc_ctl.h"
#include "commands.h"
#include "context.h"

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
	reply_member(r, o, "value", value ? ctl_value_json(value) : json_null());
	reply_member(r, o, "meaning", json_string(row->meaning));
	if (json_array_append_new(json_object_get(r->result, "names"), o))
		r->failed = true;
}

/*
 * The jemalloc to ask for values, NULL for none: only with a target, and not under --passive.
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
	return err ? err : find_jemalloc(c, r, out, d);
}

/* Rows that begin so, each to be asked for or not (name NULL). Returns how many there are. */
static size_t list_pick(const char *prefix, const struct ctl_name **rows, struct ctl_ask *ask,
			size_t *asked)
{
	size_t n, shown = 0;
	const struct ctl_name *row = ctl_table(&n);

	*asked = 0;
	for (size_t i = 0; i < n; i++) {
		if (!ctl_begins(&row[i], prefix))
			continue;
		rows[shown++] = &row[i];
		if (has_value(&row[i]))
			ask[(*asked)++] = (struct ctl_ask){ .name = row[i].name, .row = &row[i] };
	}
	return shown;
}

static int list_rows(struct context *c, const char *prefix, struct reply *r,
		     const struct allocator *jemalloc, struct table *t, struct diag *d)
{
	struct ctl_fresh fresh = { 0 };
	const struct ctl_name **rows;
	size_t n, shown, asked, at = 0;
	struct ctl_ask *ask;
	int err = 0;

	(void)ctl_table(&n);
	rows = calloc(n, sizeof(const struct ctl_name *));
	ask = calloc(n, sizeof(*ask));
	if (!rows || !ask) {
		err = diag_internal(d, -ENOMEM, "the list");
		goto out;
	}
	shown = list_pick(prefix, rows, ask, &asked);
	if (!shown)
		err = diag_fail(d, -ENOENT, HM_CALL_FAILED, "unknown-name",
				"`mallctl --list` shows all",
				"no name of jemalloc begins with '%.60s'", prefix);
	if (!err && jemalloc && asked)
		err = jemalloc_ask(c->process, jemalloc, ask, asked, &fresh, d);
	for (size_t i = 0; !err && i < shown; i++) {
		const struct ctl_ask *v = at < asked && ask[at].row == rows[i] ? &ask[at++] : NULL;

		/* a name that this build does not have has no value */
		list_one(c, r, rows[i], jemalloc && v && !v->rc ? &v->value : NULL, t);
	}
	if (!err)
		tell_fresh(c, r, &fresh);
out:
	free(rows);
	free(ask);
	return err;
}

int ctl_list(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	static const struct column columns[] = { { "NAME", false },
						 { "TYPE", false },
						 { "ACCESS", false },
						 { "VALUE", false },
						 { "MEANING", false } };
	const struct allocator *jemalloc;
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err = t ? 0 : diag_internal(d, -ENOMEM, "the table");

	if (t)
		table_flow(t);
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
