// SPDX-License-Identifier: GPL-3.0-or-later
#include "tcb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem.h"

#define TCB_ALIGN   64U
#define NEAR_END    ((size_t)8 * 1024)	/* struct pthread is 2.3 KiB, small TLS lies below it */
#define WINDOW	    ((size_t)64 * 1024) /* read at once */
#define OVERLAP	    ((size_t)4 * 1024)	/* so that no struct is cut by the end of a window */
#define FAR	    ((size_t)1 << 20)
#define BUDGET	    ((size_t)64 << 20)
#define LISTED_MAX  1024U
#define MAIN_MAX    ((size_t)256 * 1024) /* early allocations of ld.so are small */
#define MAIN_BUDGET ((size_t)4 << 20)
#define PAGES_MAX   ((WINDOW + OVERLAP) / PAGES_SIZE + 1)

static uint64_t word_at(const char *buf, size_t off)
{
	uint64_t v;

	memcpy(&v, buf + off, sizeof(v));
	return v;
}

uint64_t tcb_scan(const void *buf, size_t len, uint64_t base, uint32_t tid_offset, pid_t tid)
{
	size_t need = (size_t)tid_offset + sizeof(int32_t);
	const char *p = buf;
	uint64_t a;

	if (need < 3 * sizeof(uint64_t))
		need = 3 * sizeof(uint64_t);
	if (len < need || base > UINT64_MAX - len)
		return 0;
	a = (base + (len - need)) & ~(uint64_t)(TCB_ALIGN - 1);
	for (; a >= base && a != 0; a -= TCB_ALIGN) {
		size_t off = (size_t)(a - base);
		int32_t id;

		if (word_at(p, off) != a || word_at(p, off + 16) != a)
			continue;
		memcpy(&id, p + off + tid_offset, sizeof(id));
		if (id == tid)
			return a;
	}
	return 0;
}

int tcb_finder_init(struct tcb_finder *f, const struct target *t, uint32_t tid_offset)
{
	f->pid = t->pid;
	f->tid_offset = tid_offset < OVERLAP - 64 ? tid_offset : TCB_TID_OFFSET;
	f->budget = BUDGET;
	f->buf = malloc(WINDOW + OVERLAP);
	if (!f->buf)
		return -ENOMEM;
	if (pages_open(t, &f->pages))
		f->pages.fd = -1;
	else
		f->pages.brief = true;
	return 0;
}

void tcb_finder_free(struct tcb_finder *f)
{
	if (f->buf && f->pages.fd >= 0)
		pages_close(&f->pages);
	free(f->buf);
	f->buf = NULL;
}

/*
 * The bytes of [lo, hi), zeros where there is no page with one of these flags. At most WINDOW +
 * OVERLAP.
 */
static void read_pages(struct tcb_finder *f, uint64_t lo, uint64_t hi, unsigned wanted)
{
	unsigned char flags[PAGES_MAX];
	uint64_t first = pages_floor(lo), at = lo;
	size_t n = (size_t)((pages_ceil(hi) - first) / PAGES_SIZE);

	memset(f->buf, 0, (size_t)(hi - lo));
	if (f->pages.fd < 0)
		memset(flags, (int)wanted, n);
	else if (pages_flags(&f->pages, first, n, flags))
		return;
	for (size_t i = 0, end; i < n; i = end) {
		uint64_t to;

		for (end = i + 1; end < n && !(flags[end] & wanted) == !(flags[i] & wanted);)
			end++;
		to = first + end * PAGES_SIZE < hi ? first + end * PAGES_SIZE : hi;
		/* what has gone meanwhile stays zeros */
		if (flags[i] & wanted)
			(void)!mem_read_some(f->pid, at, f->buf + (at - lo), (size_t)(to - at));
		at = to;
	}
}

static uint64_t scan(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid, unsigned wanted)
{
	if (lo >= hi)
		return 0;
	read_pages(f, lo, hi, wanted);
	return tcb_scan(f->buf, (size_t)(hi - lo), lo, f->tid_offset, tid);
}

static uint64_t scan_window(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid)
{
	return scan(f, lo, hi, tid, PAGE_PRESENT);
}

/* Where it nearly always lies it is looked for in swap too: a thread that sleeps for long may have
 * it there. */
static uint64_t scan_end(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid)
{
	return scan(f, lo, hi, tid, PAGE_PRESENT | PAGE_SWAPPED);
}

static bool spend(struct tcb_finder *f, size_t n)
{
	if (f->budget < n)
		return false;
	f->budget -= n;
	return true;
}

/* Windows from hi down to lo, highest first. */
static uint64_t scan_down(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid)
{
	uint64_t top = hi;

	while (top > lo && spend(f, WINDOW)) {
		uint64_t from = top - lo > WINDOW ? top - WINDOW : lo;
		uint64_t to = hi - top > OVERLAP ? top + OVERLAP : hi;
		uint64_t a = scan_window(f, from, to, tid);

		if (a)
			return a;
		top = from;
	}
	return 0;
}

static uint64_t scan_up(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid)
{
	while (lo < hi && spend(f, WINDOW)) {
		uint64_t to = hi - lo > WINDOW + OVERLAP ? lo + WINDOW + OVERLAP : hi;
		uint64_t a = scan_window(f, lo, to, tid);

		if (a)
			return a;
		lo = hi - lo > WINDOW ? lo + WINDOW : hi;
	}
	return 0;
}

uint64_t tcb_find(struct tcb_finder *f, uint64_t sp, uint64_t hi, pid_t tid)
{
	uint64_t a;

	sp &= ~(uint64_t)7;
	if (sp >= hi)
		return 0;
	a = scan_end(f, hi - sp > NEAR_END ? hi - NEAR_END : sp, hi, tid);
	if (!a)
		a = scan_window(f, hi - sp > WINDOW ? hi - WINDOW : sp, hi, tid);
	if (!a && hi - sp > WINDOW)
		a = scan_up(f, sp, hi - sp > FAR ? sp + FAR : hi, tid);
	if (!a && hi - sp > FAR)
		a = scan_down(f, hi - FAR, hi, tid);
	return a;
}

static bool is_tcb(const struct tcb_finder *f, uint64_t a, pid_t tid)
{
	uint64_t head[3];
	int32_t id;

	return a % TCB_ALIGN == 0 && mem_read(f->pid, a, head, sizeof(head)) == 0 && head[0] == a &&
	       head[2] == a && mem_read(f->pid, a + f->tid_offset, &id, sizeof(id)) == 0 &&
	       id == tid;
}

uint64_t tcb_find_listed(struct tcb_finder *f, uint64_t head, uint32_t link_offset, pid_t tid)
{
	uint64_t at = head;

	for (unsigned i = 0; i < LISTED_MAX; i++) {
		if (mem_read(f->pid, at, &at, sizeof(at)) || at == head || at < link_offset)
			return 0;
		if (is_tcb(f, at - link_offset, tid))
			return at - link_offset;
	}
	return 0;
}

static bool may_hold_main_tcb(const struct map *m)
{
	/* a mapping at such an address is a heap of a thread arena */
	bool arena_heap = m->start % ((uint64_t)64 << 20) == 0;

	return !m->shared && m->name[0] == '\0' && m->inode == 0 && (m->prot & PROT_READ) &&
	       (m->prot & PROT_WRITE) && !arena_heap;
}

/* A small mapping is read whole; of one that has grown by later neighbours below it, the end. */
static uint64_t main_scan_start(const struct map *m)
{
	return m->end - m->start <= MAIN_MAX ? m->start : m->end - WINDOW;
}

uint64_t tcb_find_main(struct tcb_finder *f, const struct maps *maps, pid_t tid)
{
	size_t budget = f->budget;
	uint64_t a = 0;

	f->budget = MAIN_BUDGET;
	for (size_t i = maps->n; !a && i-- > 0;) {
		const struct map *m = &maps->v[i];

		if (strcmp(m->name, "[heap]") == 0)
			a = scan_window(f, m->start,
					m->end - m->start > NEAR_END ? m->start + NEAR_END : m->end,
					tid);
		else if (may_hold_main_tcb(m))
			a = scan_down(f, main_scan_start(m), m->end, tid);
	}
	f->budget = budget;
	return a;
}
