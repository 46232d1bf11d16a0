// SPDX-License-Identifier: GPL-3.0-or-later
#include "scrape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../agent/look_facts.h"
#include "../agent/pace.h"
#include "../agent/process.h"
#include "../inject/clock.h"
#include "../inject/status.h"
#include "metrics.h"

/* After a process could not be asked: not at once again, each try holds one of its threads. */
#define ASK_AGAIN (600 * NS_PER_SEC)

struct served {
	struct context c; /* its own: pid, process, session */
	struct facts facts;
	struct pace pace;  /* of the looks at its heap */
	uint64_t looked;   /* when the last one began */
	uint64_t ask_from; /* its allocator is not asked before */
	bool wanted, known;
	char told[32]; /* the code of the last error that was told */
};

struct scrape {
	struct context *c;
	struct scrape_plan plan;
	struct served *v[SCRAPE_PROCESSES];
	size_t n;
	size_t *found, *up; /* of each selector: processes there are, and those that are known */
	char *text;
	size_t len;
	uint64_t taken, looks;
	bool told_cut;
	enum hm_exit worst;
};

int scrape_new(struct context *c, const struct scrape_plan *plan, struct scrape **out)
{
	struct scrape *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->c = c;
	s->plan = *plan;
	s->found = calloc(plan->n, sizeof(*s->found));
	s->up = calloc(plan->n, sizeof(*s->up));
	if (!s->found || !s->up) {
		(void)scrape_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

/* ---- who is served */

/* With one that has ended there is nothing to be put right. */
static void end_process(struct scrape *s, struct served *p)
{
	enum hm_exit end = HM_OK;
	char warn[256];
	struct diag d;

	diag_clear(&d);
	if (!p->c.process || target_alive(&p->c.process->t))
		end = context_end(&p->c);
	else
		(void)process_close(p->c.process, &d, warn, sizeof(warn));
	p->c.process = NULL;
	if (end > s->worst)
		s->worst = end;
}

static void leave(struct scrape *s, struct served *p)
{
	end_process(s, p);
	free(p);
}

static struct served *find(struct scrape *s, pid_t pid)
{
	struct served *p;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i]->c.pid == pid)
			return s->v[i];
	if (s->n == SCRAPE_PROCESSES) {
		if (!s->told_cut)
			context_note(s->c, "there are more than %d processes: the rest is left out",
				     SCRAPE_PROCESSES);
		s->told_cut = true;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->c.base = p->c.set = s->c->set;
	p->c.sink = s->c->sink;
	p->c.pid = pid;
	s->v[s->n++] = p;
	return p;
}

/* Those that nobody names any more are gone, or have another name now. */
static void leave_unwanted(struct scrape *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i]->wanted)
			s->v[kept++] = s->v[i];
		else
			leave(s, s->v[i]);
	s->n = kept;
}

/* ---- looking */

/* The same is told once, until it has changed or was well in between. */
static void tell(struct served *p, const struct diag *d)
{
	if (strcmp(p->told, d->code) == 0)
		return;
	snprintf(p->told, sizeof(p->told), "%s", d->code);
	context_note(&p->c, "pid %d: %s%s%s", (int)p->c.pid, d->text, d->hint[0] ? "; next: " : "",
		     d->hint);
}

/* Why an allocator could not be asked, NULL where all could that are in use. A jemalloc without
 * statistics has answered what it can. */
static const char *refusal(const struct look *l)
{
	bool answered = facts_known(&l->facts, FACT_JEMALLOC_PURGEABLE);

	if (l->jemalloc_unasked[0] && !answered)
		return l->jemalloc_unasked;
	if (l->tcmalloc.unasked[0])
		return l->tcmalloc.unasked;
	return l->mimalloc.unasked[0] ? l->mimalloc.unasked : NULL;
}

static int look_whole(struct scrape *s, struct served *p, struct diag *d)
{
	uint64_t now = clock_now();
	bool call = s->plan.call && now >= p->ask_from;
	struct process *process;
	const char *why;
	struct look l;
	int err = context_process(&p->c, &process, d);

	if (!err)
		err = look_take(process, call, &l, d);
	if (err)
		return err;
	p->facts = l.facts;
	p->looked = now;
	s->looks++;
	why = call ? refusal(&l) : NULL;
	if (why) {
		context_note(&p->c, "pid %d: its allocator is asked again in 10 minutes: %s",
			     (int)p->c.pid, why);
		p->ask_from = now + ASK_AGAIN;
	}
	look_free(&l);
	context_park(&p->c);
	return 0;
}

/* What the kernel tells at once is of now also where the rest is older. */
static int look_quick(struct served *p, struct diag *d)
{
	struct facts quick = { 0 };
	int err = look_facts_quick(p->c.process, &quick, d);

	for (unsigned id = 0; !err && id < FACT_COUNT; id++)
		if (fact_info((enum fact_id)id)->cost == COST_QUICK)
			p->facts.v[id] = quick.v[id];
	return err;
}

/* Another process has its number by now, or none. */
static void forget(struct scrape *s, struct served *p)
{
	end_process(s, p);
	p->known = false;
	p->pace = (struct pace){ 0 };
	p->ask_from = 0;
}

/* 0, or the error; what is not known yet and not to be looked at yet stays so. */
static int look(struct scrape *s, struct served *p, struct diag *d)
{
	uint64_t begun = clock_now(), cpu = clock_cpu();
	int err = 0;

	if (p->c.process && !target_alive(&p->c.process->t))
		forget(s, p);
	if (pace_due(&p->pace, begun, s->plan.least)) {
		err = look_whole(s, p, d);
		pace_done(&p->pace, begun, clock_cpu() - cpu);
		p->known = !err;
	} else if (p->known) {
		err = look_quick(p, d);
		p->known = !err;
	}
	if (err)
		tell(p, d);
	else if (p->known)
		p->told[0] = '\0';
	return err;
}

static void look_at_selector(struct scrape *s, size_t i)
{
	pid_t *pid = NULL;
	size_t n = 0;
	struct diag d;

	diag_clear(&d);
	s->found[i] = s->up[i] = 0;
	if (targets_resolve(&s->plan.v[i], 1, &pid, &n, &d)) {
		if (d.exit != HM_GONE)
			context_verbose(s->c, "%s", d.text);
		return;
	}
	s->found[i] = n;
	for (size_t k = 0; k < n; k++) {
		struct served *p = find(s, pid[k]);

		diag_clear(&d);
		if (!p)
			continue;
		if (!p->wanted && look(s, p, &d) && d.exit == HM_GONE)
			s->found[i]--;
		p->wanted = true;
		s->up[i] += p->known;
	}
	free(pid);
}

/* ---- the text */

/* A time of clock_now, by the calendar. */
static void wall_clock(uint64_t then, struct timespec *out)
{
	uint64_t age = clock_now() - then;

	clock_gettime(CLOCK_REALTIME, out);
	out->tv_sec -= (time_t)(age / NS_PER_SEC);
	out->tv_nsec -= (long)(age % NS_PER_SEC);
	if (out->tv_nsec < 0) {
		out->tv_nsec += (long)NS_PER_SEC;
		out->tv_sec--;
	}
}

static int add_all(struct scrape *s, struct metrics *m)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct served *p = s->v[i];
		struct timespec when;

		if (!p->known)
			continue;
		wall_clock(p->looked, &when);
		if (metrics_add(m, p->c.pid, p->c.comm, &p->facts, &when))
			return -ENOMEM;
	}
	return 0;
}

/* Two samples of the same name and labels Prometheus does not take. */
static bool is_repeated(const struct scrape_plan *plan, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (plan->v[k].kind == plan->v[i].kind &&
		    strcmp(plan->v[k].text, plan->v[i].text) == 0)
			return true;
	return false;
}

/* Labels are UTF-8: what the command line has of other bytes is escaped, as in a process's name. */
static void put_selector(const struct selector *v, FILE *out)
{
	static const char *const by[] = {
		[SELECT_PID] = "pid", [SELECT_NAME] = "name", [SELECT_CGROUP] = "cgroup"
	};
	size_t size = strlen(v->text) * 4 + 1;
	char *safe = malloc(size);

	if (safe)
		escape_copy(safe, size, v->text, strlen(v->text));
	fputs("{target=\"", out);
	metrics_label(out, safe ? safe : "?");
	fprintf(out, "\",by=\"%s\"} ", by[v->kind]);
	free(safe);
}

/* A sample of each name, pid or cgroup that was given: 1 where value is above 0, or value itself.
 */
static void put_selectors(const struct scrape *s, const char *name, const char *help,
			  const size_t *value, bool is, FILE *out)
{
	metrics_head(out, name, "gauge", help);
	for (size_t i = 0; i < s->plan.n; i++) {
		if (is_repeated(&s->plan, i))
			continue;
		fputs(name, out);
		put_selector(&s->plan.v[i], out);
		fprintf(out, "%zu\n", is ? value[i] > 0 : value[i]);
	}
}

static void put_all(const struct scrape *s, const struct metrics *m, uint64_t begun, FILE *out)
{
	metrics_write(m, out);
	put_selectors(s, "heapmedic_up",
		      "Was a process of that name, pid or cgroup there, and looked at", s->up, true,
		      out);
	put_selectors(s, "heapmedic_processes",
		      "Processes that have that name or pid, or are in that cgroup", s->found,
		      false, out);
	metrics_head(out, "heapmedic_scrape_seconds", "gauge",
		     "How long it took to gather these numbers");
	fprintf(out, "heapmedic_scrape_seconds %.6f\n", (double)(clock_now() - begun) / NS_PER_SEC);
	metrics_head(out, "heapmedic_build_info", "gauge", "The version of heapmedic");
	fputs("heapmedic_build_info{version=\"" HM_VERSION "\"} 1\n", out);
}

static int write_text(struct scrape *s, uint64_t begun)
{
	struct metrics m = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err = out ? add_all(s, &m) : -ENOMEM;

	if (!err)
		put_all(s, &m, begun, out);
	metrics_free(&m);
	if (out && (ferror(out) | fclose(out)))
		err = -ENOMEM;
	if (err) {
		free(text);
		return err;
	}
	free(s->text);
	s->text = text;
	s->len = len;
	return 0;
}

int scrape_take(struct scrape *s, const char **text, size_t *len)
{
	uint64_t begun = clock_now();
	int err = 0;

	if (!s->text || begun - s->taken >= s->plan.least) {
		for (size_t i = 0; i < s->n; i++)
			s->v[i]->wanted = false;
		for (size_t i = 0; i < s->plan.n; i++)
			look_at_selector(s, i);
		leave_unwanted(s);
		err = write_text(s, begun);
		if (!err)
			s->taken = clock_now();
	}
	*text = s->text;
	*len = s->len;
	return err;
}

uint64_t scrape_looks(const struct scrape *s)
{
	return s->looks;
}

enum hm_exit scrape_free(struct scrape *s)
{
	enum hm_exit worst;

	for (size_t i = 0; i < s->n; i++)
		leave(s, s->v[i]);
	worst = s->worst;
	free(s->found);
	free(s->up);
	free(s->text);
	free(s);
	return worst;
}
