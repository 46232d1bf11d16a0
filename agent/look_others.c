// SPDX-License-Identifier: GPL-3.0-or-later
#include "look_others.h"

#include <stdio.h>

#include "../inject/status.h"
#include "allocator_missing.h"
#include "mimalloc.h"
#include "tcmalloc.h"

bool look_is_refusal(const struct diag *d)
{
	return d->exit == HM_CALL_FAILED || d->exit == HM_NOT_PERMITTED ||
	       d->exit == HM_UNSUPPORTED || d->exit == HM_UNSAFE;
}

static int ask_tcmalloc(struct process *p, const struct allocator *a, struct facts *f,
			struct diag *d)
{
	static const enum fact_id ids[TCM_FIGURES] = {
		[TCM_ALLOCATED] = FACT_TCMALLOC_ALLOCATED,
		[TCM_HEAP] = FACT_TCMALLOC_HEAP,
		[TCM_PAGEHEAP_FREE] = FACT_TCMALLOC_PAGEHEAP_FREE,
		[TCM_UNMAPPED] = FACT_TCMALLOC_UNMAPPED,
		[TCM_THREAD_CACHES] = FACT_TCMALLOC_THREAD_CACHES,
		[TCM_CENTRAL] = FACT_TCMALLOC_CENTRAL_CACHE,
		[TCM_TRANSFER] = FACT_TCMALLOC_TRANSFER_CACHE,
		[TCM_CACHE_LIMIT] = FACT_TCMALLOC_THREAD_CACHES_MAX,
	};
	struct tcmalloc_figures v;
	int err = tcmalloc_figures_read(p, a, &v, d);

	for (unsigned i = 0; !err && i < TCM_FIGURES; i++)
		if (v.known[i])
			facts_set(f, ids[i], FROM_CALL, v.v[i]);
	return err;
}

static int ask_mimalloc(struct process *p, const struct allocator *a, struct facts *f,
			struct diag *d)
{
	struct mimalloc_figures v;
	int err = mimalloc_figures_read(p, a, &v, d);

	if (err || !v.known)
		return err;
	facts_set(f, FACT_MIMALLOC_COMMITTED, FROM_CALL, v.committed);
	facts_set(f, FACT_MIMALLOC_COMMITTED_PEAK, FROM_CALL, v.committed_peak);
	return 0;
}

typedef int ask_fn(struct process *p, const struct allocator *a, struct facts *f, struct diag *d);

static int ask_one(struct process *p, bool may_call, const char *name, ask_fn *ask,
		   struct look_asked *out, struct facts *f, struct diag *d)
{
	struct diag own = { 0 };
	int err;

	out->a = process_allocator(p, name);
	if (!out->a)
		return 0;
	if (!may_call) {
		snprintf(out->unasked, sizeof(out->unasked), LOOK_NOT_ASKED);
		return 0;
	}
	err = out->a->reach ? allocator_unreachable(out->a, &own) : process_session(p, &own);
	if (!err)
		err = ask(p, out->a, f, &own);
	if (err && !look_is_refusal(&own)) {
		*d = own;
		return err;
	}
	out->asked = !err;
	if (err)
		snprintf(out->unasked, sizeof(out->unasked), "%s", own.text);
	return 0;
}

int look_others(struct process *p, bool may_call, struct look *l, struct diag *d)
{
	int err = ask_one(p, may_call, "tcmalloc", ask_tcmalloc, &l->tcmalloc, &l->facts, d);

	return err ? err
		   : ask_one(p, may_call, "mimalloc", ask_mimalloc, &l->mimalloc, &l->facts, d);
}
