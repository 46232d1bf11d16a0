// SPDX-License-Identifier: GPL-3.0-or-later
#include "leftover.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "mem.h"
#include "region.h"
#include "starved.h"
#include "threads.h"

/* A thread that is on its way into a region or out of it is there within microseconds. */
#define SAMPLES	   5
#define SAMPLE_NAP (2 * NS_PER_MS)

/* The block of a region, wherever the mode has put it; false if it is not mapped or not ours. */
static bool read_block(pid_t pid, uint64_t base, struct hm_block *b)
{
	static const enum hm_mode modes[] = { HM_MODE_PROXY, HM_MODE_DIRECT };

	for (size_t i = 0; i < 2; i++) {
		struct region r;

		/* the payload is smaller than a page; its size only matters rounded up */
		region_layout(&r, base, modes[i], 1, SESSION_SCRATCH, 0);
		if (mem_read(pid, r.block, b, offsetof(struct hm_block, slot)) == 0 &&
		    b->magic == HM_BLOCK_MAGIC && b->base == base)
			return true;
	}
	return false;
}

/* One region of ours: mappings [first, last) of the list. */
struct found {
	uint64_t base, end;
	size_t first, last;
	bool used;
	struct lent lent;
};

/* From the end of our code to the application's a borrowed thread needs microseconds of CPU. */
#define WAY_OUT_NS (200 * 1000ULL)

/*
 * From the mapping of a region until its proxy bears our name, a living run traces a thread of the
 * target. Nothing in the region says so yet.
 */
static bool anybody_traced(const struct target *t, const struct threads *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct proc_status st;
		char path[48];

		snprintf(path, sizeof(path), "task/%d/status", (int)list->v[i].tid);
		if (status_read(t->procfd, path, &st) == 0 && st.tracer)
			return true;
	}
	return false;
}

/* The region that addr lies in; they are in the order of their addresses. */
static struct found *found_at(struct found *v, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < v[mid].base)
			hi = mid;
		else if (addr >= v[mid].end)
			lo = mid + 1;
		else
			return &v[mid];
	}
	return NULL;
}

static void all_used(struct found *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].used = true;
}

/*
 * A thread of ours belongs to the region that its stack is in; while it runs, or is elsewhere yet,
 * it may belong to any.
 */
static void mark(struct found *v, size_t n, const struct threads *list, pid_t *tid)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct thread *th = &list->v[i];
		struct found *f = found_at(v, n, th->sp);

		/* what has ended touches no memory any more, even while /proc still lists it */
		if (th->state == 'Z' || th->state == 'X')
			continue;
		if (f)
			f->used = true;
		else if (strcmp(th->name, HM_NAME) == 0)
			all_used(v, n);
		else
			continue;
		*tid = th->tid;
	}
}

bool leftover_may_be_inside(struct lent *l, char state, uint64_t ran_ns)
{
	if (state != 'R')
		return false;
	if (!l->ran)
		l->ran = ran_ns;
	return ran_ns <= l->ran + WAY_OUT_NS;
}

static void mark_lent(const struct target *t, struct found *f, const struct threads *list,
		      bool last)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct thread *th = &list->v[i];
		uint64_t ran;

		if (th->tid != f->lent.tid)
			continue;
		ran = th->state == 'R' ? thread_cpu_time(t, th->tid) : 0;
		if (!leftover_may_be_inside(&f->lent, th->state, ran))
			f->lent.tid = 0;
		else if (last)
			f->used = true;
		return;
	}
	f->lent.tid = 0; /* it has ended */
}

static bool any_unused(const struct found *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!v[i].used)
			return true;
	return false;
}

/*
 * Marks the regions that are in use. All are watched together: a target may have any number of
 * mappings that look like ours.
 */
static int watch(const struct target *t, struct found *v, size_t n, pid_t *tid)
{
	/* where a running thread stands is not known: it is seen when it next sleeps */
	for (unsigned s = 0; s < SAMPLES && any_unused(v, n); s++) {
		struct threads list;
		int rc;

		if (s)
			clock_sleep(SAMPLE_NAP);
		rc = threads_read(t, &list, NULL);
		if (rc)
			return rc;
		mark(v, n, &list, tid);
		for (size_t i = 0; i < n; i++)
			if (v[i].lent.tid)
				mark_lent(t, &v[i], &list, s + 1 == SAMPLES);
		if (anybody_traced(t, &list))
			all_used(v, n);
		threads_free(&list);
	}
	return 0;
}

/* Mappings [first, end) of one region; those that touch are one range. */
static void add_ranges(const struct maps *maps, size_t first, size_t end, struct hm_range *range,
		       size_t max, size_t *n)
{
	for (size_t k = first; k < end; k++) {
		const struct map *m = &maps->v[k];

		if (k > first && *n && m->start == maps->v[k - 1].end)
			range[*n - 1].len += m->end - m->start;
		else if (*n < max)
			range[(*n)++] = (struct hm_range){ m->start, m->end - m->start };
		else
			return;
	}
}

/* All regions in maps, in the order of their addresses; v has room for as many as maps has. */
static size_t find_all(const struct target *t, const struct maps *maps, struct found *v)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->n;) {
		uint64_t base, other;
		struct hm_block b;
		size_t first = i;

		if (!region_owns(&maps->v[i], &base)) {
			i++;
			continue;
		}
		while (i < maps->n && region_owns(&maps->v[i], &other) && other == base)
			i++;
		v[n] = (struct found){
			.base = maps->v[first].start,
			.end = maps->v[i - 1].end,
			.first = first,
			.last = i,
		};
		if (read_block(t->pid, base, &b)) {
			v[n].used = b.boot_state == HM_BOOT_RUNNING;
			v[n].lent.tid = b.lent_tid;
		}
		n++;
	}
	return n;
}

int leftover_find(const struct target *t, const struct maps *maps, struct hm_range *range,
		  size_t max, size_t *n, struct leftovers *out)
{
	struct found *v = calloc(maps->n + 1, sizeof(*v));
	size_t regions;
	int rc;

	memset(out, 0, sizeof(*out));
	*n = 0;
	if (!v)
		return -ENOMEM;
	regions = find_all(t, maps, v);
	rc = watch(t, v, regions, &out->busy_tid);
	for (size_t i = 0; i < regions && rc == 0; i++) {
		out->busy += v[i].used;
		out->regions += !v[i].used;
		if (!v[i].used)
			add_ranges(maps, v[i].first, v[i].last, range, max, n);
	}
	free(v);
	return rc;
}

int session_leftovers(const struct target *t, const struct maps *maps, struct leftovers *out)
{
	struct hm_range range[HM_MAX_REAP];
	size_t n;

	return leftover_find(t, maps, range, HM_MAX_REAP, &n, out);
}
