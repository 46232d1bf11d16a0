// SPDX-License-Identifier: GPL-3.0-or-later
/* guard: looks at a process again and again, and runs a command when a condition becomes true. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../agent/process.h"
#include "../inject/clock.h"
#include "cond.h"
#include "guard_lock.h"
#include "guard_tell.h"
#include "nap.h"
#include "signals.h"
#include "targets.h"

int check_guard(const struct args *a, struct diag *d)
{
	struct guard_args g;
	int err = guard_args(a, &g, d);

	if (!err)
		guard_args_free(&g);
	return err;
}

unsigned effect_guard(const struct args *a)
{
	unsigned effect = CMD_PASSIVE | CMD_CALLS | CMD_WRITES;
	struct guard_args g;
	struct diag d;

	if (guard_args(a, &g, &d))
		return effect;
	effect = g.effect;
	guard_args_free(&g);
	return effect;
}

/* ---- acting */

static void run_action(struct guarding *x)
{
	const struct settings *outer = x->c->over;
	struct settings mine = x->c->set;
	bool unmet = x->c->unmet;
	enum hm_exit code;

	mine.yes = true; /* what was agreed to when the guard was started */
	x->c->over = &mine;
	code = command_run(x->c, x->args.action.v[0].argc, x->args.action.v[0].argv);
	x->c->over = outer;
	/* a `require` in it ends no runbook that the guard stands in */
	x->c->unmet = unmet;
	guard_acted(&x->guard, code);
	x->action_known = true;
	x->acted_at = guard_boot_now();
}

/* With the lock of the process: nobody else acts on it meanwhile, and what others did counts. */
static int act(struct guarding *x, const struct cond *cond, struct diag *d)
{
	char text[2 * EXPR_TEXT];
	struct guard_lock lock = { .fd = -1 };
	uint64_t last = 0, now;
	pid_t holder;
	int err = 0;

	if (!x->c->set.dry_run)
		err = guard_lock_take(&x->c->process->t, &lock, &last, &holder, d);
	if (err == -EBUSY) {
		snprintf(text, sizeof(text), "process %d acts on it right now (%s)", (int)holder,
			 cond->text);
		guard_tell(x, "busy", text, cond);
		return 0;
	}
	if (err)
		return err;
	now = guard_boot_now();
	if (last && now > last && now - last < x->args.rule.cooldown) {
		guard_lock_end(&lock, 0);
		x->action_known = true;
		x->acted_at = last;
		guard_explain(x, GUARD_COOL, cond, text, sizeof(text));
		guard_tell(x, guard_decision_name(GUARD_COOL), text, cond);
		return 0;
	}
	guard_lock_acts(&lock, now);
	x->acted_on = cond->facts;
	guard_tell(x, guard_decision_name(GUARD_ACT), cond->text, cond);
	run_action(x);
	guard_lock_end(&lock, x->acted_at);
	return 0;
}

/* ---- looking */

static int is_clear(struct guarding *x, const struct cond *when, bool *clear, struct diag *d)
{
	struct cond c;
	int err;

	*clear = guard_is_clear(x->args.when, when->truth, x->guard.acted ? &x->acted_on : NULL,
				&when->facts);
	if (!x->args.clear || !x->guard.acted)
		return 0;
	err = cond_find(x->c, x->args.clear, &c, d);
	*clear = !err && c.truth == EXPR_TRUE;
	return err;
}

static int look(struct guarding *x, struct diag *d)
{
	char text[2 * EXPR_TEXT], warn[256];
	enum guard_decision decision;
	struct process *p;
	struct cond cond;
	bool clear;
	int err = context_process(x->c, &p, d);

	if (!err)
		err = cond_find(x->c, x->args.when, &cond, d);
	if (!err)
		err = is_clear(x, &cond, &clear, d);
	if (err)
		return err;
	x->looks++;
	decision = guard_decide(&x->args.rule, &x->guard, cond.truth, clear,
				x->action_known ? guard_boot_now() - x->acted_at : UINT64_MAX);
	/* told to end while it looked: nothing is begun any more */
	if (decision == GUARD_ACT && *signals_cancel())
		return 0;
	if (decision == GUARD_ACT) {
		err = act(x, &cond, d);
	} else {
		guard_explain(x, decision, &cond, text, sizeof(text));
		guard_tell(x, guard_decision_name(decision), text, &cond);
	}
	/* nothing of ours stays in the target until the next look */
	if (!err && x->c->process)
		err = context_end_session(x->c, warn, sizeof(warn), d);
	return err;
}

/* ---- from one process to the next */

static bool is_gone(const struct context *c, const struct diag *d)
{
	return d->exit == HM_GONE || d->exit == HM_DIED ||
	       (c->process && !target_alive(&c->process->t));
}

static void leave_process(struct guarding *x)
{
	struct context *c = x->c;
	char warn[256];
	struct diag d;

	diag_clear(&d);
	if (!c->process)
		return;
	(void)!process_close(c->process, &d, warn, sizeof(warn));
	c->process = NULL;
	x->guard.acted = x->action_known = false;
}

/* The service has been started anew: a process of that name. 0 also where there is none yet. */
static int find_next(struct guarding *x, struct diag *d)
{
	const struct selector by_name = { SELECT_NAME, x->c->name };
	struct process *p;
	pid_t *pid = NULL;
	size_t n = 0;
	int err = targets_resolve(&by_name, 1, &pid, &n, d);

	if (err && d->exit != HM_GONE)
		return err;
	if (err) {
		diag_clear(d);
		return 0;
	}
	x->c->pid = pid[0];
	x->c->vars.pid = pid[0];
	free(pid);
	err = context_process(x->c, &p, d);
	if (err && is_gone(x->c, d)) {
		diag_clear(d);
		return 0;
	}
	if (!err)
		guard_tell(x, "found",
			   n > 1 ? "started anew; the first of several of that name"
				 : "started anew",
			   NULL);
	return err;
}

/* One period. *pause is how long to wait for the next one. */
static int one_period(struct guarding *x, uint64_t *pause, struct diag *d)
{
	uint64_t cpu = clock_cpu();
	int err = 0;

	*pause = x->args.every;
	if (!x->c->process && x->c->name)
		err = find_next(x, d);
	if (err || (!x->c->process && x->c->name))
		return err;
	err = look(x, d);
	cpu = clock_cpu() - cpu;
	*pause = guard_pause(x->args.every, cpu);
	guard_tell_pause(x, cpu, *pause);
	if (!err)
		return 0;
	if (is_gone(x->c, d)) {
		if (x->c->process)
			guard_lock_forget(&x->c->process->t);
		if (!x->c->name)
			return err;
		guard_tell(x, "gone", "the process has ended; waiting for one of that name", NULL);
		leave_process(x);
		diag_clear(d);
		return 0;
	}
	/* it executes another program right now, or moves: the next look tells more */
	if (d->exit == HM_UNSAFE || d->exit == HM_RUNNING) {
		guard_tell(x, guard_decision_name(GUARD_UNKNOWN), d->text, NULL);
		diag_clear(d);
		return 0;
	}
	return err;
}

static int watch_over(struct guarding *x, struct diag *d)
{
	uint64_t began = clock_now(), pause;
	bool on = true;
	int err = 0;

	while (!err && on) {
		uint64_t until, end = x->args.span ? began + x->args.span : UINT64_MAX;
		int pidfd;

		err = one_period(x, &pause, d);
		if (err || sink_flush(x->c->sink) ||
		    (x->args.rule.max && x->guard.actions >= x->args.rule.max))
			break;
		until = clock_now() + pause;
		pidfd = x->c->process ? x->c->process->t.pidfd : -1;
		on = nap_until(until < end ? until : end, pidfd) != NAP_CANCELLED &&
		     clock_now() < end;
	}
	return err;
}

int guard_one_target(size_t targets, struct diag *d)
{
	if (targets < 2)
		return 0;
	return diag_fail(d, -EINVAL, HM_USAGE, "usage", "start one guard for each (-p PID)",
			 "guard watches over one process, %zu are given", targets);
}

/* What its actions came to counts more than that it has ended, or that the process has. */
static int end_as(const struct guarding *x, int err, struct diag *d)
{
	enum hm_exit code = guard_exit(&x->args.rule, &x->guard);

	if (code == HM_OK || (err && d->exit >= code))
		return err;
	return diag_fail(d, -ECANCELED, code, "action-failed", "its own error stands above",
			 "%llu of %llu actions failed, the last or the worst with exit code %d",
			 (unsigned long long)x->guard.failed, (unsigned long long)x->guard.actions,
			 (int)code);
}

int cmd_guard(struct context *c, const struct args *a, struct reply *r, struct diag *d)
{
	struct guarding x = { .c = c, .r = r };
	uint64_t cpu = clock_cpu(), began = clock_now();
	int err = guard_one_target(c->targets, d);

	if (!err)
		err = guard_args(a, &x.args, d);
	if (err)
		return err;
	if (!c->set.dry_run)
		err = guard_lock_check(d);
	if (!err) {
		err = watch_over(&x, d);
		guard_sum_up(&x, cpu, clock_now() - began);
		err = end_as(&x, err, d);
	}
	guard_args_free(&x.args);
	return err;
}
