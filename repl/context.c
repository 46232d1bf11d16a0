// SPDX-License-Identifier: GPL-3.0-or-later
#include "context.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "../agent/allocator_choice.h"
#include "../agent/process.h"
#include "../agent/snapshot.h"
#include "../inject/cause.h"
#include "fold.h"
#include "progress.h"
#include "signals.h"

static struct session_opts session_options(const struct settings *s)
{
	return (struct session_opts){
		.via = s->via,
		.thread = s->thread,
		.deadline_ns = s->deadline_ns,
		.timeout_ns = s->timeout_ns,
		.cancel = signals_cancel(),
	};
}

static int open_process(struct context *c, struct diag *d)
{
	struct session_opts o = session_options(&c->set);
	int err;

	if (!c->pid)
		return diag_fail(d, -EINVAL, HM_USAGE, "no-target", "name one with -p PID",
				 "this command needs a process");
	err = process_open(c->pid, &o, &c->process, d);
	if (err)
		c->process = NULL;
	else
		snprintf(c->comm, sizeof(c->comm), "%s", c->process->t.comm);
	return err;
}

int context_process(struct context *c, struct process **out, struct diag *d)
{
	int err = 0;

	if (c->ended) {
		err = context_ended(c, d);
	} else if (!c->process) {
		err = open_process(c, d);
	} else if (!target_alive(&c->process->t)) {
		err = target_gone(&c->process->t, d);
	} else {
		err = context_sync(c, d);
		if (!err)
			err = process_refresh(c->process, d);
	}
	*out = c->process;
	if (err)
		return err;
	snprintf(c->process->only, sizeof(c->process->only), "%s", c->set.allocator);
	return allocator_choice_check(c->process, d);
}

int context_ended(const struct context *c, struct diag *d)
{
	int err = cause_fail(d, -ESRCH, CAUSE_GONE, "process %d (%s) has ended", (int)c->pid,
			     c->comm);

	snprintf(d->hint, sizeof(d->hint), "`attach NAME|PID` goes on with another process");
	return err;
}

int context_attach(struct context *c, pid_t pid, bool named, struct diag *d)
{
	struct session_opts o = session_options(&c->set);
	struct process *p;
	int err;

	/* our own thread in it would be seen as another's */
	if (c->process && c->pid == pid)
		(void)context_end(c); /* it has told its error */
	err = process_open(pid, &o, &p, d);
	if (err)
		return err;
	(void)context_end(c);
	c->process = p;
	c->pid = pid;
	c->vars.pid = pid;
	snprintf(c->comm, sizeof(c->comm), "%s", p->t.comm);
	c->name = named ? c->comm : NULL;
	c->loaded = NULL;
	c->ended = false;
	memset(&c->trim, 0, sizeof(c->trim));
	memset(&c->prof, 0, sizeof(c->prof));
	c->rate_known = false;
	c->arenas = 0;
	return 0;
}

static bool same_options(const struct session_opts *a, const struct session_opts *b)
{
	return a->via == b->via && a->thread == b->thread && a->deadline_ns == b->deadline_ns &&
	       a->timeout_ns == b->timeout_ns;
}

struct settings context_settings(const struct context *c)
{
	struct settings s = c->base;

	if (!c->over)
		return s;
	s = *c->over;
	s.passive |= c->base.passive;
	s.read_only |= c->base.read_only;
	s.dry_run |= c->base.dry_run;
	return s;
}

int context_sync(struct context *c, struct diag *d)
{
	struct session_opts o = session_options(&c->set);
	char warn[256] = "";
	int err = 0;

	if (!c->process || same_options(&c->process->opts, &o))
		return 0;
	if (c->process->session)
		err = context_end_session(c, warn, sizeof(warn), d);
	if (warn[0])
		context_note(c, "warning: %s", warn);
	c->process->opts = o;
	return err;
}

void context_park(struct context *c)
{
	struct diag d;

	diag_clear(&d);
	if (!c->process || !c->process->session)
		return;
	if (!session_park(c->process->session, &d))
		return;
	/* The proxy is lost, by the target's end as a rule: the next command says it. */
	context_verbose(c, "%s", d.text);
	process_drop_session(c->process);
}

int context_end_session(struct context *c, char *warn, size_t size, struct diag *d)
{
	warn[0] = '\0';
	return c->process ? process_end_session(c->process, d, warn, size) : 0;
}

enum hm_exit context_end(struct context *c)
{
	char warn[256] = "";
	struct diag d;
	int err;

	diag_clear(&d);
	if (!c->process)
		return HM_OK;
	err = process_close(c->process, &d, warn, sizeof(warn));
	c->process = NULL;
	if (warn[0])
		context_note(c, "warning: %s", warn);
	if (!err)
		return HM_OK;
	context_error(c, &d);
	return d.exit;
}

void context_failed(struct context *c, const struct diag *d)
{
	if (d->exit <= c->worst)
		return;
	c->worst = d->exit;
	snprintf(c->worst_code, sizeof(c->worst_code), "%s", d->code);
}

const char *context_undone(const struct context *c)
{
	return c->asks ? "" : ", nothing was done";
}

const char *origin_text(const struct origin *o, char *buf, size_t size)
{
	if (!o->name)
		return NULL;
	if (o->line)
		snprintf(buf, size, "%s:%u", o->name, o->line);
	else
		snprintf(buf, size, "%s", o->name);
	return buf;
}

void context_time(const struct context *c, struct timespec *out)
{
	if (c->loaded)
		*out = c->loaded->time;
	else
		clock_gettime(CLOCK_REALTIME, out);
}

void context_error(struct context *c, const struct diag *d)
{
	char where[300];
	struct envelope e = {
		.pid = c->pid,
		.comm = c->comm[0] ? c->comm : NULL,
		.exit = d->exit,
		.d = d,
	};

	if (c->base.json) {
		context_time(c, &e.time);
		if (sink_envelope(c->sink, &e))
			fputs("heapmedic: no memory left for an answer\n", c->sink->err);
	}
	context_failed(c, d);
	sink_error(c->sink, origin_text(&c->origin, where, sizeof(where)), d);
}

/* In the order in which it happened, also where both go to one terminal. */
__attribute__((format(printf, 2, 0))) static void talk(struct context *c, const char *fmt,
						       va_list ap)
{
	FILE *to = sink_talk(c->sink);
	char text[1024];
	int n = snprintf(text, sizeof(text), "heapmedic: ");

	(void)!vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	strcat(text, "\n");
	fflush(c->sink->out);
	progress_hide();
	fold_to(to, text, strlen(text));
}

void context_note(struct context *c, const char *fmt, ...)
{
	va_list ap;

	if (c->set.quiet)
		return;
	va_start(ap, fmt);
	talk(c, fmt, ap);
	va_end(ap);
}

void context_verbose(struct context *c, const char *fmt, ...)
{
	va_list ap;

	if (!c->set.verbose || c->set.quiet)
		return;
	va_start(ap, fmt);
	talk(c, fmt, ap);
	va_end(ap);
}
