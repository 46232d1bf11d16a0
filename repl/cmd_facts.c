// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <string.h>

#include "context.h"
#include "fact_text.h"
#include "view.h"

/* The facts that the words ask for, each once, in their order. */
struct wanted {
	enum fact_id id[FACT_COUNT];
	size_t n;
	bool named; /* by words: also what is not known is an answer then */
};

static void want(struct wanted *w, enum fact_id id)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->id[i] == id)
			return;
	w->id[w->n++] = id;
}

/* "glibc." is all that begin so. False where there is none. */
static bool want_prefix(struct wanted *w, const char *prefix)
{
	size_t len = strlen(prefix);
	bool found = false;

	if (!len || prefix[len - 1] != '.')
		return false;
	for (unsigned i = 0; i < FACT_COUNT; i++)
		if (strncmp(fact_info((enum fact_id)i)->name, prefix, len) == 0) {
			want(w, (enum fact_id)i);
			found = true;
		}
	return found;
}

static int facts_args(const struct args *a, struct wanted *w, struct diag *d)
{
	*w = (struct wanted){ .named = a->argc > 0 };
	for (unsigned i = 0; !w->named && i < FACT_COUNT; i++)
		want(w, (enum fact_id)i);
	for (int i = 0; i < a->argc; i++) {
		enum fact_id id = fact_by_name(a->argv[i]);

		if (id < FACT_COUNT)
			want(w, id);
		else if (!want_prefix(w, a->argv[i]))
			return fact_unknown(a->argv[i], d);
	}
	return 0;
}

int check_facts(const struct args *a, struct diag *d)
{
	struct wanted w;

	return facts_args(a, &w, d);
}

static int print_facts(const struct context *c, const struct look *l, const struct wanted *w)
{
	static const struct column columns[] = { { "FACT", false },
						 { "VALUE", true },
						 { "ORIGIN", false } };
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		enum fact_id id = w->id[i];
		char value[48];

		if (facts_known(&l->facts, id))
			table_row(t, (const char *const[]){ fact_info(id)->name,
							    fact_text(&l->facts, id, c->set.bytes,
								      value, sizeof(value)),
							    origin_name(l->facts.v[id].origin) });
		else if (w->named)
			table_row(t, (const char *const[]){ fact_info(id)->name, "-",
							    fact_missing(l, id) });
	}
	err = table_print(t, c->sink);
	table_free(t);
	return err;
}

/* In JSON the facts are members of the result itself. */
static void reply_facts(struct reply *r, const struct facts *f, const struct wanted *w)
{
	json_t *o = facts_json(r, f);

	for (size_t i = 0; i < w->n; i++) {
		const char *name = fact_info(w->id[i])->name;

		reply_set(r, name, json_incref(json_object_get(o, name)));
	}
	json_decref(o);
}

/* jemalloc is called only for what it alone can tell. */
static bool wants_call(const struct wanted *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (fact_info(w->id[i])->cost == COST_CALL)
			return true;
	return false;
}

int cmd_facts(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct look *l;
	struct look own;
	struct wanted w;
	int err = facts_args(a, &w, d);

	if (!err)
		err = view_look(c, wants_call(&w), &own, &l, d);
	if (err)
		return err;
	if (c->set.json)
		reply_facts(r, &l->facts, &w);
	else if (print_facts(c, l, &w))
		err = diag_internal(d, -ENOMEM, "the table");
	if (!err)
		look_warn(c, r, l, wants_call(&w));
	if (l == &own)
		look_free(&own);
	return err;
}
