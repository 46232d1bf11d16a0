// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../agent/guard.h"
#include "../agent/allocator_missing.h"
#include "../agent/process.h"
#include "../agent/size.h"
#include "../inject/cause.h"
#include "../inject/preview.h"
#include "allocator_text.h"
#include "context.h"

#define CANDIDATES_TEXT 3
#define CANDIDATES_JSON 20

/* What `check` knows. */
struct findings {
	const char *comm;
	const struct preflight *pre;
	const struct process *p;
	bool layout; /* maps and modules could be read */
	struct threads threads;
	const struct thread *best; /* NULL: none is usable */
	const char *libc;
	char libc_version[32];
	struct leftovers left;
	bool held; /* a thread is held to find out more */
	struct guard heap;
	pid_t own; /* our own thread in the target: not one of its threads; 0: none */
};

static const char *seccomp_name(int mode)
{
	return mode == 0 ? "off" : mode == 1 ? "strict" : mode == 2 ? "filter" : "unknown";
}

static void find_libc(struct findings *f)
{
	const struct module *libc = modules_glibc(&f->p->mods);

	f->libc = libc ? "glibc" : modules_musl(&f->p->mods) ? "musl" : "none";
	if (libc && modules_glibc_version(libc, f->libc_version, sizeof(f->libc_version)))
		f->libc_version[0] = '\0';
}

/* Everything but the threads is optional: what cannot be read is left out. */
static int find_all(struct findings *f, struct process *p, struct diag *d)
{
	const struct target *t = &p->t;
	int err = threads_read(t, &f->threads, d);

	if (!err && f->layout && f->pre->attachable)
		err = guard_look(p, true, &f->heap, d);
	if (err)
		return err;
	if (f->layout) {
		find_libc(f);
		if (threads_rank(t, &f->p->maps, &f->p->mods, &f->threads))
			return diag_internal(d, -ENOMEM, "ranking threads");
		if (f->pre->injectable) {
			err = preview_threads(t, &f->p->maps, &f->p->mods, &f->threads);
			if (err)
				return diag_internal(d, err, "looking at threads");
		}
		if (session_leftovers(t, &f->p->maps, &f->left))
			memset(&f->left, 0, sizeof(f->left));
	}
	if (f->layout && f->threads.n && f->threads.v[0].usable)
		f->best = &f->threads.v[0];
	return 0;
}

static size_t count_threads(const struct findings *f)
{
	return f->threads.n - (f->own && f->threads.n ? 1 : 0);
}

/* ---- text */

static void fact(const struct context *c, const char *name, const char *value)
{
	fprintf(c->sink->out, "%-11s %s\n", name, value);
}

/* How far the heap was looked at; damage is the verdict. */
static const char *heap_text(const struct guard *g, char *line, size_t size)
{
	const struct glibc_check *k = &g->check;
	char time[SIZE_TEXT];

	if (g->state == GUARD_UNKNOWN)
		snprintf(line, size,
			 "not found in glibc's data: nobody can say whether it is whole");
	else if (k->fault.kind)
		snprintf(line, size, "damaged (%s) in arena %u", glibc_fault_name(k->fault.kind),
			 k->fault.arena);
	else
		snprintf(line, size, "%s: %llu chunks in %u arena%s looked at in %s%s",
			 k->complete ? "whole" : "nothing wrong so far",
			 (unsigned long long)k->chunks, k->arenas, k->arenas == 1 ? "" : "s",
			 time_format(g->ns, time),
			 k->limited   ? ", more would take too long"
			 : k->swapped ? ", others are swapped out"
			 : k->moving  ? ", others change all the time"
				      : "");
	return line;
}

static void print_heap(const struct context *c, const struct guard *g)
{
	char line[256];

	if (g->state != GUARD_NONE)
		fact(c, "heap", heap_text(g, line, sizeof(line)));
}

static void print_process(const struct context *c, const struct findings *f)
{
	const struct proc_status *s = &f->pre->status;
	char line[256];

	snprintf(line, sizeof(line), "%s (pid %d%s), %s, uid %d", f->comm, (int)c->pid,
		 f->pre->other_pidns ? ", another pid namespace" : "", f->pre->arch,
		 (int)s->uid[1]);
	fact(c, "process", line);
	snprintf(line, sizeof(line), "pid %s, mount %s, user %s",
		 f->pre->other_pidns ? "other" : "ours", f->pre->other_mntns ? "other" : "ours",
		 f->pre->other_userns ? "other" : "ours");
	fact(c, "namespaces", line);
	snprintf(line, sizeof(line), "%s%s", seccomp_name(s->seccomp),
		 s->no_new_privs ? ", no_new_privs" : "");
	fact(c, "seccomp", line);
	snprintf(line, sizeof(line), "%zu", count_threads(f));
	fact(c, "threads", line);
}

static void print_candidates(const struct context *c, const struct findings *f)
{
	size_t n = count_threads(f), shown = n < CANDIDATES_TEXT ? n : CANDIDATES_TEXT;
	char line[256];

	for (size_t i = 0; f->layout && i < shown; i++) {
		const struct thread *t = &f->threads.v[i];

		snprintf(line, sizeof(line), "%d %s: %s, %s", (int)t->tid, t->name,
			 t->usable ? "usable" : "not usable", t->reason ? t->reason : "running");
		fact(c, "candidate", line);
	}
	if (f->layout && shown < n)
		fprintf(c->sink->out, "%-11s and %zu more threads (`threads`)\n", "", n - shown);
}

static void print_verdict(const struct context *c, const struct findings *f, const struct diag *d)
{
	const struct sink *s = c->sink;
	char line[64];

	if (!d) {
		fprintf(s->out, "%sok%s: calls can be made on thread %d (%s)\n",
			sink_paint(s, PAINT_GOOD), sink_plain(s), (int)f->best->tid,
			f->best->reason ? f->best->reason : "running");
		return;
	}
	fprintf(s->out, "%sno%s: %s\n", sink_paint(s, PAINT_BAD), sink_plain(s), d->text);
	if (d->hint[0])
		fact(c, "next", d->hint);
	snprintf(line, sizeof(line), "%s (exit %d)", d->code, (int)d->exit);
	fact(c, "cause", line);
}

/* What --hold has found: the hold itself is the answer. */
static void print_hold(const struct context *c, const struct findings *f)
{
	char line[128], time[SIZE_TEXT];
	struct held h;

	process_held(f->p, &h);
	if (f->p->session)
		snprintf(line, sizeof(line), "not again: calls were made in this session");
	else
		snprintf(line, sizeof(line),
			 "one thread for %s: memory can be had, no seccomp filter is in the way",
			 time_format(h.last_ns, time));
	fact(c, "held", line);
}

static void print_all(const struct context *c, const struct findings *f, const struct diag *cause)
{
	char line[128];

	print_verdict(c, f, cause);
	if (f->layout) {
		allocators_print(c, &f->p->allocs);
		snprintf(line, sizeof(line), "%s%s%s", f->libc, f->libc_version[0] ? " " : "",
			 f->libc_version);
		fact(c, "libc", line);
		print_heap(c, &f->heap);
	}
	print_process(c, f);
	if (f->held && !cause)
		print_hold(c, f);
	print_candidates(c, f);
}

/* ---- JSON */

static json_t *candidate_json(struct reply *r, const struct thread *t)
{
	const struct syscall_fact *call = t->in_syscall ? syscall_fact(t->nr) : NULL;
	char state[2] = { t->state, '\0' };
	json_t *o = json_object();

	reply_member(r, o, "tid", json_integer(t->tid));
	reply_member(r, o, "state", json_text(state, 1));
	reply_member(r, o, "syscall", call ? json_string(call->name) : json_null());
	reply_member(r, o, "usable", json_boolean(t->usable));
	reply_member(r, o, "begins_anew", json_boolean(t->anew));
	reply_member(r, o, "reason", t->reason ? json_string(t->reason) : json_null());
	return o;
}

static json_t *libc_json(struct reply *r, const struct findings *f)
{
	json_t *o = json_object();

	reply_member(r, o, "name", f->libc ? json_string(f->libc) : json_null());
	reply_member(r, o, "version",
		     f->libc_version[0] ? json_string(f->libc_version) : json_null());
	return o;
}

/* null where glibc's malloc is not used, or its heap was not found. */
static json_t *heap_json(struct reply *r, const struct guard *g)
{
	const struct glibc_check *k = &g->check;
	char address[32];
	json_t *o;

	if (g->state != GUARD_LOOKED)
		return json_null();
	o = json_object();
	reply_member(r, o, "damaged", json_boolean(k->fault.kind != FAULT_NONE));
	reply_member(r, o, "complete", json_boolean(k->complete));
	reply_member(r, o, "arenas", json_integer(k->arenas));
	reply_member(r, o, "chunks", json_u64(k->chunks));
	reply_member(r, o, "duration_us", json_u64(g->ns / 1000));
	if (!k->fault.kind)
		return o;
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)k->fault.at);
	reply_member(r, o, "kind", json_string(glibc_fault_name(k->fault.kind)));
	reply_member(r, o, "arena", json_integer(k->fault.arena));
	reply_member(r, o, "address", json_string(address));
	return o;
}

static void reply_all(struct reply *r, const struct findings *f, const struct diag *cause)
{
	const struct proc_status *s = &f->pre->status;
	pid_t inner = s->nspid_len ? s->nspid[s->nspid_len - 1] : s->pid;
	json_t *list = json_array();

	for (size_t i = 0; f->layout && i < f->threads.n && i < CANDIDATES_JSON; i++)
		if (json_array_append_new(list, candidate_json(r, &f->threads.v[i])))
			r->failed = true;
	reply_set(r, "attachable", json_boolean(f->pre->attachable));
	reply_set(r, "injectable", json_boolean(!cause));
	reply_set(r, "cause", cause ? json_text(cause->text, strlen(cause->text)) : json_null());
	reply_set(r, "allocators", allocators_json(r, &f->p->allocs));
	reply_set(r, "more_allocators", json_u64(f->p->allocs.more));
	reply_set(r, "libc", libc_json(r, f));
	reply_set(r, "heap", heap_json(r, &f->heap));
	reply_set(r, "threads", json_u64(count_threads(f)));
	reply_set(r, "nspid", json_integer(inner));
	reply_set(r, "arch", json_string(f->pre->arch));
	reply_set(r, "seccomp", json_string(seccomp_name(s->seccomp)));
	reply_set(r, "candidates", list);
}

/* ---- both */

static void warn_leftovers(struct context *c, struct reply *r, const struct findings *f)
{
	const struct leftovers *left = &f->left;

	if (left->busy && left->busy_tid == f->own && f->own)
		return;
	if (left->busy && left->busy_tid)
		reply_warn(c, r, "busy",
			   "another heapmedic's thread %d runs in the target, or was left there",
			   (int)left->busy_tid);
	else if (left->busy)
		reply_warn(c, r, "busy",
			   "a call of another heapmedic runs in the target, or was left there");
	else if (left->regions)
		reply_warn(c, r, "leftovers",
			   "%u region%s of a killed run %s in the target; the next session "
			   "removes what is left",
			   left->regions, left->regions == 1 ? "" : "s",
			   left->regions == 1 ? "is" : "are");
}

static void warn_filter(struct context *c, struct reply *r, const struct findings *f)
{
	if (f->pre->status.seccomp && !f->held)
		reply_warn(c, r, "seccomp-unasked",
			   "its seccomp filter can only be asked with a thread held: `check "
			   "--hold` does, and so does each call before it touches anything");
}

/* Fills d where something is in use, and nothing of it can be called. */
static bool find_missing(struct process *p, struct diag *d)
{
	const struct allocator *missing = NULL;
	struct trim_part part = { 0 };

	for (size_t i = 0; i < p->allocs.n; i++) {
		const struct allocator *a = &p->allocs.v[i];

		if (allocator_callable(a))
			return false;
		if (a->in_use && !missing)
			missing = a;
	}
	if (missing && missing->reach)
		return allocator_unreachable(missing, d);
	/* one that cannot be called says why */
	return missing && !missing->ops->callable &&
	       missing->ops->trim(p, missing, 0, &part, d) < 0;
}

/* The same as a trim would meet, in the same order. */
static int find_cause(const struct findings *f, struct process *p, struct diag *d)
{
	if (!f->pre->attachable || !f->pre->injectable) {
		*d = f->pre->cause;
		return -EPERM;
	}
	if (f->heap.check.fault.kind)
		return guard_refuse(f->p, &f->heap.check.fault, d);
	if (f->heap.stuck_at)
		return guard_refuse_stuck(f->p, &f->heap, d);
	if (f->layout && find_missing(p, d))
		return -ENOTSUP;
	if (!f->best)
		return cause_fail(d, -EBUSY, CAUSE_NO_CANDIDATE,
				  "none of the %zu threads can be borrowed now", count_threads(f));
	return f->held ? process_rehearse(p, d) : 0;
}

/* Where both go to one terminal the answer is enough. */
static bool told_already(const struct context *c)
{
	return !c->set.json && sink_is_terminal(c->sink) && isatty(fileno(c->sink->err));
}

/* d is filled where calls cannot be made: the exit code is the one a trim would have. */
static int report(struct context *c, struct reply *r, struct findings *f, struct diag *d)
{
	int err = find_cause(f, c->process, d);

	if (c->set.json)
		reply_all(r, f, err ? d : NULL);
	else
		print_all(c, f, err ? d : NULL);
	warn_leftovers(c, r, f);
	if (f->layout)
		allocators_warn(c, r, &f->p->allocs);
	if (f->best && f->best->anew)
		reply_warn(c, r, "wait-begins-anew",
			   "the best thread, %d, waits for at most the time that its socket is set "
			   "to, and would begin to wait anew",
			   (int)f->best->tid);
	if (!err)
		warn_filter(c, r, f);
	r->silent = err && told_already(c);
	return err;
}

unsigned effect_check(const struct args *a)
{
	return a->opt[CHECK_HOLD] ? CMD_PASSIVE | CMD_HOLDS : CMD_PASSIVE;
}

int cmd_check(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct process *p = c->process;
	struct findings f = {
		.p = p,
		.pre = &p->pre,
		.comm = p->t.comm,
		.layout = p->mods.n > 0,
		.own = p->session ? session_thread(p->session) : 0,
		.held = a->opt[CHECK_HOLD] != NULL,
	};
	int err = find_all(&f, p, d);

	if (!err)
		err = report(c, r, &f, d);
	threads_free(&f.threads);
	return err;
}
