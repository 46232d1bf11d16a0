// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Every register that the CPU has comes back as it was: when a thread that computes is lent and
 * given back, and when heapmedic dies meanwhile and the thread goes back through the frame that was
 * written for that. The victim (spin.c) compares and complains.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "torture.h"

#ifdef __SANITIZE_ADDRESS__
enum { BRIEF = 12, BRIEF_STEP = 9 };
#else
enum { BRIEF = 24, BRIEF_STEP = 9 };
#endif
enum { MOST_POINTS = 2000 };

/* What the victim reports: in how many of its turns a frame was written while it was spinning. */
struct spun {
	unsigned turns, hits, asked;
	unsigned long long components;
};

static void spun_parse(const char *report, struct spun *s)
{
	cr_assert_eq(sscanf(report, "turns %u hits %u asked %u components %llx", &s->turns,
			    &s->hits, &s->asked, &s->components),
		     4, "the victim reports: %s", report);
}

static unsigned hits_now(struct patient *p)
{
	char report[128];
	struct spun s;

	victim_report(&p->v, report, sizeof(report));
	spun_parse(report, &s);
	return s.hits;
}

static void end(struct patient *p, struct spun *s)
{
	char report[128];

	cr_assert_eq(patient_end(p, report, sizeof(report)), 0, "it never waits");
	spun_parse(report, s);
}

/*
 * The spinning thread is lent again and again. A proxy is started once in a run, a direct call
 * holds the thread for each command; between two it gets the time for another turn.
 */
struct lent {
	const char *name, *arg; /* of the victim */
	const char *via;
	const char *script; /* its first command is a trim */
	unsigned holds;	    /* in one run */
	unsigned full, brief;
};

static void one_run(struct patient *p, const struct lent *l)
{
	const struct run_opts o = { .input = l->script };
	struct crash_args a;
	struct run r;
	json_t *reply;
	char words[64];

	snprintf(words, sizeof(words), "--json --via %s --thread %d", l->via, p->v.pid);
	crash_args(&a, p, words);
	run_with(&r, &o, a.v);
	run_expect(&r, 0);
	reply = run_json(&r, 0, p->v.pid, "trim");
	cr_assert_str_eq(json_text(reply, "result.via"), l->via);
	cr_assert_geq(json_int(reply, "result.held.threads"), 1);
	json_decref(reply);
	run_free(&r);
	victim_check(&p->v);
}

static void lend(const struct lent *l)
{
	const unsigned runs = torture_rounds(l->full, l->brief) / l->holds;
	const unsigned holds = runs * l->holds;
	static struct patient p;
	struct spun s;

	patient_start(&p, "spin", "ask", l->arg);
	for (unsigned i = 0; i < runs; i++) {
		one_run(&p, l);
		if (i % 16 == 0)
			state_same(&p.v, &p.before, STATE_HEAP_STILL);
	}
	end(&p, &s);
	cr_assert_gt(s.hits, holds / 2, "only %u of %u met the spinning code", s.hits, holds);
	cr_assert(!strstr(l->script, "stats") || s.asked > holds / 3,
		  "of %u calls only %u were asked how they were made", holds, s.asked);
	torture_figure("%s: %u times lent, %u of them (%u %%) while it spun; not one difference",
		       l->name, holds, s.hits, s.hits * 100 / holds);
}

Test(registers, of_a_thread_that_starts_a_proxy, .timeout = 3600)
{
	lend(&(struct lent){ "proxy", "two", "proxy", "trim\nstats\ninfo\n", 1, 2200, BRIEF });
}

#define TWELVE(s) s s s s s s s s s s s s

Test(registers, of_the_only_thread, .timeout = 3600)
{
	lend(&(struct lent){ "direct, one thread", NULL, "direct",
			     TWELVE("trim\nsleep 2ms\nstats\nsleep 2ms\ninfo\nsleep 2ms\n"), 36,
			     2000, 4 * BRIEF });
}

Test(registers, of_one_thread_of_two_that_makes_the_calls, .timeout = 3600)
{
	lend(&(struct lent){ "direct, two threads", "two", "direct",
			     TWELVE("trim\nsleep 2ms\ninfo\nsleep 2ms\n"), 24, 1000, 4 * BRIEF });
}

/* ---- through the frame of a heapmedic that has died */

/*
 * Killed in front of every request. Where a frame had been written by then, and not everything put
 * back, the registers come through it.
 */
static unsigned killed_everywhere(struct patient *p, const char *words, unsigned step,
				  unsigned *framed)
{
	unsigned point = 1, before = hits_now(p), last = 0;

	for (; point < MOST_POINTS && crash_at(p, point, words); point += step) {
		unsigned hits = hits_now(p);

		last = point;
		*framed += hits != before;
		before = hits;
		if (p->now.our_regions && !p->now.our_threads)
			patient_clean(p, "trim");
		before = hits_now(p);
	}
	cr_assert_lt(point, MOST_POINTS);
	cr_assert_gt(last, 20, "only %u places to be killed at", last);
	return point / step;
}

static void through_the_frame(const char *name, const char *arg, const char *const *words)
{
	const unsigned rounds = torture_rounds(6, 1), step = torture_full() ? 1 : BRIEF_STEP;
	static struct patient p;
	unsigned framed = 0, kills = 0;
	struct spun s;

	patient_start(&p, "spin", "eintr", arg);
	for (unsigned i = 0; i < rounds; i++)
		for (size_t k = 0; words[k]; k++)
			kills += killed_everywhere(&p, words[k], step, &framed);
	end(&p, &s);
	cr_assert_gt(framed, kills / 5, "a frame was there at only %u of %u kills", framed, kills);
	torture_figure("%s: %u kills, %u of them with a frame in place; not one difference", name,
		       p.crashes, framed);
}

Test(registers, through_the_frame_of_the_only_thread, .timeout = 3600)
{
	static const char *const words[] = { "trim", "stats", "info", NULL };

	through_the_frame("direct, one thread", NULL, words);
}

Test(registers, through_the_frame_of_one_of_two, .timeout = 3600)
{
	static const char *const words[] = { "--thread MAIN trim",
					     "--via direct --thread MAIN trim",
					     "--thread MAIN stats", NULL };

	through_the_frame("two threads", "two", words);
}

/* What the machine lacks is said, since nothing else here tells. */
Test(registers, the_machine_has_them_all, .timeout = 3600)
{
	static const struct {
		int bit;
		const char *name;
	} component[] = {
		{ 2, "ymm" }, { 5, "mask registers" }, { 6, "zmm" }, { 18, "AMX tiles" }
	};
	static struct patient p;
	char missing[128] = "";
	struct spun s;

	patient_start(&p, "spin", NULL, NULL);
	end(&p, &s);
	cr_assert_eq(s.components & 3, 3, "x87 and SSE are not among %#llx", s.components);
	for (size_t i = 0; i < sizeof(component) / sizeof(*component); i++)
		if (!(s.components >> component[i].bit & 1))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 "%s%s", missing[0] ? ", " : "", component[i].name);
	if (missing[0])
		torture_figure("NOT TESTED, this machine has none: %s", missing);
	else
		torture_figure("all were tested: x87, SSE, ymm, zmm, mask registers, AMX tiles");
}
