// SPDX-License-Identifier: GPL-3.0-or-later
/* prof status, on, off, reset. */
#include "prof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../agent/jemalloc_prof.h"
#include "../inject/clock.h"
#include "context.h"
#include "nap.h"
#include "signals.h"

/* From here on a sample is rarer than any cost of taking it (jemalloc's own default is 19). */
#define LG_CHEAP 16
#define LG_MAX	 63 /* jemalloc takes no more for larger ones (prof_reset_ctl) */

/* ---- status */

enum since { SINCE_UNKNOWN, SINCE_START, SINCE_SWITCH };

static bool start_of(const struct process *p, struct timespec *at)
{
	struct timespec up;
	long hz = sysconf(_SC_CLK_TCK);

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &up) || clock_gettime(CLOCK_REALTIME, at))
		return false;
	at->tv_sec -= up.tv_sec - (time_t)(p->t.start_time / (uint64_t)hz);
	return true;
}

/* jemalloc keeps no time of it: what this session has not switched is known only as far as it is as
 * it was at the start. */
static enum since since(const struct context *c, const struct prof_state *s, struct timespec *at)
{
	bool active = prof_is(s, PROF_ACTIVE);

	if (c->prof.known && c->prof.on == active) {
		*at = c->prof.at;
		return SINCE_SWITCH;
	}
	if (c->prof.known || !prof_is(s, PROF_ENABLED) || !s->known[PROF_ACTIVE_AT_FIRST] ||
	    prof_is(s, PROF_ACTIVE_AT_FIRST) != active)
		return SINCE_UNKNOWN;
	return start_of(c->process, at) ? SINCE_START : SINCE_UNKNOWN;
}

static const char *utc(const struct timespec *at, char buf[32])
{
	struct tm tm;

	buf[0] = '\0';
	if (gmtime_r(&at->tv_sec, &tm))
		strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

static json_t *known_bool(const struct prof_state *s, enum prof_name n)
{
	return s->known[n] ? json_boolean(s->value[n]) : json_null();
}

static void status_json(const struct context *c, struct reply *r, const struct prof_state *s,
			const char *line)
{
	static const char *const from[] = { [SINCE_START] = "start", [SINCE_SWITCH] = "switch" };
	uint64_t bytes = prof_sample_bytes(s);
	const char *unwinder = prof_unwinder(s);
	struct timespec at = { 0 };
	enum since known = since(c, s, &at);
	char time[32];

	reply_set(r, "compiled", json_boolean(prof_is(s, PROF_COMPILED)));
	reply_set(r, "enabled", json_boolean(prof_is(s, PROF_ENABLED)));
	reply_set(r, "active", json_boolean(prof_is(s, PROF_ACTIVE)));
	reply_set(r, "lg_sample", bytes ? json_u64(s->value[PROF_LG_SAMPLE]) : json_null());
	reply_set(r, "sample_bytes", bytes ? json_u64(bytes) : json_null());
	reply_set(r, "since", known ? json_string(utc(&at, time)) : json_null());
	reply_set(r, "since_from", known ? json_string(from[known]) : json_null());
	reply_set(r, "unwinder", unwinder ? json_string(unwinder) : json_null());
	reply_set(r, "new_threads", known_bool(s, PROF_NEW_THREADS));
	reply_set(r, "accum", known_bool(s, PROF_ACCUM));
	reply_set(r, "gdump", known_bool(s, PROF_GDUMP));
	reply_set(r, "final", known_bool(s, PROF_FINAL));
	reply_set(r, "interval_bytes",
		  s->known[PROF_INTERVAL] ? json_u64(s->value[PROF_INTERVAL]) : json_null());
	reply_set(r, "environment", line[0] ? json_string(line) : json_null());
}

static void since_text(const struct context *c, const struct prof_state *s)
{
	struct timespec at = { 0 };
	char time[32];
	const char *what;

	switch (since(c, s, &at)) {
	case SINCE_SWITCH:
		what = "when this session has switched it";
		break;
	case SINCE_START:
		what = "the start of the process, unless somebody has switched it twice";
		break;
	default:
		fprintf(c->sink->out, "since            unknown: it was switched at run time\n");
		return;
	}
	fprintf(c->sink->out, "since            %s, %s\n", utc(&at, time), what);
}

static void dumps_text(const struct context *c, const struct prof_state *s)
{
	char size[SIZE_TEXT], every[64] = "";
	uint64_t bytes = s->known[PROF_INTERVAL] ? s->value[PROF_INTERVAL] : 0;

	if (bytes)
		snprintf(every, sizeof(every), " one per %s allocated",
			 text_size(size, bytes, c->set.bytes));
	if (bytes || prof_is(s, PROF_GDUMP) || prof_is(s, PROF_FINAL))
		fprintf(c->sink->out, "writes by itself %s%s%s\n", every + (bytes ? 1 : 0),
			prof_is(s, PROF_GDUMP) ? " at each new maximum" : "",
			prof_is(s, PROF_FINAL) ? " at its end" : "");
}

static void status_text(const struct context *c, const struct prof_state *s, const char *line)
{
	FILE *out = c->sink->out;
	char size[SIZE_TEXT];
	const char *unwinder = prof_unwinder(s);

	fprintf(out, "compiled in      %s%s%s\n", unwinder ? "yes" : "no",
		unwinder ? ", stacks by " : "", unwinder ? unwinder : "");
	if (unwinder && !prof_is(s, PROF_ENABLED)) {
		fputs("enabled at start no: it cannot be switched on now\n", out);
		fprintf(out, "at the next one  %s\n", line);
	}
	if (!prof_is(s, PROF_ENABLED))
		return;
	fprintf(out, "enabled at start yes\nactive           %s\n",
		prof_is(s, PROF_ACTIVE) ? "yes" : "no");
	since_text(c, s);
	fprintf(out, "sample rate      one per %s (lg_sample %" PRIu64 ")\n",
		text_size(size, prof_sample_bytes(s), c->set.bytes), s->value[PROF_LG_SAMPLE]);
	fprintf(out, "new threads      %s\n",
		prof_is(s, PROF_NEW_THREADS) ? "sampled" : "not sampled");
	fprintf(out, "keeps            %s\n",
		prof_is(s, PROF_ACCUM) ? "what is live and all that ever was" : "what is live");
	dumps_text(c, s);
}

int prof_status(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	char line[300] = "";
	int err = prof_jemalloc(c, r, &jemalloc, d);

	(void)a;
	if (!err)
		err = jemalloc_prof_state(c->process, jemalloc, &s, d);
	if (err)
		return err;
	if (prof_is(&s, PROF_COMPILED) && !prof_is(&s, PROF_ENABLED))
		jemalloc_prof_line(c->process, jemalloc, line, sizeof(line));
	if (c->set.json)
		status_json(c, r, &s, line);
	else
		status_text(c, &s, line);
	return 0;
}

/* ---- on, off */

int check_prof_on(const struct args *a, struct diag *d)
{
	uint64_t ns;

	return a->opt[PROF_FOR] ? time_parse_arg("--for", a->opt[PROF_FOR], &ns, d) : 0;
}

static void remember(struct context *c, bool on)
{
	c->prof.known = true;
	c->prof.on = on;
	clock_gettime(CLOCK_REALTIME, &c->prof.at);
}

static int switch_to(struct context *c, const struct allocator *jemalloc, bool on, bool *was,
		     struct diag *d)
{
	int err = jemalloc_prof_switch(c->process, jemalloc, on, was, d);

	if (!err && (*was != on || !c->prof.known))
		remember(c, on);
	return err;
}

static int plan(struct context *c, struct reply *r, const char *what)
{
	if (c->set.json)
		reply_set(r, "dry_run", json_true());
	else
		fprintf(c->sink->out, "would %s, nothing was done\n", what);
	return 0;
}

static void answer_switch(struct context *c, struct reply *r, bool was, bool now)
{
	reply_set(r, "old", json_boolean(was));
	reply_set(r, "new", json_boolean(now));
	if (c->set.json)
		return;
	fprintf(c->sink->out, "sampling %s%s\n", now ? "on" : "off",
		was == now ? ", as it was before" : "");
}

static void warn_on(struct context *c, struct reply *r, const struct prof_state *s)
{
	if (s->known[PROF_NEW_THREADS] && !s->value[PROF_NEW_THREADS])
		reply_warn(c, r, "threads-not-sampled",
			   "new threads are not sampled (prof.thread_active_init is false), and "
			   "older ones only where they have asked for it (thread.prof.active)");
}

/* Who does it if we cannot? Told before the wait. */
static int prepare_end(struct context *c, struct reply *r, const struct allocator *jemalloc,
		       struct diag *d)
{
	int err = jemalloc_prof_off_at_end(c->process, jemalloc, true, d);

	if (err == -EOPNOTSUPP)
		reply_warn(c, r, "stays-on-if-killed",
			   "should heapmedic be killed (SIGKILL) meanwhile, the sampling stays on: "
			   "`prof off` ends it");
	return err == -EOPNOTSUPP ? 0 : err;
}

static void set_cancel(struct process *p, const volatile sig_atomic_t *cancel)
{
	p->opts.cancel = cancel;
	if (p->session)
		session_set_cancel(p->session, cancel);
}

/* It has to be done whatever has ended the wait, so no signal may end it. */
static int off_again(struct context *c, struct reply *r, const struct allocator *jemalloc,
		     struct diag *d)
{
	struct process *p = c->process;
	bool was;
	int err;

	set_cancel(p, NULL);
	err = switch_to(c, jemalloc, false, &was, d);
	if (err)
		reply_warn(c, r, "still-on", "the sampling may still be on: `prof off` ends it");
	else
		err = jemalloc_prof_off_at_end(p, jemalloc, false, d);
	set_cancel(p, signals_cancel());
	return err == -EOPNOTSUPP ? 0 : err;
}

static int sample_until(struct context *c, const struct allocator *jemalloc, uint64_t end,
			struct diag *d)
{
	char time[SIZE_TEXT];
	bool was;
	int err = switch_to(c, jemalloc, true, &was, d);

	if (err)
		return err;
	context_note(c, "sampling for %s; Ctrl-C ends it sooner",
		     time_format(end - clock_now(), time));
	context_park(c);
	return nap_until(end, c->process->t.pidfd) == NAP_EXITED ? target_gone(&c->process->t, d)
								 : 0;
}

static void answer_for(struct context *c, struct reply *r, uint64_t ns)
{
	char time[SIZE_TEXT];
	uint64_t ms = ns / NS_PER_MS;

	reply_set(r, "old", json_false());
	reply_set(r, "new", json_false());
	reply_set(r, "seconds", json_real((double)ms / 1000));
	if (!c->set.json)
		fprintf(c->sink->out, "sampling was on for %s and is off again\n",
			time_format(ns, time));
}

static int on_for(struct context *c, struct reply *r, const struct allocator *jemalloc, uint64_t ns,
		  struct diag *d)
{
	uint64_t begun = clock_now();
	struct diag second;
	int err = prepare_end(c, r, jemalloc, d);

	if (err)
		return err;
	err = sample_until(c, jemalloc, begun + ns, d);
	if (err != -ESRCH) {
		int off = off_again(c, r, jemalloc, err ? &second : d);

		err = err ? err : off;
	}
	if (!err)
		answer_for(c, r, clock_now() - begun);
	return err;
}

int prof_on(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	uint64_t ns = 0;
	bool was;
	int err = prof_jemalloc(c, r, &jemalloc, d);

	if (!err && a->opt[PROF_FOR])
		err = time_parse_arg("--for", a->opt[PROF_FOR], &ns, d);
	if (err)
		return err;
	if (c->set.dry_run)
		return plan(c, r, "switch the sampling on");
	err = jemalloc_prof_require(c->process, jemalloc, &s, d);
	if (err)
		return err;
	warn_on(c, r, &s);
	if (a->opt[PROF_FOR] && !prof_is(&s, PROF_ACTIVE))
		return on_for(c, r, jemalloc, ns, d);
	if (a->opt[PROF_FOR])
		reply_warn(c, r, "was-on", "it was on before, so --for does not switch it off");
	err = switch_to(c, jemalloc, true, &was, d);
	if (!err)
		answer_switch(c, r, was, true);
	return err;
}

int prof_off(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	bool was;
	int err = prof_jemalloc(c, r, &jemalloc, d);

	(void)a;
	if (err)
		return err;
	if (c->set.dry_run)
		return plan(c, r, "switch the sampling off");
	err = jemalloc_prof_require(c->process, jemalloc, &s, d);
	if (!err)
		err = switch_to(c, jemalloc, false, &was, d);
	if (!err)
		answer_switch(c, r, was, false);
	return err;
}

/* ---- reset */

static int lg_arg(const char *text, uint64_t *lg, struct diag *d)
{
	char *end;

	errno = 0;
	*lg = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *lg <= LG_MAX)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-value",
			 "19 is one sample per 512 KiB, 20 half as many",
			 "LG is a number from 0 to %d, not '%.40s'", LG_MAX, text);
}

int check_prof_reset(const struct args *a, struct diag *d)
{
	uint64_t lg;

	return a->argc > 1 ? lg_arg(a->argv[1], &lg, d) : 0;
}

static void answer_reset(struct context *c, struct reply *r, uint64_t old, uint64_t new)
{
	char size[SIZE_TEXT];
	uint64_t bytes = (uint64_t)1 << new;

	reply_set(r, "old", json_u64(old));
	reply_set(r, "new", json_u64(new));
	reply_set(r, "sample_bytes", json_u64(bytes));
	if (!c->set.json)
		fprintf(c->sink->out,
			"all samples are forgotten; one per %s from now on (lg_sample %" PRIu64
			", %s %" PRIu64 ")\n",
			text_size(size, bytes, c->set.bytes), new, old == new ? "as before" : "was",
			old);
	if (new < LG_CHEAP)
		reply_warn(c, r, "sampling-costs",
			   "each sample walks the stack: one per %s slows the process down",
			   text_size(size, bytes, c->set.bytes));
}

int prof_reset(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	const struct allocator *jemalloc;
	struct prof_state s;
	uint64_t lg = 0;
	int err = prof_jemalloc(c, r, &jemalloc, d);

	if (!err && a->argc > 1)
		err = lg_arg(a->argv[1], &lg, d);
	if (err)
		return err;
	if (c->set.dry_run)
		return plan(c, r, "forget all samples");
	err = jemalloc_prof_require(c->process, jemalloc, &s, d);
	if (err)
		return err;
	if (a->argc < 2)
		lg = s.value[PROF_LG_SAMPLE];
	err = jemalloc_prof_reset(c->process, jemalloc, lg, d);
	if (!err)
		answer_reset(c, r, s.value[PROF_LG_SAMPLE], lg);
	return err;
}
