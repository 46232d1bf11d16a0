// SPDX-License-Identifier: GPL-3.0-or-later
/* prof on, off, reset. */
#include "prof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "../agent/jemalloc_prof.h"
#include "../inject/clock.h"
#include "context.h"
#include "nap.h"
#include "signals.h"

/*
 * Below this the process is slowed down for all to see. A malloc and free of 200 bytes, 20 frames
 * deep, took 30 ns without samples, 33 ns at 19 (jemalloc's default), 43 at 16, 54 at 15, 76 at 14.
 */
#define LG_CHEAP 16
#define LG_MAX	 63 /* jemalloc takes no more for larger ones (prof_reset_ctl) */

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

	if (!err && *was != on)
		remember(c, on);
	return err;
}

static int plan(struct context *c, struct reply *r, const char *what)
{
	if (c->set.json)
		reply_set(r, "dry_run", json_true());
	else
		fprintf(c->sink->out, "would %s%s\n", what, context_undone(c));
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

static int sample_for(struct context *c, const struct allocator *jemalloc, uint64_t begun,
		      uint64_t ns, struct diag *d)
{
	char time[SIZE_TEXT];
	bool was;
	int err = switch_to(c, jemalloc, true, &was, d);

	if (err)
		return err;
	context_note(c, "sampling for %s; Ctrl-C ends it sooner", time_format(ns, time));
	context_park(c);
	return nap_until(begun + ns, c->process->t.pidfd) == NAP_EXITED
		       ? target_gone(&c->process->t, d)
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
	err = sample_for(c, jemalloc, begun, ns, d);
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
	if (err)
		return err;
	remember(c, prof_is(&s, PROF_ACTIVE));
	answer_reset(c, r, s.value[PROF_LG_SAMPLE], lg);
	return 0;
}
