// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>

#include "context.h"
#include "fact_text.h"

static int print_facts(const struct context *c, const struct facts *f)
{
	static const struct column columns[] = { { "FACT", false },
						 { "VALUE", true },
						 { "ORIGIN", false } };
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err;

	if (!t)
		return -ENOMEM;
	for (unsigned i = 0; i < FACT_COUNT; i++) {
		enum fact_id id = (enum fact_id)i;
		char value[48];

		if (facts_known(f, id))
			table_row(t, (const char *const[]){
					     fact_info(id)->name,
					     fact_text(f, id, c->set.bytes, value, sizeof(value)),
					     origin_name(f->v[i].origin) });
	}
	err = table_print(t, c->sink);
	table_free(t);
	return err;
}

/* In JSON the facts are members of the result itself. */
static void reply_facts(struct reply *r, const struct facts *f)
{
	json_t *o = facts_json(r, f);

	for (unsigned i = 0; i < FACT_COUNT; i++) {
		const char *name = fact_info((enum fact_id)i)->name;

		reply_set(r, name, json_incref(json_object_get(o, name)));
	}
	json_decref(o);
}

int cmd_facts(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct look l;
	int err = look_take(c->process, !c->set.passive, &l, d);

	(void)a;
	if (err)
		return err;
	if (c->set.json)
		reply_facts(r, &l.facts);
	else if (print_facts(c, &l.facts))
		err = diag_internal(d, -ENOMEM, "the table");
	if (!err)
		look_warn(c, r, &l);
	look_free(&l);
	return err;
}
