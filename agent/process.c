// SPDX-License-Identifier: GPL-3.0-or-later
#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../inject/cause.h"
#include "../inject/clock.h"
#include "../inject/ourselves.h"
#include "../inject/phase.h"
#include "../inject/stray.h"
#include "../inject/wait.h"
#include "allocator_choice.h"
#include "glibc_picture.h"
#include "guard.h"

/* For a thread that still has to be let go of; one that is stuck for longer is left to the kernel.
 */
#define STRAY_LIMIT (2 * NS_PER_SEC)
/* What passes does so within milliseconds. */
#define STARTING_NAP   (5 * NS_PER_MS)
#define STARTING_LOOKS 40

/*
 * A number for the mappings that modules are found by: the executable ones of files. Another one
 * means that a library has come or gone, or that the process has executed another program, which
 * changes neither its pid nor its start time. Code that a runtime makes for itself is no module,
 * also where it maps it from a memory file.
 */
static uint64_t layout_of(const struct maps *m)
{
	uint64_t h = 14695981039346656037ULL; /* FNV-1a, by words */

	for (size_t i = 0; i < m->n; i++) {
		const struct map *v = &m->v[i];
		const uint64_t key[] = { v->start,     v->end,	     v->offset,
					 v->dev_major, v->dev_minor, v->inode };

		if (!(v->prot & PROT_EXEC) || !v->inode || !strncmp(v->name, "/memfd:", 7))
			continue;
		for (size_t k = 0; k < sizeof(key) / sizeof(key[0]); k++)
			h = (h ^ key[k]) * 1099511628211ULL;
	}
	return h;
}

/* Modules that are gone take the session with them: its addresses are theirs. */
static void forget_modules(struct process *p)
{
	process_drop_session(p);
	glibc_picture_drop(p);
	modules_free(&p->mods);
	p->allocs = (struct allocators){ 0 };
	p->layout = 0;
}

static int read_modules(struct process *p, struct diag *d)
{
	uint64_t layout = layout_of(&p->maps);
	int rc;

	if (p->mods.n && !p->mods.linking && layout == p->layout)
		return 0;
	forget_modules(p);
	phase_begin("reading its libraries", 0);
	rc = modules_load(&p->t, &p->maps, &p->mods, d);
	if (rc)
		return rc;
	p->layout = layout;
	return allocators_find(p, &p->allocs, d);
}

bool process_changed(const struct process *p)
{
	uint64_t layout;
	struct maps now;

	/* an execve(2) in the middle may wait for us to have seen a thread's end */
	(void)wait_deaths();
	if (!p->layout || maps_read(&p->t, &now, NULL))
		return false;
	layout = layout_of(&now);
	maps_free(&now);
	return layout != p->layout;
}

static int read_maps(struct process *p, struct diag *d)
{
	struct maps now;
	int rc = maps_read(&p->t, &now, d);

	if (rc)
		return rc;
	maps_free(&p->maps);
	p->maps = now;
	return 0;
}

/*
 * Maps and modules need the right to read the process; without it `check` still has to name the
 * cause, so that is no error here.
 */
static int read_layout(struct process *p, struct diag *d)
{
	int rc = read_maps(p, d);

	if (!rc)
		rc = read_modules(p, d);
	if (!rc || rc == -ESRCH || rc == -ENOMEM)
		return rc;
	forget_modules(p);
	if (p->pre.injectable)
		p->pre.cause = *d;
	p->pre.injectable = false;
	diag_clear(d);
	return 0;
}

/* What a new session would be refused for; one that is open has what it needs. */
static void foresee(struct process *p)
{
	struct diag d = { 0 };

	if (!p->pre.injectable || (p->session && session_is_proxy(p->session)))
		return;
	if (session_foresee(&p->t, &p->mods, &p->maps, &p->opts, &d)) {
		p->pre.injectable = false;
		p->pre.cause = d;
	}
}

/* Has the program loaded or unloaded something, or become another one, since it was looked at? */
static bool is_moving(const struct process *p)
{
	struct maps now;
	bool moved;
	int rc = maps_read(&p->t, &now, NULL);

	/* alive, and without memory: between two programs */
	if (rc)
		return rc == -ESRCH && target_alive(&p->t);
	moved = layout_of(&now) != layout_of(&p->maps);
	maps_free(&now);
	return moved;
}

static int look(struct process *p, struct diag *d)
{
	int rc = preflight_run(&p->t, &p->pre);

	if (rc == -ESRCH)
		return target_gone(&p->t, d);
	if (rc)
		return diag_internal(d, rc, "preflight");
	rc = read_layout(p, d);
	if (!rc && (p->mods.n || p->mods.linking)) {
		preflight_modules(&p->pre, &p->mods);
		foresee(p);
	}
	if ((rc || !p->pre.injectable) && target_ending(&p->t, false))
		return target_gone(&p->t, d);
	return rc;
}

static bool is_ready(const struct process *p)
{
	for (size_t i = 0; i < p->allocs.n; i++)
		if (p->allocs.v[i].in_use)
			return p->pre.injectable;
	return false;
}

/* It has no C library yet, and will have one. */
static bool is_starting(const struct diag *cause)
{
	return strcmp(cause->code, cause_row(CAUSE_STARTING)->code) == 0;
}

/*
 * Its only thread is in the dynamic linker: at the program's start, or in a dlopen(3) or dlclose(3)
 * of it. What is linked then is not what will be when a safe point has been found.
 */
static bool is_linking(const struct process *p)
{
	return p->mods.linking && p->pre.status.threads == 1;
}

/* Causes that may be over in a moment; without one the allocator is missing. */
static bool may_pass(const struct process *p, const struct diag *cause)
{
	return cause->exit == HM_OK || is_starting(cause) || cause->exit == HM_UNSUPPORTED ||
	       cause->exit == HM_NOT_PERMITTED || (cause->exit == HM_GONE && target_alive(&p->t));
}

/* Nobody wants to wait for its start any longer. */
static bool is_late(const struct process *p, uint64_t deadline)
{
	return clock_now() >= deadline || (p->opts.cancel && *p->opts.cancel);
}

/*
 * In and behind execve(2) a program has no memory, then no libc, and its mappings are of two
 * programs while we read them; the kernel refuses access for a moment. So a refusal must be found
 * twice in a program that stands still. A start is waited for as long as for a safe point, and
 * however often it is seen: on a busy machine it gets no CPU for many of these looks.
 */
int process_refresh(struct process *p, struct diag *d)
{
	const uint64_t deadline = clock_now() + p->opts.deadline_ns;
	char before[sizeof(d->code)] = "?";

	for (int i = 0;;) {
		int rc = look(p, d);
		struct diag *cause = rc ? d : &p->pre.cause;
		bool linking = rc == 0 && is_linking(p), moves;

		if ((rc == 0 && is_ready(p) && !linking) || !may_pass(p, cause) ||
		    (is_starting(cause) && is_late(p, deadline)))
			return rc;
		clock_sleep(STARTING_NAP);
		moves = is_moving(p);
		if (target_ending(&p->t, false))
			return target_gone(&p->t, d);
		if (is_starting(cause))
			continue;
		if (!moves && !linking && cause->exit != HM_GONE &&
		    strcmp(before, cause->code) == 0)
			return rc;
		if (i++ == STARTING_LOOKS)
			return linking ? rc : target_changed(&p->t, TARGET_CHANGES_ALWAYS, d);
		snprintf(before, sizeof(before), "%s", cause->code);
		if (rc)
			diag_clear(d);
	}
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
	/* the first call of all may be what a filter kills for */
	rc = ourselves_check(d);
	if (rc == 0)
		rc = target_open(pid, &p->t, d);
	if (rc)
		goto out_free;
	rc = process_refresh(p, d);
	if (rc)
		goto out_close;
	*out = p;
	return 0;
out_close:
	modules_free(&p->mods);
	maps_free(&p->maps);
	target_close(&p->t);
out_free:
	free(p);
	return rc;
}

static void held_add(struct held *to, const struct held *h)
{
	to->threads += h->threads;
	to->total_ns += h->total_ns;
	to->anew += h->anew;
	if (h->anew) {
		to->anew_tid = h->anew_tid;
		to->anew_call = h->anew_call;
	}
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

int process_end_session(struct process *p, struct diag *d, char *warn, size_t warn_size)
{
	struct held total;
	int rc;

	if (warn && warn_size)
		warn[0] = '\0';
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

	(void)process_end_session(p, &ignored, NULL, 0);
}

int process_close(struct process *p, struct diag *d, char *warn, size_t warn_size)
{
	int rc = process_end_session(p, d, warn, warn_size);

	stray_settle(STRAY_LIMIT);
	glibc_picture_drop(p);
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

static int check_injectable(const struct process *p, struct diag *d)
{
	if (p->mods.n && p->pre.attachable && p->pre.injectable)
		return 0;
	*d = p->pre.cause;
	if (!d->exit)
		return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "no-modules",
				 "`check` says what could be read",
				 "no program or library of process %d could be read", p->t.pid);
	return refusal_errno(d);
}

int process_rehearse(struct process *p, struct diag *d)
{
	struct held held;
	int rc;

	if (p->session)
		return 0;
	rc = check_injectable(p, d);
	if (rc)
		return rc;
	rc = session_rehearse(&p->t, &p->mods, &p->opts, &held, d);
	held_add(&p->held, &held);
	return rc;
}

int process_session(struct process *p, struct diag *d)
{
	int rc;

	if (p->session)
		return 0;
	rc = check_injectable(p, d);
	if (!rc)
		rc = guard_run(p, d);
	if (rc)
		return rc;
	rc = session_open(&p->t, &p->mods, &p->opts, &p->session, d);
	if (rc)
		p->session = NULL;
	if (rc == -EPERM && !preflight_may_attach(&p->t))
		preflight_explain_eperm(&p->t, d);
	return rc;
}

int process_ready(struct process *p, struct diag *d)
{
	return p->session ? guard_run(p, d) : process_session(p, d);
}

const struct allocator *process_allocator(const struct process *p, const char *name)
{
	for (size_t i = 0; p->only[0] && i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (allocator_asked(p, a) && strcmp(a->ops->name, name) == 0)
			return a;
	}
	return allocators_get(&p->allocs, name);
}

static int after_calls(struct process *p, int rc, const struct diag *d)
{
	if (rc < 0 && (d->exit == HM_GONE || d->exit == HM_RUNNING || d->exit == HM_DIED))
		process_drop_session(p);
	return rc;
}

int process_calls(struct process *p, struct call *v, size_t n, struct diag *d)
{
	int rc = process_session(p, d);

	return rc ? rc : after_calls(p, session_call(p->session, v, n, d), d);
}

int process_calls_file(struct process *p, struct call *v, size_t n, const char *path, int *fd,
		       struct diag *d)
{
	int rc = process_session(p, d);

	*fd = -1;
	return rc ? rc : after_calls(p, session_call_file(p->session, v, n, path, fd, d), d);
}

int process_call(struct process *p, uint64_t fn, const uint64_t arg[6], uint64_t *ret, uint64_t *ns,
		 struct diag *d)
{
	struct call c = { .fn = fn };
	int rc;

	memcpy(c.arg, arg, 6 * sizeof(arg[0]));
	rc = process_calls(p, &c, 1, d);
	if (rc)
		return rc;
	if (ret)
		*ret = c.ret;
	if (ns)
		*ns = c.ns;
	return 0;
}
