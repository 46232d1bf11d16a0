// SPDX-License-Identifier: GPL-3.0-or-later
#include "leftover.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "mem.h"
#include "region.h"
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

static bool thread_inside(const struct threads *list, uint64_t base, uint64_t end, pid_t *tid)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct thread *th = &list->v[i];

		if (strcmp(th->name, HM_NAME) == 0 || (th->sp >= base && th->sp < end)) {
			*tid = th->tid;
			return true;
		}
	}
	return false;
}

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

/* 1 in use, 0 not, or a negative errno. */
static int in_use(const struct target *t, uint64_t base, uint64_t end, pid_t *tid)
{
	struct hm_block b;

	if (read_block(t->pid, base, &b) && b.boot_state == HM_BOOT_RUNNING)
		return 1;
	/* where a running thread stands is not known: it is seen when it next sleeps */
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct threads list;
		bool inside;
		int rc = threads_read(t, &list, NULL);

		if (rc)
			return rc;
		inside = thread_inside(&list, base, end, tid) || anybody_traced(t, &list);
		threads_free(&list);
		if (inside)
			return 1;
		if (i + 1 < SAMPLES)
			clock_sleep(SAMPLE_NAP);
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

int leftover_find(const struct target *t, const struct maps *maps, struct hm_range *range,
		  size_t max, size_t *n, struct leftovers *out)
{
	memset(out, 0, sizeof(*out));
	*n = 0;
	for (size_t i = 0; i < maps->n;) {
		uint64_t base, other;
		size_t first = i;
		int used;

		if (!region_owns(&maps->v[i], &base)) {
			i++;
			continue;
		}
		while (i < maps->n && region_owns(&maps->v[i], &other) && other == base)
			i++;
		used = in_use(t, base, maps->v[i - 1].end, &out->busy_tid);
		if (used < 0)
			return used;
		if (used) {
			out->busy++;
			continue;
		}
		out->regions++;
		add_ranges(maps, first, i, range, max, n);
	}
	return 0;
}

int session_leftovers(const struct target *t, const struct maps *maps, struct leftovers *out)
{
	struct hm_range range[HM_MAX_REAP];
	size_t n;

	return leftover_find(t, maps, range, HM_MAX_REAP, &n, out);
}
