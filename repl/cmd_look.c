// SPDX-License-Identifier: GPL-3.0-or-later
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../inject/backtrace.h"
#include "../inject/phase.h"
#include "context.h"
#include "signals.h"
#include "view.h"

#define MAX_FRAMES 256

/* ---- threads */

static const char *call_text(const struct thread *t, char *buf, size_t size)
{
	const struct syscall_fact *fact = t->in_syscall ? syscall_fact(t->nr) : NULL;

	if (!t->in_syscall)
		snprintf(buf, size, "-");
	else if (fact)
		snprintf(buf, size, "%s", fact->name);
	else
		snprintf(buf, size, "syscall %ld", t->nr);
	return buf;
}

static const char *arena_text(const struct glibc_thread *g, char *buf, size_t size)
{
	if (g->arena >= 0)
		snprintf(buf, size, "%ld", g->arena);
	else
		snprintf(buf, size, "%s", g->slot ? "none" : "-");
	return buf;
}

static void print_thread(struct table *table, const struct thread_row *row, bool bytes)
{
	const struct glibc_thread *g = &row->g;
	const struct thread *t = &row->t;
	char tid[16], call[32], arena[24], cache[SIZE_TEXT], state[2] = { t->state, '\0' };

	snprintf(tid, sizeof(tid), "%d", (int)t->tid);
	table_row(table,
		  (const char *const[]){ tid, t->name, state, call_text(t, call, sizeof(call)),
					 arena_text(g, arena, sizeof(arena)),
					 g->cache ? text_size(cache, g->bytes, bytes) : "-",
					 t->usable ? "yes" : "no",
					 (t->usable && !t->anew) || !t->reason ? "" : t->reason });
}

static int print_threads(const struct context *c, const struct thread_rows *rows)
{
	static const struct column columns[] = {
		{ "TID", true },   { "NAME", false },  { "STATE", false },  { "CALL", false },
		{ "ARENA", true }, { "TCACHE", true }, { "USABLE", false }, { "WHY", false },
	};
	struct table *t = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	int err;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++)
		print_thread(t, &rows->v[i], c->set.bytes);
	err = table_print(t, c->sink);
	table_free(t);
	return err;
}

static json_t *thread_json(struct reply *r, const struct thread_row *row)
{
	const struct glibc_thread *g = &row->g;
	const struct thread *t = &row->t;
	char call[32], state[2] = { t->state, '\0' };
	json_t *o = json_object();

	reply_member(r, o, "tid", json_integer(t->tid));
	reply_member(r, o, "name", json_text(t->name, strlen(t->name)));
	reply_member(r, o, "state", json_text(state, 1));
	reply_member(r, o, "syscall",
		     t->in_syscall ? json_string(call_text(t, call, sizeof(call))) : json_null());
	reply_member(r, o, "has_arena", json_boolean(t->has_arena || g->arena >= 0));
	reply_member(r, o, "arena", g->arena >= 0 ? json_integer(g->arena) : json_null());
	reply_member(r, o, "tcache_bytes", g->cache ? json_u64(g->bytes) : json_null());
	reply_member(r, o, "usable", json_boolean(t->usable));
	reply_member(r, o, "begins_anew", json_boolean(t->anew));
	reply_member(r, o, "reason", t->reason ? json_string(t->reason) : json_null());
	return o;
}

int cmd_threads(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct thread_rows *rows;
	struct thread_rows own;
	int err = view_threads(c, &own, &rows, d);
	json_t *list;

	(void)a;
	if (err)
		return err;
	if (c->set.json) {
		list = json_array();
		for (size_t i = 0; i < rows->n; i++)
			if (json_array_append_new(list, thread_json(r, &rows->v[i])))
				r->failed = true;
		reply_set(r, "threads", list);
	} else if (print_threads(c, rows)) {
		err = diag_internal(d, -ENOMEM, "the table");
	}
	if (rows == &own)
		thread_rows_free(&own);
	return err;
}

/* ---- bt */

struct bt {
	struct context *c;
	struct reply *r;
	struct code_map *code; /* NULL: frames are not marked */
	json_t *list;	       /* with --json */
	struct frame frame[MAX_FRAMES];
	size_t frames;
	bool complete;
	struct held held;
};

struct place {
	char module[128], symbol[128];
	uint64_t offset; /* behind the symbol, or behind the module's start without one */
	bool alloc;
};

/*
 * A return address may be the first byte behind a function that never returns: an outer frame is
 * looked up by the byte before it, except where a signal interrupted it.
 */
static void describe(const struct bt *b, size_t i, struct place *out)
{
	const struct frame *f = &b->frame[i];
	bool returns = i > 0 && !b->frame[i - 1].signal;
	uint64_t pc = returns && f->pc ? f->pc - 1 : f->pc;
	const struct module *mod = modules_at(&b->c->process->mods, pc);
	const char *base;
	char name[128];

	memset(out, 0, sizeof(*out));
	out->alloc = b->code && (code_map_kind(b->code, pc) & CODE_ALLOC);
	if (!mod)
		return;
	base = strrchr(mod->path, '/');
	base = base ? base + 1 : mod->path;
	escape_copy(out->module, sizeof(out->module), base, strlen(base));
	module_describe(mod, pc, name, sizeof(name), &out->offset);
	escape_copy(out->symbol, sizeof(out->symbol), name, strlen(name));
	if (!name[0])
		out->offset = pc - mod->bias;
	out->offset += f->pc - pc;
}

static void print_frame(const struct bt *b, size_t i)
{
	FILE *out = b->c->sink->out;
	struct place at;

	describe(b, i, &at);
	fprintf(out, "  %-3zu %s 0x%012" PRIx64 " ", i, at.alloc ? "*" : " ", b->frame[i].pc);
	if (!at.module[0])
		fputs("?", out);
	else if (at.symbol[0])
		fprintf(out, "%s+0x%" PRIx64 " (%s)", at.symbol, at.offset, at.module);
	else
		fprintf(out, "%s+0x%" PRIx64, at.module, at.offset);
	fputs(b->frame[i].signal ? " <signal>\n" : "\n", out);
}

static json_t *frame_json(const struct bt *b, size_t i)
{
	struct place at;
	json_t *o = json_object();
	char pc[24];

	describe(b, i, &at);
	snprintf(pc, sizeof(pc), "0x%" PRIx64, b->frame[i].pc);
	reply_member(b->r, o, "pc", json_string(pc));
	reply_member(b->r, o, "module", at.module[0] ? json_string(at.module) : json_null());
	reply_member(b->r, o, "symbol", at.symbol[0] ? json_string(at.symbol) : json_null());
	reply_member(b->r, o, "offset", at.module[0] ? json_u64(at.offset) : json_null());
	reply_member(b->r, o, "allocator", json_boolean(at.alloc));
	reply_member(b->r, o, "signal", json_boolean(b->frame[i].signal));
	return o;
}

static void answer_thread(struct bt *b, const struct thread *t)
{
	char time[SIZE_TEXT];
	json_t *o, *frames;

	if (!b->c->set.json) {
		fprintf(b->c->sink->out, "thread %d %s, held %s%s\n", (int)t->tid, t->name,
			time_format(b->held.last_ns, time),
			b->complete ? "" : ", the outermost frame was not reached");
		for (size_t i = 0; i < b->frames; i++)
			print_frame(b, i);
		return;
	}
	o = json_object();
	frames = json_array();
	for (size_t i = 0; i < b->frames; i++)
		if (json_array_append_new(frames, frame_json(b, i)))
			b->r->failed = true;
	reply_member(b->r, o, "tid", json_integer(t->tid));
	reply_member(b->r, o, "name", json_text(t->name, strlen(t->name)));
	reply_member(b->r, o, "held_us", json_u64(b->held.last_ns / 1000));
	reply_member(b->r, o, "complete", json_boolean(b->complete));
	reply_member(b->r, o, "frames", frames);
	if (json_array_append_new(b->list, o))
		b->r->failed = true;
}

static int one_thread(struct bt *b, const struct thread *t, struct diag *d)
{
	const struct process *p = b->c->process;
	int err;

	b->frames = 0;
	err = backtrace_thread(&p->t, &p->mods, t->tid, b->frame, MAX_FRAMES, &b->frames,
			       &b->complete, &b->held, d);
	if (b->held.anew)
		reply_warn(b->c, b->r, "wait-begins-anew",
			   "thread %d was held in a wait (%s) whose timeout has begun anew",
			   (int)b->held.anew_tid, b->held.anew_call);
	if (!err)
		answer_thread(b, t);
	return err;
}

/* Of all threads one that ends meanwhile, or is stuck in the kernel, is no reason to stop. */
static bool may_be_left_out(struct bt *b, const struct diag *d, int err)
{
	if (err == -ETIMEDOUT)
		reply_warn(b->c, b->r, d->code, "%s", d->text);
	return err == -ESRCH || err == -ETIMEDOUT;
}

/* tid 0: all. */
static int some_threads(struct bt *b, const struct threads *list, pid_t tid, struct diag *d)
{
	size_t done = 0;

	phase_begin("backtraces", list->n);
	for (size_t i = 0; i < list->n; i++) {
		int err;

		if (tid && list->v[i].tid != tid)
			continue;
		phase_step(i);
		if (*signals_cancel())
			return diag_fail(d, -ECANCELED, HM_CALL_FAILED, "interrupted",
					 "the threads before it stand above",
					 "interrupted before thread %d", (int)list->v[i].tid);
		err = one_thread(b, &list->v[i], d);
		if (err && (tid || !may_be_left_out(b, d, err)))
			return err;
		done += err != -ESRCH;
	}
	if (done)
		return 0;
	if (tid)
		return diag_fail(d, -ESRCH, HM_GONE, "no-such-thread", "`threads` lists them",
				 "%s has no thread %d", b->c->comm, (int)tid);
	return target_gone(&b->c->process->t, d);
}

static int parse_tid(const struct args *a, pid_t *out, struct diag *d)
{
	*out = 0;
	if (a->argc == 0 || strcmp(a->argv[0], "all") == 0 || pid_parse(a->argv[0], out))
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "`threads` lists them",
			 "'%.60s' is no thread id", a->argv[0]);
}

int check_bt(const struct args *a, struct diag *d)
{
	pid_t tid;

	return parse_tid(a, &tid, d);
}

int cmd_bt(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct bt b = { .c = c, .r = r };
	struct threads list;
	pid_t tid;
	int err = parse_tid(a, &tid, d);

	if (err)
		return err;
	err = threads_read(&c->process->t, &list, d);
	if (err)
		return err;
	if (code_map_build(&c->process->mods, &b.code)) {
		b.code = NULL;
		reply_warn(c, r, "no-code-map", "frames inside an allocator cannot be marked");
	}
	if (c->set.json) {
		reply_set(r, "threads", json_array());
		b.list = json_object_get(r->result, "threads");
	}
	err = some_threads(&b, &list, tid, d);
	if (b.code)
		code_map_free(b.code);
	threads_free(&list);
	return err;
}
