// SPDX-License-Identifier: GPL-3.0-or-later
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../agent/process.h"
#include "../inject/clock.h"
#include "confirm.h"
#include "context.h"
#include "fold.h"
#include "help.h"
#include "last_look.h"
#include "pager.h"
#include "progress.h"
#include "signals.h"

/* One run of one command. */
struct run {
	struct context *c;
	const struct command *row; /* NULL: unknown */
	struct args args;
	struct reply reply;
	struct diag d;
	unsigned wanted; /* what these words do */
	unsigned effect; /* what they do with these settings */
	/* of the record before the change, for the one after it: a guard may have gone on to
	 * another process meanwhile. Its descriptors are not its own. */
	struct target audited;
	bool helped; /* --help behind the command: nothing else is done */
};

void reply_member(struct reply *r, json_t *object, const char *key, json_t *v)
{
	if (json_object_set_new(object, key, v))
		r->failed = true;
}

void reply_set(struct reply *r, const char *key, json_t *v)
{
	if (!r->result)
		r->result = json_object();
	reply_member(r, r->result, key, v);
}

/* What was said before the question is not said again behind it. */
static bool is_new(const struct context *c, struct reply *r, const char *text)
{
	const json_t *said;
	size_t i;

	json_array_foreach(r->said, i, said)
	{
		if (strcmp(json_string_value(said), text) == 0)
			return false;
	}
	if (!c->asks)
		return true;
	if (!r->said)
		r->said = json_array();
	/* where there is no memory it is said twice */
	(void)json_array_append_new(r->said, json_text(text, strlen(text)));
	return true;
}

void reply_warn(struct context *c, struct reply *r, const char *code, const char *fmt, ...)
{
	char text[512];
	json_t *o;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!c->set.json) {
		if (!is_new(c, r, text))
			return;
		context_note(c, "%s%s%s", sink_paint_err(c->sink, PAINT_WARN), text,
			     sink_plain_err(c->sink));
		return;
	}
	if (!r->warnings)
		r->warnings = json_array();
	o = json_object();
	reply_member(r, o, "code", json_string(code));
	reply_member(r, o, "text", json_text(text, strlen(text)));
	if (json_array_append_new(r->warnings, o))
		r->failed = true;
}

static int refuse(struct run *r, const char *code, const char *option, const char *what)
{
	char hint[128];

	snprintf(hint, sizeof(hint), "run it without %s%s", option,
		 r->effect & CMD_WRITES ? ", or add --dry-run to see what it would do" : "");
	return diag_fail(&r->d, -EPERM, HM_NOT_PERMITTED, code, hint, "%s %s, which %s refuses",
			 r->row->name, what, option);
}

static int check_permitted(struct run *r)
{
	const struct settings *s = &r->c->set;

	if (s->passive && (r->effect & CMD_WRITES))
		return refuse(r, "passive", "--passive", "changes the target");
	if (s->passive && (r->effect & CMD_CALLS))
		return refuse(r, "passive", "--passive", "calls into the target");
	if (s->passive && (r->effect & CMD_HOLDS))
		return refuse(r, "passive", "--passive", "holds a thread for a moment");
	if (s->read_only && (r->effect & CMD_WRITES))
		return refuse(r, "read-only", "--read-only", "changes the target");
	return 0;
}

static void find_effect(struct run *r)
{
	r->wanted = r->row->effect ? r->row->effect(&r->args) : r->row->flags;
	r->effect = r->wanted;
	/* What also looks from outside does only that where calls are not wanted. */
	if (r->c->set.passive && (r->wanted & CMD_PASSIVE) && !(r->wanted & CMD_HOLDS))
		r->effect = r->wanted & ~(unsigned)CMD_CALLS;
	/* A dry run of a change looks, and neither calls nor changes. */
	if (r->c->set.dry_run && (r->wanted & CMD_WRITES))
		r->effect =
			(r->wanted & ~(unsigned)(CMD_WRITES | CMD_CALLS | CMD_HOLDS)) | CMD_PASSIVE;
}

/* What preflight found comes before what the command would find: also a dry run is refused for what
 * refuses the real one. */
static int check_possible(struct run *r)
{
	const struct preflight *pre = &r->c->process->pre;

	/* what looks from outside as well finds the cause, and more, itself */
	if (r->wanted & CMD_PASSIVE)
		return 0;
	if (((r->wanted & CMD_CALLS) && !pre->injectable) ||
	    ((r->wanted & CMD_HOLDS) && !pre->attachable)) {
		r->d = pre->cause;
		return -EPERM;
	}
	return 0;
}

int command_fits(const struct context *c, const struct command *row, const struct args *a,
		 struct diag *d)
{
	unsigned flags = row->effect ? row->effect(a) : row->flags;

	if (flags & CMD_NO_PROCESS)
		return 0;
	if (c->ended && !(c->loaded && (flags & CMD_LOADED)))
		return context_ended(c, d);
	if (!c->loaded || (flags & CMD_LOADED))
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "needs-process",
			 "heapmedic -p PID with the same command; a snapshot has diagnose, maps, "
			 "arenas, threads, facts and diff",
			 "%s needs the process itself, and this is a snapshot of it (pid %d)",
			 row->name, (int)c->pid);
}

static int prepare(struct run *r, int argc, char *const *argv)
{
	int err;

	r->row = command_find(argv[0]);
	if (!r->row)
		return command_unknown(argv[0], &r->d);
	r->c->set = context_settings(r->c);
	err = args_parse(r->row, argc, argv, &r->args, &r->c->set, &r->d);
	if (err)
		return err;
	if (r->c->set.help) {
		r->helped = true;
		help_command(r->c->set.json ? r->c->sink->err : r->c->sink->out, r->row,
			     r->c->interactive);
		return 0;
	}
	err = command_fits(r->c, r->row, &r->args, &r->d);
	if (err)
		return err;
	find_effect(r);
	return check_permitted(r);
}

static int audit(struct run *r, const char *phase, const char *result, struct diag *d)
{
	struct audit_record record = {
		.argv = r->args.words,
		.phase = phase,
		.result = result,
	};

	if (!(r->effect & CMD_WRITES) || !r->c->audit)
		return 0;
	if (!r->audited.pid && r->c->process)
		r->audited = r->c->process->t;
	if (!r->audited.pid)
		return 0;
	record.t = &r->audited;
	return audit_write(r->c->audit, &record, d);
}

/* In the middle of it the mappings of neither program may be there to be seen. */
#define EXECVE_LOOKS 20
#define EXECVE_NAP   (5 * NS_PER_MS)

/* What its end can make of a command. */
static bool may_be_end(const struct diag *d)
{
	return d->exit == HM_INTERNAL || d->exit == HM_GONE || d->exit == HM_DIED ||
	       strncmp(d->code, "proxy-", 6) == 0;
}

/* What execve(2) can: threads and memory are gone, the process is not; or its libraries are not
 * there yet. */
static bool may_be_execve(const struct diag *d)
{
	return may_be_end(d) || d->exit == HM_UNSUPPORTED;
}

/*
 * The target's end can show anywhere, as ESRCH or worse; it is no fault of ours then. Refusals that
 * name a cause are believed unless the kernel shows it on its way out.
 */
static int check_gone(struct run *r, int err)
{
	const struct process *p = r->c->process;
	bool suspected = err == -ESRCH || may_be_end(&r->d), changed = false;

	if (!p || r->d.exit == HM_USAGE || (r->effect & CMD_NO_PROCESS))
		return err;
	if (target_ending(&p->t, suspected))
		return r->d.exit == HM_DIED ? err : target_gone(&p->t, &r->d);
	/* What was done before execve(2) is gone with the program that it was done to. */
	for (int i = 0; may_be_execve(&r->d) && !changed && i < EXECVE_LOOKS; i++) {
		clock_sleep(i ? EXECVE_NAP : 0);
		changed = process_changed(p);
	}
	if (changed)
		return target_changed(&p->t, TARGET_CHANGED_MEANWHILE, &r->d);
	return err;
}

/* What of the heap nobody has looked at before the call was made. */
static void tell_heap(struct run *r)
{
	struct process *p = r->c->process;

	if (!p || !p->heap_note[0])
		return;
	reply_warn(r->c, &r->reply, "heap-not-checked", "%s", p->heap_note);
	p->heap_note[0] = '\0';
}

/* What the looking commands look at when the process has ended is of another time. */
static void tell_ended(struct run *r)
{
	char at[32];

	if (r->c->ended && r->c->loaded && !(r->effect & (CMD_NO_PROCESS | CMD_PREFIX)))
		reply_warn(r->c, &r->reply, "process-ended", "as of %s, before it exited",
			   last_look_time(r->c, at, sizeof(at)));
}

/* Does it answer at its end, and not before? */
static bool at_once(const struct run *r)
{
	return !((r->row->flags | r->wanted) & CMD_STREAMS);
}

static void begin_progress(const struct run *r)
{
	if (at_once(r) && !r->c->set.quiet)
		progress_begin(r->row->name);
}

/* The answer is kept back where it may need a pager, or the progress would be in its way. */
static void hold(const struct run *r)
{
	if (at_once(r) && sink_is_terminal(r->c->sink))
		sink_hold(r->c->sink);
}

/* As it stands on the terminal: sentences broken between words. NULL: no memory. */
static char *folded(const struct run *r, const char *text, size_t *len)
{
	char *lines = NULL;
	FILE *f = r->c->set.json ? NULL : open_memstream(&lines, len);

	if (!f)
		return NULL;
	fold_text(f, text, strlen(text), sink_width(r->c->sink));
	if (fclose(f) == 0)
		return lines;
	free(lines);
	return NULL;
}

static void show(const struct run *r, bool pager)
{
	struct sink *s = r->c->sink;
	size_t len = 0, lines_len = 0;
	char *text = sink_release(s, &len), *lines = text ? folded(r, text, &lines_len) : NULL;

	if (lines) {
		free(text);
		text = lines;
		len = lines_len;
	}
	if (text && pager && r->c->interactive && r->c->set.pager)
		pager_show(s->out, text, len);
	else if (text)
		fwrite(text, 1, len, s->out);
	free(text);
}

/*
 * What it would do, as a dry run tells it: the person decides by that. What a dry run refuses is
 * not asked about. A command that goes on for ever has no such end.
 */
static int preview(struct run *r)
{
	struct context *c = r->c;
	int err;

	if (c->set.json || (r->row->flags & CMD_STREAMS))
		return 0;
	hold(r);
	c->asks = c->set.dry_run = true;
	err = r->row->run(c, &r->args, &r->reply, &r->d);
	c->asks = c->set.dry_run = false;
	progress_end();
	show(r, false);
	fflush(c->sink->out);
	return err ? check_gone(r, err) : 0;
}

static int ask(struct run *r)
{
	const struct settings *s = &r->c->set;
	int err;

	if (!(r->effect & CMD_WRITES) || !r->c->interactive || s->yes || !s->confirm)
		return 0;
	err = preview(r);
	progress_end();
	if (!err)
		err = confirm_ask(r->c, r->row->name, &r->d);
	if (!err)
		begin_progress(r);
	return err;
}

static int run_body(struct run *r)
{
	struct process *p;
	struct diag lost;
	int err = 0;

	begin_progress(r);
	if (!(r->effect & CMD_NO_PROCESS) && !r->c->loaded) {
		err = context_process(r->c, &p, &r->d);
		if (!err)
			err = check_possible(r);
	}
	if (!err)
		err = ask(r);
	if (!err)
		err = audit(r, "before", "", &r->d);
	if (err)
		return err;
	hold(r);
	tell_ended(r);
	err = r->row->run(r->c, &r->args, &r->reply, &r->d);
	r->c->changed |= (r->effect & CMD_WRITES) != 0;
	if (err)
		err = check_gone(r, err);
	tell_heap(r);
	diag_clear(&lost);
	if (audit(r, "after", err ? r->d.code : "ok", &lost)) {
		/* The change is made: only the record is missing. */
		reply_warn(r->c, &r->reply, lost.code,
			   "the command has run, but its audit record could not be written: %s",
			   lost.text);
	}
	return err;
}

static unsigned anew_so_far(const struct run *r)
{
	struct held h;

	if (!r->c->process)
		return 0;
	process_held(r->c->process, &h);
	return h.anew;
}

/* The one thing that a hold may cost the application is told. */
static void tell_anew(struct run *r, unsigned before)
{
	struct held h;

	if (anew_so_far(r) <= before)
		return;
	process_held(r->c->process, &h);
	reply_warn(r->c, &r->reply, "wait-begins-anew",
		   "thread %d was borrowed from a wait (%s) whose timeout has begun anew",
		   (int)h.anew_tid, h.anew_call);
}

/* With -v: how the calls were made, and what they cost the application. */
static void tell_how(struct run *r)
{
	const struct process *p = r->c->process;
	char max[SIZE_TEXT], total[SIZE_TEXT];
	struct held h;

	if (!p || !p->session || !(r->effect & CMD_CALLS))
		return;
	process_held(p, &h);
	context_verbose(r->c,
			"%s: via %s, %u hold%s of one thread so far, the longest %s, together %s",
			r->row->name, session_via(p->session), h.threads, h.threads == 1 ? "" : "s",
			time_format(h.max_ns, max), time_format(h.total_ns, total));
}

/* Where nothing follows, the end of the session is part of the command: its findings too. */
static int end_session(struct run *r, int err)
{
	char warn[256] = "";
	struct diag d;
	int end;

	if (!r->c->oneshot) {
		context_park(r->c);
		return err;
	}
	diag_clear(&d);
	end = context_end_session(r->c, warn, sizeof(warn), &d);
	if (warn[0])
		reply_warn(r->c, &r->reply, "not-as-before", "%s", warn);
	if (end && !err) {
		r->d = d;
		err = end;
	}
	return err;
}

static void answer_json(struct run *r, enum hm_exit code)
{
	struct context *c = r->c;
	struct envelope e = {
		.pid = c->pid,
		.comm = c->comm[0] ? c->comm : NULL,
		.command = r->row ? r->row->name : NULL,
		.exit = code,
		.result = r->reply.result,
		.warnings = r->reply.warnings,
		.d = &r->d,
	};

	if (r->row && (r->row->flags & CMD_CONTROL) && code == HM_OK)
		return;
	context_time(c, &e.time);
	if (sink_envelope(c->sink, &e))
		fputs("heapmedic: no memory left for an answer\n", c->sink->err);
}

static enum hm_exit answer(struct run *r, int err)
{
	enum hm_exit code = err ? r->d.exit : HM_OK;
	struct sink *s = r->c->sink;
	char where[300];

	if (err && code == HM_OK)
		code = HM_INTERNAL;
	if (!err && r->reply.failed) {
		code = HM_INTERNAL;
		diag_internal(&r->d, -ENOMEM, "putting the answer together");
	}
	if (r->c->set.json && !r->helped && !r->reply.silent)
		answer_json(r, code);
	show(r, true);
	err = sink_flush(s);
	if (code != HM_OK && !r->reply.silent) {
		context_failed(r->c, &r->d);
		sink_error(s, origin_text(&r->c->origin, where, sizeof(where)), &r->d);
	}
	if (err && err != -EPIPE && code == HM_OK) {
		diag_fail(&r->d, err, HM_INTERNAL, "output",
			  "make room, or send the output elsewhere; the command itself was done",
			  "cannot write the output: %s", strerror(-err));
		sink_error(s, origin_text(&r->c->origin, where, sizeof(where)), &r->d);
		code = HM_INTERNAL;
	}
	return code;
}

enum hm_exit command_run(struct context *c, int argc, char *const *argv)
{
	struct run r = { .c = c };
	enum hm_exit code;
	unsigned anew;
	int err;

	c->set = context_settings(c);
	err = prepare(&r, argc, argv);
	anew = anew_so_far(&r);
	if (!err && !r.helped)
		err = run_body(&r);
	tell_how(&r);
	tell_anew(&r, anew);
	err = end_session(&r, err);
	progress_end();
	code = answer(&r, err);
	json_decref(r.reply.result);
	json_decref(r.reply.warnings);
	json_decref(r.reply.said);
	args_free(&r.args);
	c->set = context_settings(c);
	return code;
}
