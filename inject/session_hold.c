// SPDX-License-Identifier: GPL-3.0-or-later
/* Which thread, and when: rounds over the ranked threads until one stands at a safe point. */
#include "session_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cause.h"
#include "clock.h"
#include "preflight.h"
#include "stray.h"
#include "threads.h"

/* Holds in the first round; each round may make twice as many, so that every thread gets its turn.
 */
#define FIRST_HOLDS 8
#define MOST_HOLDS  1024
#define FIRST_NAP   (200 * 1000ULL)
#define LONGEST_NAP (20 * NS_PER_MS)

struct search {
	uint64_t deadline;
	uint64_t frugal;      /* until then threads at no cost are waited for */
	bool hope;	      /* one of these may be had in the next round */
	unsigned tries;	      /* looks at a thread, held or not */
	unsigned holds, most; /* threads held so far; at most so many in one round */
	pid_t tid;	      /* the last one tried, and why not */
	char reason[200];
};

static int search_failed(const struct session *s, const struct search *f, struct diag *d)
{
	uint64_t ms = s->o.deadline_ns / NS_PER_MS;

	if (!f->tries)
		return cause_fail(d, -EAGAIN, CAUSE_NO_CANDIDATE,
				  "no thread could be borrowed within %" PRIu64 " ms%s%s", ms,
				  f->reason[0] ? ": " : "", f->reason);
	return cause_fail(d, -EAGAIN, CAUSE_NO_SAFE_POINT,
			  "no safe point within %" PRIu64 " ms and %u tries: thread %d: %s", ms,
			  f->tries, f->tid, f->reason);
}

static bool traced_by_another(const struct session *s, pid_t tid)
{
	struct proc_status st;
	char path[48];

	snprintf(path, sizeof(path), "task/%d/status", tid);
	return status_read(s->t->procfd, path, &st) == 0 && st.tracer;
}

/* Not this one, not now. */
static int leave(struct search *f, pid_t tid, const char *why)
{
	f->tries++;
	f->tid = tid;
	snprintf(f->reason, sizeof(f->reason), "%s", why);
	return 1;
}

/* One thread. 0: held. 1: not this one. Negative: no use to go on. */
static int try_thread(struct session *s, const struct thread *th, struct search *f, struct diag *d)
{
	pid_t tid = th->tid;
	const char *why;
	int rc = th->sp ? safepoint_preview(&s->b.sp, th->sp, th->pc, th->tcb) : 0;

	if (rc == 0) {
		f->hope = true;
		waited_prepare(&s->b.wait, s->t, th, s->b.options != 0);
		if (s->b.wait.ends_soon)
			return leave(f, tid, "its wait is just about to end by itself");
		f->holds++;
		rc = borrow_hold(&s->b, tid, f->deadline);
	}
	if (rc == 0)
		return 0;
	switch (rc) {
	case -EAGAIN:
		why = s->b.sp.reason;
		break;
	case -EBUSY:
		return cause_fail(d, rc, CAUSE_STOPPED, "process %d is stopped by a signal",
				  s->t->pid);
	case -ESRCH:
		if (!target_alive(s->t))
			return target_gone(s->t, d);
		return 1;
	case -EPERM:
		if (traced_by_another(s, tid)) {
			why = "it is traced by another process";
		} else if (preflight_may_attach(s->t)) {
			/* in the middle of execve(2) or of its end */
			why = "it could not be attached to at that moment";
		} else {
			preflight_explain_eperm(s->t, d);
			return rc;
		}
		break;
	case -EFAULT:
		why = "its stack cannot be read";
		break;
	case -ETIMEDOUT:
		/* only the search is over: why not before says more */
		if (f->tries && clock_now() >= f->deadline)
			return 1;
		why = "it did not stop in time, it may be stuck in the kernel";
		break;
	default:
		return diag_internal(d, rc, "holding a thread");
	}
	return leave(f, tid, why);
}

/* The owner of an arena is in a wait that cannot be interrupted: of a page that comes from swap, it
 * is short. */
static bool owner_waits(const struct threads *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].has_arena && list->v[i].state == 'D')
			return true;
	return false;
}

/*
 * The threads from here on cost something: an arena, or a wait that begins anew. On a busy machine
 * those before them need only more time, one that computes to get a CPU and stop.
 */
static bool too_dear(const struct session *s, const struct search *f)
{
	return f->hope && !s->o.thread && clock_now() < f->frugal;
}

static int try_round(struct session *s, struct search *f, struct diag *d)
{
	struct threads list;
	unsigned before = f->holds;
	bool found = false;
	size_t dear;
	int rc;

	/* One that came to its stop too late stands there until we let it go. */
	(void)stray_collect();
	rc = session_maps(s, d);

	if (rc)
		return rc;
	s->b.sp.maps = &s->maps;
	rc = threads_read(s->t, &list, d);
	if (rc)
		return rc;
	rc = threads_rank(s->t, &s->maps, s->mods, &list);
	if (rc) {
		threads_free(&list);
		return diag_internal(d, rc, "ranking threads");
	}
	s->block.arena_off = list.arena_off;
	f->hope = owner_waits(&list);
	dear = threads_at_no_cost(&list);
	rc = 1;
	for (size_t i = 0; i < list.n && f->holds - before < f->most && rc == 1; i++) {
		const struct thread *th = &list.v[i];

		if (s->o.thread && th->tid != s->o.thread)
			continue;
		if (i == dear && too_dear(s, f))
			break;
		found = true;
		if (!th->usable) {
			snprintf(f->reason, sizeof(f->reason), "thread %d: %s", th->tid,
				 th->reason ? th->reason : "not usable");
			continue;
		}
		rc = try_thread(s, th, f, d);
	}
	threads_free(&list);
	if (f->most < MOST_HOLDS)
		f->most *= 2;
	if (s->o.thread && !found)
		return diag_fail(d, -ESRCH, HM_GONE, "no-such-thread", "`threads` lists them",
				 "process %d has no thread %d", s->t->pid, s->o.thread);
	return rc;
}

int session_interrupted(const struct session *s, struct diag *d)
{
	if (!s->o.cancel || !*s->o.cancel)
		return 0;
	return diag_fail(d, -ECANCELED, HM_UNSAFE, "interrupted", "run the command again",
			 "interrupted before the call was made; nothing was touched");
}

/* 0 with a thread held at a safe point, or a diag. */
int session_hold(struct session *s, unsigned forbid, struct diag *d)
{
	const uint64_t now = clock_now();
	struct search f = { .deadline = now + s->o.deadline_ns,
			    .frugal = now + s->o.deadline_ns / 2,
			    .most = FIRST_HOLDS };
	uint64_t nap = FIRST_NAP;
	int rc;

	s->b.sp.forbid = forbid;
	for (;;) {
		rc = session_interrupted(s, d);
		if (rc == 0)
			rc = try_round(s, &f, d);
		if (rc != 1)
			return rc;
		if (clock_now() + nap > f.deadline)
			return search_failed(s, &f, d);
		stray_sleep(nap);
		if (nap < LONGEST_NAP)
			nap *= 2;
	}
}
