// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * heapmedic is killed at any instant: in front of each single request that touches the target, and
 * at times spread evenly over a run; also while it removes what an earlier one has left. After each
 * kill the victim is alive and as before; the next run takes away what is left.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash.h"
#include "torture.h"

enum { MOST_POINTS = 2000, REPORT_EVERY = 50 };
/* Under sanitizers the program takes half a second to start, and most of a run is that. */
#ifdef __SANITIZE_ADDRESS__
enum { BRIEF_KILLS = 10, BRIEF_STEP = 7, BRIEF_PAIR_STEP = 20 };
#else
enum { BRIEF_KILLS = 8, BRIEF_STEP = 17, BRIEF_PAIR_STEP = 70 };
#endif

/* Takes away what the last kill has left, if it is nobody's any more. */
static void take_away(struct patient *p, const char *words)
{
	if (p->now.our_regions && !p->now.our_threads)
		patient_clean(p, words);
}

static void end_with_figure(struct patient *p, const char *name)
{
	unsigned eintr = patient_end(p, NULL, 0);

	torture_figure("%s: %u kills, %u left something for the next run, as before after %.1f ms "
		       "at most; %u early EINTR",
		       name, p->crashes, p->with_rest, (double)p->longest_ns / 1e6, eintr);
}

/* ---- in front of every request */

static void at_every_point(struct patient *p, const char *words)
{
	const unsigned step = torture_full() ? 1 : BRIEF_STEP;
	/* briefly, other places each time */
	unsigned point = 1 + (unsigned)getpid() % step;

	for (; point < MOST_POINTS && crash_at(p, point, words); point += step)
		take_away(p, words);
	cr_assert_lt(point, MOST_POINTS);
	cr_assert_gt(point, 25, "%s: only %u places to be killed at", words, point);
}

/* A proxy in a process of one thread is only on demand: the first changes its libc for good (a
 * handler for signal 33, locks that are taken). */
static void admit(struct patient *p, const char *name, const char *arg, const char *const *words)
{
	patient_start(p, name, "eintr", arg);
	for (size_t i = 0; words[i]; i++)
		if (!strcmp(name, "single") && strstr(words[i], "--via proxy")) {
			run_ok(p->v.pid, "--via", "proxy", "trim", NULL);
			patient_admit(p);
			return;
		}
}

static void every_point(const char *title, const char *name, const char *arg,
			const char *const *words)
{
	static struct patient p;

	admit(&p, name, arg, words);
	for (size_t i = 0; words[i]; i++) {
		at_every_point(&p, words[i]);
		victim_report(&p.v, NULL, 0);
	}
	end_with_figure(&p, title);
}

Test(kill, at_every_request_with_a_proxy, .timeout = 3600)
{
	every_point("every request, proxy", "eight", NULL,
		    (const char *[]){ "trim", "stats", "info", NULL });
}

Test(kill, at_every_request_on_one_thread_of_several, .timeout = 3600)
{
	every_point("every request, direct", "eight", NULL,
		    (const char *[]){ "--via direct trim", "--via direct info", NULL });
}

Test(kill, at_every_request_on_the_only_thread, .timeout = 3600)
{
	every_point("every request, one thread", "single", NULL,
		    (const char *[]){ "trim", "stats", "info", "--via proxy trim", NULL });
}

Test(kill, at_every_request_on_a_thread_that_never_sleeps, .timeout = 3600)
{
	every_point("every request, one busy thread", "single", "busy",
		    (const char *[]){ "trim", "stats", NULL });
}

/* ---- at any time */

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How long a whole run takes, the middle of several. */
static uint64_t typical_run(const struct patient *p, const char *words)
{
	const struct run_opts o = { 0 };
	struct crash_args a;
	uint64_t ns[9];
	size_t n = torture_rounds(sizeof(ns) / sizeof(*ns), 3);

	crash_args(&a, p, words);
	for (size_t i = 0; i < n; i++) {
		struct run r;

		run_with(&r, &o, a.v);
		run_expect(&r, 0);
		ns[i] = r.ns;
		run_free(&r);
	}
	qsort(ns, n, sizeof(ns[0]), compare_times);
	return ns[n / 2];
}

/*
 * The i-th of a sequence of numbers in [0, 1) whose every stretch is spread evenly (the fractions
 * of i times the golden ratio), so that no phase of a run is left out by chance.
 */
static double spread(unsigned i, double start)
{
	double x = start + i * 0.61803398874989485;

	return x - (double)(unsigned)x;
}

/* How long a run takes, and how many have ended before they were killed since that was measured. */
struct pace {
	uint64_t span;
	unsigned tries, missed;
};

/* When many do, the machine has become less busy. */
static void kill_within(struct patient *p, struct pace *pace, double part, const char *words)
{
	pace->tries++;
	if (crash_after(p, (uint64_t)(part * (double)pace->span), words))
		return;
	pace->missed++;
	if (pace->missed * 4 > pace->tries)
		*pace = (struct pace){ .span = typical_run(p, words) };
}

static void any_time(const char *title, const char *name, const char *arg, unsigned full,
		     const char *const *words)
{
	const unsigned kills = torture_rounds(full, BRIEF_KILLS);
	static struct patient p;
	struct pace pace[8];
	unsigned n = 0;
	double start;

	srandom((unsigned)getpid());
	start = (double)(random() % 1000) / 1000;
	admit(&p, name, arg, words);
	for (; words[n]; n++)
		pace[n] = (struct pace){ .span = typical_run(&p, words[n]) };
	for (unsigned i = 0; i < kills; i++) {
		const char *w = words[i % n];

		kill_within(&p, &pace[i % n], spread(i / n, start), w);
		take_away(&p, w);
		if (i % REPORT_EVERY == 0)
			victim_report(&p.v, NULL, 0);
	}
	cr_assert_gt(p.crashes, kills / 3, "only %u of %u runs were killed before their end",
		     p.crashes, kills);
	end_with_figure(&p, title);
}

Test(kill, at_any_time_with_many_threads, .timeout = 3600)
{
	any_time("any time, eight threads", "eight", NULL, 1800,
		 (const char *[]){ "trim", "stats", "--via direct trim", NULL });
}

Test(kill, at_any_time_with_threads_inside_malloc, .timeout = 3600)
{
	any_time("any time, busy threads", "busy", NULL, 700,
		 (const char *[]){ "trim", "stats", "--via direct trim", NULL });
}

Test(kill, at_any_time_with_one_thread, .timeout = 3600)
{
	any_time("any time, one thread", "single", NULL, 1200,
		 (const char *[]){ "trim", "stats", "--via proxy trim", NULL });
}

Test(kill, at_any_time_with_one_thread_that_never_sleeps, .timeout = 3600)
{
	any_time("any time, one busy thread", "single", "busy", 700,
		 (const char *[]){ "trim", "stats", NULL });
}

Test(kill, at_any_time_with_registers_at_stake, .timeout = 3600)
{
	any_time("any time, a spinning thread", "spin", NULL, 600,
		 (const char *[]){ "trim", "stats", NULL });
}

/* ---- while it takes away what an earlier one has left */

/*
 * A proxy that nobody has opened lives for three seconds. So several victims are in treatment at
 * once: first a run is killed that leaves something, then the next, which takes it away.
 */
enum bed_phase { BED_FREE, BED_LEFT, BED_REST };
enum { BEDS = 12 };
static struct bed {
	struct patient p;
	enum bed_phase phase;
} bed[BEDS];

struct sweep {
	const char *first;
	unsigned first_point; /* where the first run is killed */
	const char *second;
	unsigned point, step; /* where the second is killed next */
	bool over;
	unsigned reaping; /* second runs that found something */
};

static void treat(struct bed *b, struct sweep *s)
{
	switch (b->phase) {
	case BED_FREE:
		if (s->over)
			return;
		cr_assert(crash_at(&b->p, s->first_point, s->first));
		b->phase = BED_LEFT;
		break;
	case BED_LEFT:
		s->reaping += b->p.now.our_regions != 0;
		s->over |= !crash_at(&b->p, s->point, s->second) || s->point > MOST_POINTS;
		s->point += s->step;
		b->phase = BED_REST;
		break;
	case BED_REST:
		take_away(&b->p, s->second);
		b->phase = BED_FREE;
		break;
	}
}

static void run_sweep(struct sweep *s)
{
	bool busy = true;

	while (!s->over || busy) {
		busy = false;
		for (size_t i = 0; i < BEDS; i++) {
			struct bed *b = &bed[i];

			if (b->phase != BED_FREE)
				patient_check(&b->p);
			if (!b->p.now.our_threads)
				treat(b, s);
			busy |= b->phase != BED_FREE;
		}
		sleep_ns(torture_rounds(200000, 5000000));
	}
	cr_assert_lt(s->point, MOST_POINTS);
	cr_assert_gt(s->reaping, 25 / s->step);
}

/* Where a killed run leaves a region behind: one that nobody uses, or one that a proxy sleeps in.
 */
struct leaving {
	unsigned fast[MOST_POINTS], slow[MOST_POINTS];
	size_t n_fast, n_slow;
};

static struct patient *free_bed(void)
{
	for (;; sleep_ns(1000000))
		for (size_t i = 0; i < BEDS; i++) {
			patient_check(&bed[i].p);
			if (!bed[i].p.now.our_threads)
				return &bed[i].p;
		}
}

static void leaving_points(const char *words, struct leaving *l)
{
	const unsigned step = torture_full() ? 1 : 5;
	bool killed = true;

	l->n_fast = l->n_slow = 0;
	for (unsigned i = 1; i < MOST_POINTS && killed; i += step) {
		struct patient *p = free_bed();

		take_away(p, words);
		killed = crash_at(p, i, words);
		/* one that sees its pipe closed goes at once */
		for (int k = 0; k < 50 && p->now.our_threads; k++) {
			sleep_ns(1000000);
			patient_check(p);
		}
		if (p->now.our_threads)
			l->slow[l->n_slow++] = i;
		else if (p->now.our_regions)
			l->fast[l->n_fast++] = i;
	}
	cr_assert_gt(l->n_fast, 2, "%s: a region was left at only %zu points", words, l->n_fast);
}

/* Both ways to take away what a run killed there has left, and killed everywhere on the way. */
static void sweep_both(const char *first, unsigned first_point)
{
	static const char *const second[] = { "trim", "--via direct trim" };

	for (size_t i = 0; i < 2; i++) {
		struct sweep s = { .first = first,
				   .first_point = first_point,
				   .second = second[i],
				   .point = torture_full()
						    ? 1
						    : 1 + (unsigned)random() % BRIEF_PAIR_STEP,
				   .step = torture_full() ? 1 : BRIEF_PAIR_STEP };

		run_sweep(&s);
	}
}

Test(kill, while_it_takes_away_what_was_left, .timeout = 3600)
{
	static const char *const first[] = { "trim", "--via direct trim" };
	static struct leaving l;
	unsigned crashes = 0;
	uint64_t longest = 0;

	srandom((unsigned)getpid());
	for (size_t i = 0; i < BEDS; i++)
		patient_start(&bed[i].p, "eight", "eintr", NULL);
	for (size_t i = 0; i < 2; i++) {
		/* briefly, one of the two ways each time */
		if (!torture_full() && i != (size_t)getpid() % 2)
			continue;
		leaving_points(first[i], &l);
		sweep_both(first[i], l.fast[0]);
		if (torture_full()) {
			sweep_both(first[i], l.fast[l.n_fast / 2]);
			sweep_both(first[i], l.fast[l.n_fast - 1]);
		}
		if (l.n_slow)
			sweep_both(first[i], l.slow[l.n_slow / 2]);
	}
	for (size_t i = 0; i < BEDS; i++) {
		patient_end(&bed[i].p, NULL, 0);
		crashes += bed[i].p.crashes;
		longest = bed[i].p.longest_ns > longest ? bed[i].p.longest_ns : longest;
	}
	torture_figure("the next run killed too: %u kills, as before after %.1f ms at most",
		       crashes, (double)longest / 1e6);
}
