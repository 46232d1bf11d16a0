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

int tcb_finder_init(struct tcb_finder *f, pid_t pid, uint32_t tid_offset)
{
	f->pid = pid;
	f->tid_offset = tid_offset < OVERLAP - 64 ? tid_offset : TCB_TID_OFFSET;
	f->budget = BUDGET;
	f->buf = malloc(WINDOW + OVERLAP);
	return f->buf ? 0 : -ENOMEM;
}

void tcb_finder_free(struct tcb_finder *f)
{
	free(f->buf);
	f->buf = NULL;
}

/* At most WINDOW + OVERLAP bytes. */
static uint64_t scan_window(struct tcb_finder *f, uint64_t lo, uint64_t hi, pid_t tid)
{
	ssize_t n;

	if (lo >= hi)
		return 0;
	n = mem_read_some(f->pid, lo, f->buf, (size_t)(hi - lo));
	return n > 0 ? tcb_scan(f->buf, (size_t)n, lo, f->tid_offset, tid) : 0;
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
	a = scan_window(f, hi - sp > NEAR_END ? hi - NEAR_END : sp, hi, tid);
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
	/* a mapping at such an address is a heap of a thread arena, whose free pages stay unread */
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
