// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>

#include "context.h"
#include "fact_text.h"
#include "metrics.h"
#include "view.h"

/* Of several processes all that is known comes at the end: see metrics.h. */
static int keep(struct context *c, const struct look *l, const struct args *a, struct diag *d)
{
	const char *output = a->opt[METRICS_OUTPUT];
	struct metrics own = { 0 };
	struct metrics *m = c->metrics ? c->metrics : &own;
	struct timespec when;
	int err = output ? metrics_for(m, output, a->opt[METRICS_FORCE] != NULL, d) : 0;

	context_time(c, &when);
	if (!err && metrics_add(m, c->pid, c->comm, &l->facts, &when))
		err = diag_internal(d, -ENOMEM, "the metrics");
	if (!err && !c->metrics && output)
		err = metrics_save(m, c->set.dry_run, d);
	else if (!err && !c->metrics)
		metrics_write(m, c->sink->out);
	metrics_free(&own);
	return err;
}

int cmd_metrics(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct look *l;
	struct look own;
	int err = view_look(c, true, &own, &l, d);

	if (err)
		return err;
	err = keep(c, l, a, d);
	if (!err && l->jemalloc_unasked[0])
		context_verbose(c, "jemalloc was not asked: %s", l->jemalloc_unasked);
	if (!err && l->tcmalloc.unasked[0])
		context_verbose(c, "tcmalloc was not asked: %s", l->tcmalloc.unasked);
	if (!err && l->mimalloc.unasked[0])
		context_verbose(c, "mimalloc was not asked: %s", l->mimalloc.unasked);
	(void)r;
	if (l == &own)
		look_free(&own);
	return err;
}
