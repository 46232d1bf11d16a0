// SPDX-License-Identifier: GPL-3.0-or-later
#include "process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Maps and modules need the right to read the process; without it `check` still has to name the
 * cause, so that is no error here.
 */
static int read_layout(struct process *p, struct diag *d)
{
	int rc = maps_read(&p->t, &p->maps, d);

	if (!rc)
		rc = modules_load(&p->t, &p->maps, &p->mods, d);
	if (!rc || rc == -ESRCH || rc == -ENOMEM)
		return rc;
	p->mods = (struct modules){ 0 };
	if (p->pre.injectable)
		p->pre.cause = *d;
	p->pre.injectable = false;
	diag_clear(d);
	return 0;
}

int process_open(pid_t pid, const struct session_opts *o, struct process **out, struct diag *d)
{
	struct process *p = calloc(1, sizeof(*p));
	int rc;

	*out = NULL;
	if (!p)
		return diag_internal(d, -ENOMEM, "process");
	if (o)
		p->opts = *o;
	rc = target_open(pid, &p->t, d);
	if (rc)
		goto out_free;
	rc = preflight_run(&p->t, &p->pre);
	if (rc < 0) {
		if (rc == -ESRCH)
			target_gone(&p->t, d);
		else
			diag_internal(d, rc, "preflight");
		goto out_close;
	}
	rc = read_layout(p, d);
	if (rc)
		goto out_modules;
	if (p->mods.n)
		preflight_modules(&p->pre, &p->mods);
	rc = allocators_find(p, &p->allocs, d);
	if (rc)
		goto out_modules;
	if (!p->pre.injectable && target_ending(&p->t, false)) {
		rc = -ESRCH;
		goto out_modules;
	}
	*out = p;
	return 0;
out_modules:
	if (target_ending(&p->t, false))
		rc = target_gone(&p->t, d);
	modules_free(&p->mods);
	maps_free(&p->maps);
out_close:
	target_close(&p->t);
out_free:
	free(p);
	return rc;
}

static void held_add(struct held *to, const struct held *h)
{
	to->threads += h->threads;
	to->total_ns += h->total_ns;
	if (h->threads)
		to->last_ns = h->last_ns;
	if (h->max_ns > to->max_ns)
		to->max_ns = h->max_ns;
}

void process_held(const struct process *p, struct held *out)
{
	struct held now = { 0 };

	*out = p->held;
	if (p->session)
		session_held(p->session, &now);
	held_add(out, &now);
}

static int session_end(struct process *p, struct diag *d, char *warn, size_t warn_size)
{
	struct held total;
	int rc;

	if (!p->session)
		return 0;
	process_held(p, &total);
	rc = session_close(p->session, d, warn, warn_size);
	p->session = NULL;
	p->held = total;
	return rc;
}

void process_drop_session(struct process *p)
{
	struct diag ignored = { 0 }; /* the failed call has told what there is to tell */

	(void)session_end(p, &ignored, NULL, 0);
}

int process_close(struct process *p, struct diag *d, char *warn, size_t warn_size)
{
	int rc = session_end(p, d, warn, warn_size);

	modules_free(&p->mods);
	maps_free(&p->maps);
	target_close(&p->t);
	free(p);
	return rc;
}

/* The errno that goes with the exit code of a refusal. */
static int refusal_errno(const struct diag *cause)
{
	switch (cause->exit) {
	case HM_GONE:
		return -ESRCH;
	case HM_NOT_PERMITTED:
		return -EPERM;
	case HM_UNSUPPORTED:
		return -ENOTSUP;
	default:
		return -EBUSY;
	}
}

/* What preflight said may be old in a long session: the process may have been stopped since. */
static int preflight_again(struct process *p, struct diag *d)
{
	struct preflight now;

	if (!target_alive(&p->t))
		return target_gone(&p->t, d);
	if (!p->mods.n)
		goto out_refuse;
	if (preflight_run(&p->t, &now) < 0)
		return target_gone(&p->t, d);
	preflight_modules(&now, &p->mods);
	p->pre = now;
	if (now.attachable && now.injectable)
		return 0;
out_refuse:
	*d = p->pre.cause;
	if (!d->exit)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-modules",
				 "`check` says what could be read",
				 "no program or library of process %d could be read", p->t.pid);
	return refusal_errno(d);
}

int process_session(struct process *p, struct diag *d)
{
	int rc;

	if (p->session)
		return 0;
	rc = preflight_again(p, d);
	if (rc)
		return rc;
	rc = session_open(&p->t, &p->mods, &p->opts, &p->session, d);
	if (rc)
		p->session = NULL;
	if (rc == -EPERM)
		preflight_explain_eperm(&p->t, d);
	return rc;
}

int process_refresh(struct process *p, struct diag *d)
{
	struct maps now;
	int rc = maps_read(&p->t, &now, d);

	if (rc)
		return rc;
	maps_free(&p->maps);
	p->maps = now;
	return 0;
}

const struct allocator *process_allocator(const struct process *p, const char *name)
{
	for (size_t i = 0; i < p->allocs.n; i++)
		if (p->allocs.v[i].in_use && !strcmp(p->allocs.v[i].ops->name, name))
			return &p->allocs.v[i];
	return NULL;
}

int process_calls(struct process *p, struct call *v, size_t n, struct diag *d)
{
	int rc = process_session(p, d);

	if (rc)
		return rc;
	rc = session_call(p->session, v, n, d);
	if (rc < 0 && (d->exit == HM_GONE || d->exit == HM_RUNNING || d->exit == HM_DIED))
		process_drop_session(p);
	return rc;
}

int process_call(struct process *p, uint64_t fn, const uint64_t arg[6], uint64_t *ret, uint64_t *ns,
		 struct diag *d)
{
	struct call c = { .fn = fn };
	int rc;

	memcpy(c.arg, arg, sizeof(c.arg));
	rc = process_calls(p, &c, 1, d);
	if (rc)
		return rc;
	if (ret)
		*ret = c.ret;
	if (ns)
		*ns = c.ns;
	return 0;
}
