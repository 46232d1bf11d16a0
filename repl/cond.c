// SPDX-License-Identifier: GPL-3.0-or-later
#include "cond.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../agent/look_facts.h"
#include "fact_text.h"
#include "view.h"

#define TEXT_MAX 4096 /* of a condition */

int cond_parse(char *const *words, int n, struct expr **out, struct diag *d)
{
	char text[TEXT_MAX] = "";
	size_t used = 0;

	*out = NULL;
	for (int i = 0; i < n; i++) {
		int len =
			snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", words[i]);

		if (len < 0 || used + (size_t)len >= sizeof(text))
			return diag_fail(d, -E2BIG, HM_USAGE, "syntax", "make two conditions of it",
					 "the condition is longer than %d characters", TEXT_MAX);
		used += (size_t)len;
	}
	return expr_parse(text, out, d);
}

enum fact_cost cond_cost(const struct expr *e)
{
	enum fact_cost most = COST_QUICK;

	for (unsigned id = 0; id < FACT_COUNT; id++)
		if (expr_names(e, (enum fact_id)id) && fact_info((enum fact_id)id)->cost > most)
			most = fact_info((enum fact_id)id)->cost;
	return most;
}

/* Why it is not known; l is NULL where nothing but the kernel was asked. */
static void tell_missing(const struct expr *e, const struct look *l, struct cond *out)
{
	enum fact_id id = expr_unknown(e, &out->facts);

	if (id == FACT_COUNT)
		return;
	if (l)
		snprintf(out->missing, sizeof(out->missing), "%s is not known: %s",
			 fact_info(id)->name, fact_missing(l, id));
	else
		snprintf(out->missing, sizeof(out->missing), "%s is not known: there is none",
			 fact_info(id)->name);
}

/* Is it decided by what the kernel tells at once? Then the heap need not be read, nobody be called.
 */
static int find_quick(struct context *c, const struct expr *e, struct cond *out, struct diag *d)
{
	int err = look_facts_quick(c->process, &out->facts, d);

	if (err)
		return err;
	out->truth = expr_eval(e, &out->facts);
	expr_explain_known(e, &out->facts, c->set.bytes, out->text, sizeof(out->text));
	return 0;
}

static int find_by_look(struct context *c, const struct expr *e, struct cond *out, struct diag *d)
{
	const struct look *l = NULL;
	struct look own;
	int err = view_look(c, cond_cost(e) == COST_CALL, &own, &l, d);

	if (err)
		return err;
	out->facts = l->facts;
	out->truth = expr_eval(e, &out->facts);
	expr_explain(e, &out->facts, c->set.bytes, out->text, sizeof(out->text));
	if (out->truth == EXPR_UNKNOWN)
		tell_missing(e, l, out);
	if (l == &own)
		look_free(&own);
	return 0;
}

static bool names_quick(const struct expr *e)
{
	for (unsigned id = 0; id < FACT_COUNT; id++)
		if (expr_names(e, (enum fact_id)id) &&
		    fact_info((enum fact_id)id)->cost == COST_QUICK)
			return true;
	return false;
}

int cond_find(struct context *c, const struct expr *e, struct cond *out, struct diag *d)
{
	bool quick = !c->loaded && names_quick(e);
	int err = 0;

	memset(out, 0, sizeof(*out));
	out->truth = EXPR_UNKNOWN;
	if (quick)
		err = find_quick(c, e, out, d);
	if (err || out->truth != EXPR_UNKNOWN)
		return err;
	if (quick && cond_cost(e) == COST_QUICK) {
		expr_explain(e, &out->facts, c->set.bytes, out->text, sizeof(out->text));
		tell_missing(e, NULL, out);
		return 0;
	}
	return find_by_look(c, e, out, d);
}
