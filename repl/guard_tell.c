// SPDX-License-Identifier: GPL-3.0-or-later
#include "guard_tell.h"

#include <string.h>
#include <time.h>

#include "../agent/size.h"
#include "../inject/clock.h"
#include "fact_text.h"
#include "sink.h"

uint64_t guard_boot_now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_BOOTTIME, &t))
		return 0;
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static void send(struct guarding *x, const char *decision, const char *reason, json_t *more)
{
	struct context *c = x->c;
	struct envelope e = { .pid = c->pid,
			      .comm = c->comm[0] ? c->comm : NULL,
			      .command = "guard",
			      .exit = HM_OK,
			      .result = more ? more : json_object() };

	reply_member(x->r, e.result, "decision", json_string(decision));
	reply_member(x->r, e.result, "reason", json_text(reason, strlen(reason)));
	clock_gettime(CLOCK_REALTIME, &e.time);
	if (!e.result || sink_envelope(c->sink, &e))
		x->r->failed = true;
	json_decref(e.result);
}

static json_t *named_facts(struct guarding *x, const struct facts *f)
{
	json_t *all = facts_json(x->r, f), *o = json_object();

	for (unsigned id = 0; id < FACT_COUNT; id++) {
		const char *name = fact_info((enum fact_id)id)->name;

		if (expr_names(x->args.when, (enum fact_id)id))
			reply_member(x->r, o, name, json_incref(json_object_get(all, name)));
	}
	json_decref(all);
	return o;
}

void guard_tell(struct guarding *x, const char *decision, const char *reason,
		const struct cond *cond)
{
	struct context *c = x->c;
	bool same = strcmp(x->last, decision) == 0 && strcmp(decision, "act") != 0;
	char when[40] = "";
	time_t now = time(NULL);
	struct tm tm;

	snprintf(x->last, sizeof(x->last), "%s", decision);
	if (c->set.quiet && same)
		return;
	if (c->set.json) {
		json_t *o = json_object();

		reply_member(x->r, o, "facts", cond ? named_facts(x, &cond->facts) : json_object());
		reply_member(x->r, o, "action",
			     strcmp(decision, "act") == 0 ? json_string(x->args.action.v[0].argv[0])
							  : json_null());
		send(x, decision, reason, o);
		return;
	}
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ ", &tm);
	fprintf(c->sink->out, "%s%s:%d %s: %s\n", when, c->comm, (int)c->pid, decision, reason);
}

void guard_explain(const struct guarding *x, enum guard_decision decision, const struct cond *cond,
		   char *text, size_t size)
{
	char ago[SIZE_TEXT];

	if (decision == GUARD_UNKNOWN)
		snprintf(text, size, "%s (%s)", cond->missing, cond->text);
	else if (decision == GUARD_HOLD)
		snprintf(text, size, "still so since the last action (%s)", cond->text);
	else if (decision == GUARD_COOL)
		snprintf(text, size, "the last action was %s ago (%s)",
			 time_format(guard_boot_now() - x->acted_at, ago), cond->text);
	else if (decision == GUARD_SPENT)
		snprintf(text, size, "there were %llu actions, as many as --max allows (%s)",
			 (unsigned long long)x->guard.actions, cond->text);
	else
		snprintf(text, size, "%s", cond->text);
}

void guard_tell_pause(struct guarding *x, uint64_t cost, uint64_t pause)
{
	char took[SIZE_TEXT], every[SIZE_TEXT], asked[SIZE_TEXT];

	bool last = x->args.rule.max && x->guard.actions >= x->args.rule.max;

	if (x->told_pause || last || pause < 2 * x->args.every)
		return;
	x->told_pause = true;
	context_note(x->c,
		     "that took %s of CPU time: where it does, the next look is after %s, not %s",
		     time_format(cost, took), time_format(pause, every),
		     time_format(x->args.every, asked));
}

void guard_sum_up(struct guarding *x, uint64_t cpu, uint64_t ns)
{
	json_t *o;

	context_verbose(x->c, "guard: %llu looks, own CPU time %.3f %% of one CPU",
			(unsigned long long)x->looks,
			ns ? (double)(clock_cpu() - cpu) * 100 / (double)ns : 0);
	if (!x->c->set.json) {
		fprintf(x->c->sink->out,
			"guard ends: %llu looks, %llu actions, %llu of them failed\n",
			(unsigned long long)x->looks, (unsigned long long)x->guard.actions,
			(unsigned long long)x->guard.failed);
		return;
	}
	o = json_object();
	reply_member(x->r, o, "looks", json_u64(x->looks));
	reply_member(x->r, o, "actions", json_u64(x->guard.actions));
	reply_member(x->r, o, "failed", json_u64(x->guard.failed));
	reply_set(x->r, "summary", o);
}
