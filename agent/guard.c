// SPDX-License-Identifier: GPL-3.0-or-later
#include "guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "../inject/cause.h"
#include "../inject/clock.h"
#include "../inject/starved.h"
#include "glibc_live.h"

#define LIMIT	    (200 * NS_PER_MS) /* of a look before a call: 100,000 free chunks or so */
#define LIMIT_EVERY (300 * NS_PER_MS) /* of one at every chunk: half a GiB or so */
/* No step of malloc between two consistent states is longer, but for system calls. */
#define PROGRESS (3 * NS_PER_MS)
/* Who holds a lock for so long does not get on, or waits for a CPU. */
#define STUCK_FIRST  4
#define STUCK_LOOKS  36
#define STUCK_NAP    (5 * NS_PER_MS)
#define STUCK_ROUNDS 10
#define LINE	     256

/* The only thread of a process: how far it has come. */
struct witness {
	const struct target *t;
	uint64_t ran; /* ns on a CPU when it was first asked */
};

static int read_number(const struct target *t, const char *name, uint64_t *out, char state[LINE])
{
	char path[64], *text;
	size_t len;
	int rc;

	snprintf(path, sizeof(path), "task/%d/%s", (int)t->pid, name);
	rc = proc_read(t->procfd, path, LINE, &text, &len);
	if (rc)
		return rc;
	snprintf(state, LINE, "%s", text);
	*out = strtoull(text, NULL, 10);
	free(text);
	return 0;
}

/* Asleep in a call that malloc does not make. */
static bool sleeps_outside(const struct target *t)
{
	static const long own[] = { SYS_brk,	  SYS_mmap,    SYS_munmap, SYS_mremap,
				    SYS_mprotect, SYS_madvise, SYS_futex };
	char text[LINE];
	uint64_t nr;

	if (read_number(t, "syscall", &nr, text) || text[0] < '0' || text[0] > '9')
		return false;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if ((long)nr == own[i])
			return false;
	return true;
}

/*
 * With several threads the arena's lock tells who is inside. A single one takes no lock: what looks
 * damaged may be half of a change, for as long as the thread gets no CPU.
 */
static bool at_rest(void *ctx, bool begin)
{
	struct witness *w = ctx;
	struct proc_status st;
	char text[LINE];
	uint64_t now = 0;

	if (begin) {
		if (read_number(w->t, "schedstat", &w->ran, text))
			w->ran = UINT64_MAX;
		return true;
	}
	if (status_read(w->t->procfd, "status", &st) || st.threads != 1 || sleeps_outside(w->t))
		return true;
	return w->ran != UINT64_MAX && !read_number(w->t, "schedstat", &now, text) &&
	       now > w->ran + PROGRESS;
}

static void wait_for(void *ctx, uint64_t ns)
{
	(void)ctx;
	clock_sleep(ns);
}

/* Is the lock held all the time, by somebody who changes nothing? */
static bool is_still(const struct glibc_view *v, uint64_t at, const struct glibc_arena *first,
		     struct glibc_arena *now, unsigned looks)
{
	for (unsigned i = 0; i < looks; i++) {
		clock_sleep(STUCK_NAP);
		v->r->refresh(v->r->ctx);
		/* 1 becomes 2 when somebody waits for it */
		if (glibc_arena_read(v, at, 0, now) || !now->mutex ||
		    memcmp(first->raw + sizeof(int), now->raw + sizeof(int),
			   first->len - sizeof(int)) != 0)
			return false;
	}
	return true;
}

/*
 * The lock does not tell who holds it. As long as a thread that could run gets no CPU, on a machine
 * with many more of them than CPUs or by its cgroup's quota, it may be that one: it gets two
 * seconds.
 */
static bool is_stuck(const struct target *t, const struct glibc_view *v, uint64_t at,
		     struct glibc_arena *first, struct glibc_arena *now)
{
	if (glibc_arena_read(v, at, 0, first) || !first->mutex ||
	    !is_still(v, at, first, now, STUCK_FIRST))
		return false;
	for (unsigned i = 0; i < STUCK_ROUNDS; i++) {
		struct starved s;
		bool noted = starved_note(t, &s) == 0;
		bool still = is_still(v, at, first, now, STUCK_LOOKS);
		bool starved = still && noted && starved_any(t, &s, PROGRESS);

		starved_free(&s);
		if (!starved)
			return still;
	}
	return true;
}

static int find_stuck(const struct target *t, const struct glibc_view *v, struct guard *out)
{
	struct glibc_arena *a = calloc(2, sizeof(*a));
	struct glibc_fault ignored;
	struct glibc_ring ring = { 0 };
	int rc;

	if (!a)
		return -ENOMEM;
	rc = glibc_ring_read(v, &ring, &ignored);
	for (size_t i = 0; i < ring.n && rc != -ESRCH && !out->stuck_at; i++)
		if (is_stuck(t, v, ring.at[i], &a[0], &a[1])) {
			out->stuck_at = ring.at[i];
			out->stuck = (unsigned)i;
		}
	glibc_ring_free(&ring);
	glibc_arena_free(&a[0]);
	glibc_arena_free(&a[1]);
	free(a);
	return rc == -ESRCH || rc == -ENOMEM ? rc : 0;
}

/* Where another program runs now, what was read last was not the heap that was found. */
static int judged(struct process *p, int rc, struct guard *out, struct diag *d)
{
	if (rc == -ESRCH ||
	    (out->check.fault.kind && (process_changed(p) || target_ending(&p->t, false))))
		return glibc_live_lost(p, d);
	return rc ? diag_internal(d, rc, "looking at the heap") : 0;
}

static int look(struct process *p, const struct glibc_view *v, bool every_chunk, struct guard *out,
		struct diag *d)
{
	struct witness w = { .t = &p->t };
	const struct glibc_check_opts o = {
		.every_chunk = every_chunk,
		.limit_ns = every_chunk ? LIMIT_EVERY : LIMIT,
		.wait = wait_for,
		.at_rest = at_rest,
		.ctx = &w,
	};
	int rc = glibc_check_run(v, &o, &out->check);

	if (!rc && !out->check.fault.kind)
		rc = find_stuck(&p->t, v, out);
	return judged(p, rc, out, d);
}

int guard_look(struct process *p, bool every_chunk, struct guard *out, struct diag *d)
{
	const struct allocator *a = process_allocator(p, "glibc");
	struct glibc_live live;
	uint64_t begun = clock_now();
	int rc;

	*out = (struct guard){ .state = GUARD_NONE };
	if (!a)
		return 0;
	rc = glibc_live_open(p, a, &live, d);
	if (rc == -ENOENT)
		out->state = GUARD_UNKNOWN;
	if (rc == -ENOENT || rc == -ENODATA)
		return 0;
	if (rc)
		return rc;
	rc = look(p, &live.view, every_chunk, out, d);
	glibc_live_close(&live);
	out->state = GUARD_LOOKED;
	out->ns = clock_now() - begun;
	return rc;
}

int guard_judge(struct process *p, const struct glibc_picture *pic, struct guard *out,
		struct diag *d)
{
	const struct glibc_plan *plan = &pic->plan;
	const struct glibc_view *v = &pic->live.view;
	uint64_t begun = clock_now();
	int rc;

	*out = (struct guard){ .state = GUARD_LOOKED };
	if (glibc_plan_is_whole(plan)) {
		out->check.complete = true;
		out->check.arenas = (unsigned)plan->arenas;
		out->check.chunks = plan->total.chunks;
		rc = judged(p, find_stuck(&p->t, v, out), out, d);
	} else {
		v->r->refresh(v->r->ctx);
		rc = look(p, v, false, out, d);
		/* the picture had more time */
		if (out->check.limited && plan->total.chunks > out->check.chunks)
			out->check.chunks = plan->total.chunks;
	}
	out->ns = pic->ns + clock_now() - begun;
	return rc;
}

int guard_refuse(const struct process *p, const struct glibc_fault *f, struct diag *d)
{
	char where[128], what[160];

	return cause_fail(d, -EBADMSG, CAUSE_DAMAGED_HEAP,
			  "the heap of process %d is damaged: %s: %s; nothing was touched",
			  (int)p->t.pid, glibc_fault_where(f, where, sizeof(where)),
			  glibc_fault_text(f, what, sizeof(what)));
}

int guard_refuse_stuck(const struct process *p, const struct guard *g, struct diag *d)
{
	return cause_fail(
		d, -EBUSY, CAUSE_ARENA_LOCKED,
		"the lock of arena %u (0x%llx) of process %d is held by somebody who does "
		"not get on: a call would wait for it; nothing was touched",
		g->stuck, (unsigned long long)g->stuck_at, (int)p->t.pid);
}

static void note(struct process *p, const struct guard *g)
{
	const struct glibc_check *c = &g->check;

	if (g->state == GUARD_UNKNOWN)
		snprintf(p->heap_note, sizeof(p->heap_note),
			 "glibc's heap was not found, so nobody has looked whether it is damaged");
	else if (g->state == GUARD_LOOKED && c->limited)
		snprintf(p->heap_note, sizeof(p->heap_note),
			 "only a part of the heap was looked at for damage: %llu free chunks in "
			 "%llu ms",
			 (unsigned long long)c->chunks, (unsigned long long)(g->ns / NS_PER_MS));
	else if (g->state == GUARD_LOOKED && c->swapped)
		snprintf(
			p->heap_note, sizeof(p->heap_note),
			"%u lists of free chunks are swapped out and were not looked at for damage",
			c->swapped);
	else
		p->heap_note[0] = '\0';
}

int guard_run(struct process *p, struct diag *d)
{
	struct guard g;
	int rc;

	p->heap_note[0] = '\0';
	if (p->force)
		return 0;
	rc = p->picture ? guard_judge(p, p->picture, &g, d) : guard_look(p, false, &g, d);
	if (rc)
		return rc;
	if (g.check.fault.kind)
		return guard_refuse(p, &g.check.fault, d);
	if (g.stuck_at)
		return guard_refuse_stuck(p, &g, d);
	note(p, &g);
	return 0;
}
