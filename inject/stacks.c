// SPDX-License-Identifier: GPL-3.0-or-later
#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem.h"
#include "pages.h"
#include "status.h"
#include "tcb.h"
#include "threads.h"
#include "tls.h"

#define PTHREAD_LEN 2304U /* struct pthread, 2.34 to 2.36; it does not end much later */
#define PAGE	    4096U
#define ABOVE_MAX   ((uint64_t)16384) /* from struct pthread to the end of the block */
#define STACK_MIN   ((uint64_t)16384) /* PTHREAD_STACK_MIN */
#define STACK_MAX   ((uint64_t)1 << 36)
#define LIST_MAX    100000U

struct reader {
	const struct target *t;
	const struct maps *maps;
	struct tls_layout layout;
	struct tcb_finder finder;
	struct stacks *out;
	pid_t main_tid; /* as the target counts */
	size_t cap;
	struct pages pages; /* for what is found without lists */
	unsigned char buf[PTHREAD_LEN];
};

bool stack_bounds(const void *buf, size_t len, uint64_t tcb, uint64_t *lo, uint64_t *hi)
{
	const char *p = buf;
	uint64_t a, size;

	for (size_t off = 24; off + 16 <= len; off += 8) {
		memcpy(&a, p + off, sizeof(a));
		memcpy(&size, p + off + 8, sizeof(size));
		if (a == 0 || a >= tcb || size < STACK_MIN || size > STACK_MAX || a + size <= tcb ||
		    a + size - tcb > ABOVE_MAX)
			continue;
		*lo = a;
		*hi = a + size;
		return true;
	}
	return false;
}

static int add(struct reader *r, const struct stack *s)
{
	struct stacks *out = r->out;

	if (out->n == r->cap) {
		size_t want = r->cap ? r->cap * 2 : 64;
		struct stack *v = reallocarray(out->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
		r->cap = want;
	}
	out->v[out->n++] = *s;
	return 0;
}

/* The struct pthread at tcb is in r->buf: true if it is one. */
static bool read_pthread(struct reader *r, uint64_t tcb)
{
	uint64_t self[3];

	if (mem_read(r->t->pid, tcb, r->buf, sizeof(r->buf)))
		return false;
	memcpy(self, r->buf, sizeof(self));
	return self[0] == tcb && self[2] == tcb;
}

static int add_pthread(struct reader *r, uint64_t tcb, bool cached)
{
	struct stack s = { .exact = true };
	int32_t tid = 0;

	if (!read_pthread(r, tcb))
		return 0;
	/* the offset is what the target says */
	if (r->finder.tid_offset <= sizeof(r->buf) - sizeof(tid))
		memcpy(&tid, r->buf + r->finder.tid_offset, sizeof(tid));
	/* the main thread is in the list too; its stack is the kernel's, and what looks like one
	 * lies behind its struct pthread, as in static programs */
	if (tid == r->main_tid || !stack_bounds(r->buf, sizeof(r->buf), tcb, &s.lo, &s.hi)) {
		r->out->main_tcb = tcb;
		return 0;
	}
	s.tid = cached || tid < 0 ? 0 : tid;
	return add(r, &s);
}

/*
 * The entries of a list that changes while it is read: each must be a struct pthread. link: next,
 * prev.
 */
static int walk(struct reader *r, uint64_t head, bool cached)
{
	uint64_t link[2], at, seen = 0;

	if (!head || mem_read(r->t->pid, head, link, sizeof(link)))
		return 0;
	at = link[0];
	for (unsigned i = 0; at != head && i < LIST_MAX; i++) {
		int err;

		/* a list that does not come back to its head goes round in a circle at some time */
		if (at == seen)
			break;
		if ((i & (i - 1)) == 0)
			seen = at;
		if (at < r->layout.link_offset || mem_read(r->t->pid, at, link, sizeof(link)))
			break;
		err = add_pthread(r, at - r->layout.link_offset, cached);
		if (err)
			return err;
		at = link[0];
	}
	return 0;
}

/* ---- without lists */

static bool is_anon_rw(const struct map *m)
{
	return map_is_anon(m) && !m->shared && (m->prot & PROT_READ) && (m->prot & PROT_WRITE);
}

/* A mapping behind one that cannot be accessed: what every libc makes for a thread. */
static bool by_shape(const struct reader *r, const struct map *m, struct stack *s)
{
	const struct map *guard = m > r->maps->v ? m - 1 : NULL;

	if (!guard || guard->end != m->start || guard->prot || !map_is_anon(guard))
		return false;
	s->lo = guard->end - guard->start <= STACK_MIN * 4 ? guard->start : m->start;
	s->hi = m->end;
	return true;
}

/* Any struct pthread in the last two pages of a stack, as far as they are in memory; 0: none. */
static uint64_t tcb_at_end(struct reader *r, const struct map *m)
{
	uint64_t words[2 * PAGE / sizeof(uint64_t)], lo = m->end - PAGE, base;
	unsigned char flags[2] = { 0 };
	size_t len;

	if (lo > m->start)
		lo -= PAGE;
	if (pages_flags(&r->pages, lo, (size_t)(m->end - lo) / PAGE, flags))
		return 0;
	if (m->end - lo > PAGE && !(flags[0] & PAGE_PRESENT)) {
		lo += PAGE;
		flags[0] = flags[1];
	}
	if (!(flags[0] & PAGE_PRESENT) || (m->end - lo > PAGE && !(flags[1] & PAGE_PRESENT)))
		return 0;
	len = (size_t)(m->end - lo);
	if (mem_read(r->t->pid, lo, words, len))
		return 0;
	/* aligned to 64 bytes, a pointer to itself at 0 and at 16: see tcb.h */
	for (base = (m->end - 64) & ~(uint64_t)63; base >= lo; base -= 64) {
		size_t i = (size_t)(base - lo) / sizeof(*words);

		if (words[i] == base && words[i + 2] == base)
			return base;
	}
	return 0;
}

/* Mappings that look like stacks and have a struct pthread where pthread_create puts it. */
static int from_shapes(struct reader *r)
{
	struct stack s;
	int err = 0;

	if (pages_open(r->t, &r->pages))
		return 0;
	for (size_t i = 1; !err && i < r->maps->n; i++) {
		const struct map *m = &r->maps->v[i];
		uint64_t tcb;

		if (!is_anon_rw(m) || m->name[0] || !by_shape(r, m, &s))
			continue;
		tcb = tcb_at_end(r, m);
		if (tcb)
			err = add_pthread(r, tcb, false);
	}
	pages_close(&r->pages);
	return err;
}

static bool is_known(const struct stacks *s, uint64_t sp)
{
	for (size_t i = 0; i < s->n; i++)
		if (sp >= s->v[i].lo && sp < s->v[i].hi)
			return true;
	return false;
}

static int add_thread(struct reader *r, const struct thread *th, pid_t nstid)
{
	const struct map *m = th->sp ? maps_find(r->maps, th->sp) : NULL;
	struct stack s = { .tid = nstid };
	uint64_t tcb;

	if (!m || !is_anon_rw(m) || m->name[0] || is_known(r->out, th->sp))
		return 0;
	tcb = tcb_find(&r->finder, th->sp, m->end, nstid);
	if (tcb && read_pthread(r, tcb) &&
	    stack_bounds(r->buf, sizeof(r->buf), tcb, &s.lo, &s.hi)) {
		s.exact = true;
		return add(r, &s);
	}
	return by_shape(r, m, &s) ? add(r, &s) : 0;
}

static int from_threads(struct reader *r, struct diag *d)
{
	struct threads list;
	int err = from_shapes(r);

	if (err)
		return diag_internal(d, err, "the list of stacks");
	err = threads_read(r->t, &list, d);
	if (err)
		return err;
	for (size_t i = 0; !err && i < list.n; i++)
		if (list.v[i].tid != r->t->pid)
			err = add_thread(r, &list.v[i], thread_inner_tid(r->t, list.v[i].tid));
	if (err)
		diag_internal(d, err, "the list of stacks");
	if (!r->out->main_tcb)
		r->out->main_tcb = tcb_find_main(&r->finder, r->maps, r->main_tid);
	threads_free(&list);
	return err;
}

int stacks_read(const struct target *t, const struct maps *maps, const struct modules *mods,
		struct stacks *out, struct diag *d)
{
	struct reader r = {
		.t = t, .maps = maps, .out = out, .main_tid = thread_inner_tid(t, t->pid)
	};
	int err;

	memset(out, 0, sizeof(*out));
	tls_layout_read(t->pid, mods, &r.layout);
	err = tcb_finder_init(&r.finder, t, r.layout.tid_offset);
	if (err)
		return diag_internal(d, err, "the list of stacks");
	if (r.layout.stack_used) {
		err = walk(&r, r.layout.stack_used, false);
		if (!err)
			err = walk(&r, r.layout.stack_list, false);
		if (!err)
			err = walk(&r, r.layout.stack_cache, true);
		if (err)
			diag_internal(d, err, "the list of stacks");
	} else {
		err = from_threads(&r, d);
	}
	tcb_finder_free(&r.finder);
	if (err)
		stacks_free(out);
	return err;
}

void stacks_free(struct stacks *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}
