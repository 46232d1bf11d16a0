// SPDX-License-Identifier: GPL-3.0-or-later
/* watch: one line per interval, and what it all comes to. Nobody is held or called. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../agent/trim.h"
#include "../inject/clock.h"
#include "context.h"
#include "fact_text.h"
#include "nap.h"
#include "signals.h"
#include "watch_text.h"

#define EVERY	    (2 * NS_PER_SEC)
#define EVERY_LEAST (100 * NS_PER_MS)
#define EVERY_MOST  ((uint64_t)INT64_MAX / 4)

#define LAST_LOOK_MOST (500 * NS_PER_MS)

struct watch_args {
	uint64_t every;
	uint64_t count; /* lines, 0: without end */
};

static int parse_count(const char *text, uint64_t *out, struct diag *d)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out > 0)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "a number from 1 on",
			 "COUNT: '%.60s' is no number of lines", text);
}

static int watch_args(const struct args *a, struct watch_args *out, struct diag *d)
{
	int err = 0;

	*out = (struct watch_args){ .every = EVERY };
	if (a->argc > 0)
		err = time_parse_arg("EVERY", a->argv[0], &out->every, d);
	if (!err && out->every < EVERY_LEAST)
		err = diag_fail(d, -ERANGE, HM_USAGE, "bad-time", "100ms at least",
				"EVERY: '%.60s' is too short", a->argv[0]);
	if (out->every > EVERY_MOST)
		out->every = EVERY_MOST;
	if (!err && a->argc > 1)
		err = parse_count(a->argv[1], &out->count, d);
	return err;
}

int check_watch(const struct args *a, struct diag *d)
{
	struct watch_args args;

	return watch_args(a, &args, d);
}

unsigned effect_watch(const struct args *a)
{
	return a->opt[WATCH_AFTER_TRIM] ? CMD_PASSIVE | CMD_CALLS | CMD_WRITES : CMD_PASSIVE;
}

/* One run of it. */
struct watching {
	struct context *c;
	struct reply *r;
	struct watch_args args;
	struct watch w;
	struct watch_line line;	     /* the last one */
	struct program_mark program; /* of the last reading */
	time_t time;		     /* when it was begun */
	uint64_t next;		     /* when the next one is due */
	size_t below_header;	     /* lines since the header */
	bool warned;		     /* of what a look cannot see */
	bool told_older;	     /* what ~ means */
	bool judged;		     /* that the trim was not worth it */
	char judgement[AFTER_TRIM_TEXT];
	uint64_t cpu; /* clock_cpu when it began */
	uint64_t look_cpu;
};

/* ---- reading */

/* A program that becomes another one in this moment is looked at again later. */
static int take_look(struct watching *x, struct watch_reading *now, struct diag *d)
{
	struct process *p = x->c->process;
	uint64_t cpu = clock_cpu(), cost;
	struct look l;
	int err = process_refresh(p, d);

	if (!err)
		err = look_take(p, false, &l, d);
	cost = clock_cpu() - cpu;
	x->look_cpu += cost;
	if (err && d->exit == HM_UNSAFE) {
		diag_clear(d);
		watch_not_looked(&x->w, now->at, cost);
		return 0;
	}
	if (err)
		return err;
	now->usage = l.memory.usage;
	watch_looked(&x->w, now->at, cost, &l.makeup, &l.facts);
	if (!x->warned)
		look_warn(x->c, x->r, &l, true);
	x->warned = true;
	look_free(&l);
	return 0;
}

static int take_reading(struct watching *x, struct watch_reading *now, struct diag *d)
{
	const struct target *t = &x->c->process->t;
	bool look;
	int err = 0;

	*now = (struct watch_reading){ .at = clock_now() };
	look = watch_due(&x->w, now->at);
	if (look)
		err = take_look(x, now, d);
	/* the look has its own; without one it is read */
	if (!look || (!err && !now->usage.rss))
		err = usage_read(t, &now->usage, d);
	if (err)
		return err;
	err = program_read(t->procfd, &x->program, &now->minflt);
	return err ? target_unreadable(t, "/stat", err, d) : 0;
}

/* It may execute another program: what was read of the one before it is nothing to count from. */
static int take_of_one_program(struct watching *x, struct watch_reading *now, struct diag *d)
{
	const struct program_mark before = x->program;
	int err = take_reading(x, now, d);

	if (err || !x->w.lines ||
	    (before.code == x->program.code && before.stack == x->program.stack))
		return err;
	reply_warn(x->c, x->r, "program-changed",
		   "after %zu lines it executed another program: growth is counted anew from there",
		   x->w.lines);
	watch_anew(&x->w);
	x->c->trim = (struct trim_mark){ 0 };
	x->judged = false;
	return take_reading(x, now, d);
}

/* ---- telling */

static size_t screen_rows(const struct context *c)
{
	struct winsize size;

	if (!sink_is_terminal(c->sink) || ioctl(fileno(c->sink->out), TIOCGWINSZ, &size))
		return SIZE_MAX;
	return size.ws_row > 4 ? size.ws_row - 1U : SIZE_MAX;
}

static void print_line(struct watching *x)
{
	const struct sink *s = x->c->sink;
	struct watch_style style = { .raw = x->c->set.bytes, .after = x->line.after };
	char text[16] = "";
	struct tm tm;

	if (x->below_header == 0 || x->below_header >= screen_rows(x->c)) {
		fputs(sink_paint(s, PAINT_HEAD), s->out);
		watch_print_header(s->out, &style);
		fputs(sink_plain(s), s->out);
		x->below_header = 1;
	}
	if (localtime_r(&x->time, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	watch_print(s->out, &style, text, &x->line);
	x->below_header++;
}

/* An object of its own, in a line of its own. */
static void send_object(struct watching *x, json_t *result)
{
	const struct context *c = x->c;
	struct envelope e = {
		.pid = c->pid,
		.comm = c->comm,
		.command = "watch",
		.exit = HM_OK,
		.result = result,
	};

	clock_gettime(CLOCK_REALTIME, &e.time);
	if (!result || sink_envelope(c->sink, &e))
		x->r->failed = true;
	json_decref(result);
}

static void tell_older(struct watching *x)
{
	char cost[SIZE_TEXT], every[SIZE_TEXT];

	if (x->told_older || !x->line.older || !x->line.look.divided || x->c->set.json)
		return;
	x->told_older = true;
	context_note(x->c,
		     "~ is older than its line: to read the heap takes %s, so that is done every "
		     "%s",
		     time_format(x->w.pace.cost, cost),
		     time_format(pace_period(&x->w.pace, x->w.every), every));
}

/* What is found against a trim stays found. */
static void judge_trim(struct watching *x)
{
	char text[AFTER_TRIM_TEXT];
	enum trim_worth w;

	if (!x->line.after || x->judged)
		return;
	w = after_trim_judge(&x->c->trim, &x->line.trim, text);
	memcpy(x->judgement, text, sizeof(text));
	if (w != TRIM_REGROWN && w != TRIM_FAULTS)
		return;
	x->judged = true;
	reply_warn(x->c, x->r, "not-worth-it", "%s", text);
}

static int one_line(struct watching *x, struct diag *d)
{
	struct watch_reading now;
	int err;

	x->time = time(NULL);
	err = take_of_one_program(x, &now, d);
	if (err)
		return err;
	watch_next(&x->w, &now, &x->c->trim, &x->line);
	if (x->c->set.json)
		send_object(x, watch_json(x->r, &x->line, &x->c->trim));
	else
		print_line(x);
	judge_trim(x);
	tell_older(x);
	return 0;
}

/* ---- the end */

static void summary_json(struct watching *x, double seconds, uint64_t cpu)
{
	json_t *o = json_object();

	reply_member(x->r, o, "lines", json_u64(x->w.lines));
	reply_member(x->r, o, "seconds", json_real(seconds));
	reply_member(x->r, o, "growth", growth_json(x->line.growth));
	reply_member(x->r, o, "growth_bytes", json_u64(x->line.grown));
	reply_member(x->r, o, "text", json_text(x->line.text, strlen(x->line.text)));
	reply_member(x->r, o, "age_seconds", json_real(x->line.age));
	reply_member(x->r, o, "looks", json_u64(x->w.looks));
	reply_member(x->r, o, "own_cpu_us", json_u64(cpu / 1000));
	reply_member(x->r, o, "after_trim", after_trim_json(x->r, &x->c->trim, &x->line.trim));
	reply_set(x->r, "summary", o);
}

static void tell_cost(const struct watching *x, uint64_t ns, uint64_t cpu)
{
	char own[SIZE_TEXT], all[SIZE_TEXT], one[SIZE_TEXT];

	context_verbose(x->c,
			"watch: own CPU time %s in %s (%.2f %% of one CPU), %zu looks at the heap, "
			"each %s",
			time_format(cpu, own), time_format(ns, all),
			ns ? (double)cpu * 100 / (double)ns : 0, x->w.looks,
			time_format(x->w.looks ? x->look_cpu / x->w.looks : 0, one));
}

/* The sum is not to be older than its last line, unless that takes so long that one waits. */
static void last_look(struct watching *x)
{
	struct watch_reading now;
	size_t lines = x->w.lines;
	struct diag d;

	diag_clear(&d);
	if (!x->line.older || x->w.pace.cost > LAST_LOOK_MOST)
		return;
	x->w.pace.done = false;
	if (take_reading(x, &now, &d))
		return;
	watch_next(&x->w, &now, &x->c->trim, &x->line);
	x->w.lines = lines;
	judge_trim(x);
}

static void summary_text(const struct watching *x, uint64_t ns)
{
	const struct watch_line *l = &x->line;
	char time[SIZE_TEXT], size[SIZE_TEXT];
	FILE *out = x->c->sink->out;

	fprintf(out, "%zu line%s in %s: %s: %s", x->w.lines, x->w.lines == 1 ? "" : "s",
		time_format(ns, time), growth_name(l->growth), l->text);
	if (l->older)
		fprintf(out, " (the heap was last read %s before)",
			time_format((uint64_t)(l->age * 1e9), time));
	putc('\n', out);
	if (l->after)
		fprintf(out, "%s; at most %s were faulted in since (%" PRIu64 " minor faults%s)\n",
			x->judgement, text_size(size, l->trim.faulted, x->c->set.bytes),
			l->trim.faults,
			l->now.usage.anon_huge ? "; more, where huge pages were" : "");
}

static void sum_up(struct watching *x, uint64_t began, bool alive)
{
	uint64_t ns = clock_now() - began, cpu;

	if (!x->w.lines)
		return;
	if (alive)
		last_look(x);
	cpu = clock_cpu() - x->cpu;
	x->c->rate_known = watch_rate(&x->w, &x->c->rate);
	if (x->c->set.json)
		summary_json(x, (double)ns / 1e9, cpu);
	else
		summary_text(x, ns);
	tell_cost(x, ns, cpu);
}

/* ---- the command */

/* Lines that come too late are left out, they do not follow each other at once. */
static enum nap wait_next(struct watching *x)
{
	uint64_t now = clock_now();

	x->next += x->args.every;
	if (x->next <= now)
		x->next = now + x->args.every - (now - x->next) % x->args.every;
	return nap_until(x->next, x->c->process->t.pidfd);
}

/* count lines; 0: until something ends it. *on: it was not ended. */
static int some_lines(struct watching *x, uint64_t count, bool *on, struct diag *d)
{
	*on = true;
	for (uint64_t i = 0; *on && (!count || i < count); i++) {
		enum nap why = x->w.begun ? wait_next(x) : NAP_OVER;
		int err;

		*on = why != NAP_CANCELLED;
		if (why == NAP_EXITED)
			return target_gone(&x->c->process->t, d);
		if (!*on)
			break;
		err = one_line(x, d);
		if (err)
			return err;
		/* nobody reads it any more */
		*on = sink_flush(x->c->sink) == 0;
	}
	return 0;
}

/* Nothing of ours is left in the target while it is watched: what it holds is its own. */
static int trim_first(struct watching *x, struct diag *d)
{
	struct context *c = x->c;
	struct trim_report report;
	struct reply own = { 0 };
	struct usage after;
	char warn[256];
	int err;

	c->rate_known = watch_rate(&x->w, &c->rate);
	err = trim_and_tell(c, &own, 0, &report, d);
	if (!err)
		err = context_end_session(c, warn, sizeof(warn), d);
	if (!err && warn[0])
		reply_warn(c, x->r, "not-as-before", "%s", warn);
	if (!err)
		err = usage_read(&c->process->t, &after, d);
	if (!err && c->set.json) {
		json_t *o = json_object();

		reply_member(x->r, o, "trim", json_incref(own.result));
		send_object(x, o);
	}
	if (!err && minflt_read(c->process->t.procfd, &c->trim.minflt) == 0) {
		c->trim.held = after.anon + after.swap;
		c->trim.at = clock_now();
	}
	if (own.warnings && !x->r->warnings)
		x->r->warnings = json_array();
	x->r->failed |=
		own.failed || (own.warnings && json_array_extend(x->r->warnings, own.warnings));
	json_decref(own.result);
	json_decref(own.warnings);
	watch_anew(&x->w);
	x->below_header = 0;
	return err;
}

static int watch_all(struct watching *x, bool trim, struct diag *d)
{
	bool on = true;
	int err = 0;

	if (trim) {
		/* the fault rate before it is what the one after it is compared with */
		err = some_lines(x, 2, &on, d);
		if (!err && on)
			err = trim_first(x, d);
	}
	if (!err && on)
		err = some_lines(x, x->args.count, &on, d);
	return err;
}

int cmd_watch(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct watching x = { .c = c, .r = r, .cpu = clock_cpu() };
	uint64_t began = clock_now();
	bool trim = a->opt[WATCH_AFTER_TRIM] != NULL;
	int err = watch_args(a, &x.args, d);

	if (err)
		return err;
	if (trim && c->set.dry_run) {
		reply_warn(c, r, "dry-run", "the trim is left out, as --dry-run wants it");
		trim = false;
	}
	watch_begin(&x.w, x.args.every);
	x.next = began;
	context_park(c);
	err = watch_all(&x, trim, d);
	sum_up(&x, began, !err);
	return err;
}
