// SPDX-License-Identifier: GPL-3.0-or-later
#include "crash.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a killed run ends by itself within this. A loaded machine gets more for the first
 * look. */
#define LIFE_NS	 5000000000ull
#define STUCK_NS 20000000000ull
#define NAP_NS	 100000ull

void patient_start(struct patient *p, const char *name, const char *arg1, const char *arg2)
{
	memset(p, 0, sizeof(*p));
	victim_start_named(&p->v, name, arg1, arg2);
	patient_admit(p);
}

void patient_admit(struct patient *p)
{
	/* it has been in all of its states once */
	victim_report(&p->v, NULL, 0);
	state_take(&p->v, &p->before);
}

void crash_args(struct crash_args *a, const struct patient *p, const char *words)
{
	static char text[256];
	size_t n = 0;

	memset(a, 0, sizeof(*a));
	snprintf(a->pid, sizeof(a->pid), "%d", p->v.pid);
	snprintf(text, sizeof(text), "%s", words);
	a->v[n++] = "-p";
	a->v[n++] = a->pid;
	a->v[n++] = "--deadline";
	a->v[n++] = "20s";
	for (char *at = text, *w; (w = strtok_r(at, " ", &at)) && n < RUN_ARGS;)
		a->v[n++] = strcmp(w, "MAIN") ? w : a->pid;
}

/* The program with places to be killed at lies beside the tests. */
static const char *fault_program(void)
{
	const char *path = getenv("HEAPMEDIC_FAULT");

	return path ? path : "build/heapmedic-fault";
}

/* Runs it to where it is killed; false if it has come to its end before, with exit 0. */
static bool is_killed(const struct run_opts *o, const char *const *args)
{
	struct run r;
	bool killed;

	run_with(&r, o, args);
	killed = r.sig == SIGKILL;
	if (!killed)
		run_expect(&r, 0);
	run_free(&r);
	return killed;
}

bool crash_run_at(unsigned point, const char *const *args)
{
	const struct run_opts o = { .program = fault_program() };
	char text[16];
	bool killed;

	snprintf(text, sizeof(text), "%u", point);
	setenv("HEAPMEDIC_KILL_AT", text, 1);
	killed = is_killed(&o, args);
	unsetenv("HEAPMEDIC_KILL_AT");
	return killed;
}

static bool look_after(struct patient *p, bool killed)
{
	size_t before = p->now.our_regions;

	p->crashes += killed;
	patient_check(p);
	p->with_rest += p->now.our_regions > before;
	return killed;
}

bool crash_at(struct patient *p, unsigned point, const char *words)
{
	struct crash_args a;

	crash_args(&a, p, words);
	return look_after(p, crash_run_at(point, a.v));
}

bool crash_after(struct patient *p, uint64_t ns, const char *words)
{
	const struct run_opts o = { .kill_after_ns = ns ? ns : 1 };
	struct crash_args a;

	crash_args(&a, p, words);
	return look_after(p, is_killed(&o, a.v));
}

/* The oldest is enough: it is the first to go. */
static void watch_ours(struct patient *p)
{
	if (!p->now.our_threads || p->now.our_tid != p->ours) {
		p->ours = p->now.our_tid;
		p->ours_since = now_ns();
		return;
	}
	cr_assert_lt(now_ns() - p->ours_since, LIFE_NS,
		     "thread %d of a killed run is still there after 5 s", p->ours);
}

void patient_check(struct patient *p)
{
	const uint64_t until = now_ns() + LIFE_NS;
	char why[512] = "";
	uint64_t took, start = now_ns();

	for (;;) {
		victim_check(&p->v);
		state_look(&p->v, &p->now);
		watch_ours(p);
		if (!state_differs(&p->before, &p->now, STATE_HEAP_STILL, why, sizeof(why)))
			break;
		cr_assert_lt(now_ns(), until, "5 s after the kill: %s", why);
		sleep_ns(NAP_NS);
	}
	took = now_ns() - start;
	p->longest_ns = took > p->longest_ns ? took : p->longest_ns;
}

/*
 * A killed run may have let go of a thread that has not yet come to run: what it does for us begins
 * when the check is over, and a whole run leaves the region to it. Once that is over too, within 5
 * s, the next run takes the region away.
 */
void patient_clean(struct patient *p, const char *words)
{
	const uint64_t until = now_ns() + LIFE_NS;
	const struct run_opts o = { 0 };
	struct crash_args a;
	struct run r;
	bool late;

	cr_assert_eq(p->now.our_threads, 0);
	do {
		late = now_ns() > until;
		crash_args(&a, p, words);
		run_with(&r, &o, a.v);
		run_expect(&r, 0);
		patient_check(p);
		cr_assert(!p->now.our_regions || !late,
			  "after 5 s a whole run has left %zu regions; it said: %s %s",
			  p->now.our_regions, r.out, r.err);
		run_free(&r);
	} while (p->now.our_regions);
}

void patient_settle(struct patient *p)
{
	const uint64_t until = now_ns() + STUCK_NS;

	do {
		patient_check(p);
		if (!p->now.our_threads)
			return;
		sleep_ns(NAP_NS * 10);
	} while (now_ns() < until);
	cr_assert_fail("thread %d of a killed run is still there", p->now.our_tid);
}

unsigned patient_end(struct patient *p, char *more, size_t size)
{
	unsigned eintr;

	patient_settle(p);
	if (p->now.our_regions)
		patient_clean(p, "trim");
	state_same(&p->v, &p->before, STATE_HEAP_STILL);
	eintr = victim_report(&p->v, more, size);
	victim_stop(&p->v);
	return eintr;
}
