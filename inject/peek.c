// SPDX-License-Identifier: GPL-3.0-or-later
#include "peek.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem.h"
#include "pages.h"
#include "permit.h"

#define PAGE	     ((size_t)PAGES_SIZE)
#define GROUP	     16U /* neighbours that are kept together, and at most read at once */
#define GROUPS	     32U /* 2 MiB are kept: more would not stay in the processor's cache */
#define SLOTS	     (GROUP * GROUPS)
#define WINDOW	     512U  /* pages whose flags are asked for at once */
#define WINDOW_SMALL 64U   /* the same where the kernel is slow to tell (before PAGEMAP_SCAN) */
#define WINDOWS	     4096U /* 8 GiB of heap; only those that are used are touched */

struct range {
	uint64_t start, end;
};

struct window {
	uint64_t first; /* number of its first page */
	uint64_t round; /* 0: never filled */
	unsigned char flags[WINDOW];
};

struct slot {
	uint64_t page, round;
};

/* A page has one slot, see slot_of; the content is at the same place in bytes. */
struct peek {
	struct reader reader;
	const struct target *t;
	struct pages pages;
	struct range *range;
	size_t ranges;
	uint64_t ranges_round; /* when they were read */
	size_t wide;	       /* pages in a window */
	uint64_t round;	       /* grows with each refresh: older slots and windows do not count */
	uint64_t next;	       /* the page behind the last that were read */
	uint64_t first;	       /* of those */
	size_t ahead;
	struct window *window;
	struct slot *slot;
	unsigned char *bytes;
};

/* Heaps begin at round addresses: taken modulo, the first pages of all of them would share a slot.
 */
static size_t spread(uint64_t n, size_t over)
{
	return (size_t)((n * 0x9e3779b97f4a7c15ULL) >> 40) % over;
}

static size_t slot_of(uint64_t page)
{
	return spread(page / GROUP, GROUPS) * GROUP + page % GROUP;
}

static int take_ranges(struct peek *p, const struct maps *maps)
{
	struct range *v = calloc(maps->n ? maps->n : 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->v[i];

		if (!(m->prot & PROT_READ) || !(m->prot & PROT_WRITE) || m->shared)
			continue;
		if (n && v[n - 1].end == m->start)
			v[n - 1].end = m->end;
		else
			v[n++] = (struct range){ m->start, m->end };
	}
	free(p->range);
	p->range = v;
	p->ranges = n;
	return 0;
}

/* The range that holds addr, or NULL. */
static const struct range *range_of(const struct peek *p, uint64_t addr)
{
	size_t lo = 0, hi = p->ranges;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < p->range[mid].start)
			hi = mid;
		else if (addr >= p->range[mid].end)
			lo = mid + 1;
		else
			return &p->range[mid];
	}
	return NULL;
}

/*
 * Reading the maps takes as long as there are many of them, and nearly all that is looked at again
 * is where it was: they are only read again where the known ones do not do. Then true. Maps that
 * cannot be read now are the old ones still: the reads then say what is wrong.
 */
static bool renew_ranges(struct peek *p)
{
	struct maps maps;

	if (p->ranges_round == p->round)
		return false;
	p->ranges_round = p->round;
	if (maps_read(p->t, &maps, NULL))
		return false;
	(void)!take_ranges(p, &maps);
	maps_free(&maps);
	return true;
}

static int window_of(struct peek *p, uint64_t page, const struct window **out)
{
	uint64_t first = page / p->wide * p->wide;
	struct window *w = &p->window[spread(page / p->wide, WINDOWS)];
	int rc;

	*out = w;
	if (w->round == p->round && w->first == first)
		return 0;
	w->round = 0;
	rc = pages_flags(&p->pages, first * PAGE, p->wide, w->flags);
	if (rc)
		return rc;
	w->first = first;
	w->round = p->round;
	return 0;
}

/*
 * Which pages to read at once: more where they are read one after another, upwards or, as a list of
 * blocks that were freed in order is walked, downwards; as far as they are present, in the range r
 * and next to each other in the store. *first is the lowest of them, page is one.
 */
static size_t run_of(struct peek *p, const struct window *w, uint64_t page, const struct range *r,
		     uint64_t *first)
{
	bool down = page + 1 == p->first;
	size_t n = 1;

	*first = page;
	p->ahead = down || page == p->next ? p->ahead * 2 : 1;
	if (p->ahead > GROUP)
		p->ahead = GROUP;
	while (!down && n < p->ahead && page + n < r->end / PAGE && (page + n) % GROUP &&
	       (w->flags[page + n - w->first] & PAGE_PRESENT))
		n++;
	while (down && n<p->ahead && * first> r->start / PAGE && *first % GROUP &&
	       (w->flags[*first - 1 - w->first] & PAGE_PRESENT)) {
		--*first;
		n++;
	}
	return n;
}

/* Reads n pages of one group. How many of them could be read, or -errno. */
static ssize_t store(struct peek *p, uint64_t first, size_t n)
{
	size_t at = slot_of(first);
	ssize_t got = mem_read_some(p->t->pid, first * PAGE, p->bytes + at * PAGE, n * PAGE);
	size_t whole = got > 0 ? (size_t)got / PAGE : 0;

	/* what lies there is overwritten in any case */
	for (size_t i = 0; i < n; i++)
		p->slot[at + i] = (struct slot){ first + i, i < whole ? p->round : 0 };
	p->next = first + n;
	p->first = first;
	return got < 0 ? got : (ssize_t)whole;
}

static int fetch(struct peek *p, const struct window *w, uint64_t page, const struct range *r)
{
	uint64_t first;
	size_t n = run_of(p, w, page, r, &first);
	ssize_t got = store(p, first, n);

	/* one below it went away meanwhile: this one alone */
	if (first < page && (got < 0 || first + (uint64_t)got <= page))
		got = store(p, page, 1);
	if (got < 0)
		return (int)got;
	return got ? 0 : -EFAULT;
}

/* The bytes of one page; they stay until the next call. NULL in *out: zeros. */
static int page_of(struct peek *p, uint64_t page, const unsigned char **out)
{
	size_t at = slot_of(page);
	const struct window *w;
	const struct range *r;
	int rc;

	*out = p->bytes + at * PAGE;
	if (p->slot[at].round == p->round && p->slot[at].page == page)
		return 0;
	r = range_of(p, page * PAGE);
	if (!r && renew_ranges(p))
		r = range_of(p, page * PAGE);
	if (!r)
		return -EFAULT;
	rc = window_of(p, page, &w);
	if (rc)
		return rc;
	if (w->flags[page - w->first] & PAGE_PRESENT)
		return fetch(p, w, page, r);
	/* absent, or not mapped any more */
	if (renew_ranges(p) && !range_of(p, page * PAGE))
		return -EFAULT;
	*out = NULL;
	return w->flags[page - w->first] & PAGE_SWAPPED ? -ENODATA : 0;
}

_Static_assert(WINDOW % GROUP == 0 && WINDOW_SMALL % GROUP == 0,
	       "a group has its flags in one window");

static int peek_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	unsigned char *to = buf;

	if (addr > INT64_MAX || len > (uint64_t)INT64_MAX - addr)
		return -EFAULT;
	while (len > 0) {
		size_t off = addr % PAGE, n = PAGE - off < len ? PAGE - off : len;
		const unsigned char *from;
		int rc = page_of(ctx, addr / PAGE, &from);

		if (rc)
			return rc;
		if (from)
			memcpy(to, from + off, n);
		else
			memset(to, 0, n);
		to += n;
		addr += n;
		len -= n;
	}
	return 0;
}

static void peek_refresh(void *ctx)
{
	struct peek *p = ctx;

	p->round++;
}

static int explain(const struct target *t, int rc, struct diag *d)
{
	if (rc == -ESRCH)
		return rc;
	if (rc == -EACCES || rc == -EPERM)
		return permit_explain(t, d);
	return diag_internal(d, rc, "/proc/PID/pagemap");
}

int peek_open(const struct target *t, const struct maps *maps, struct peek **out, struct diag *d)
{
	struct peek *p = calloc(1, sizeof(*p));
	int rc = -ENOMEM;

	*out = NULL;
	if (!p)
		return diag_internal(d, rc, "reading memory");
	p->t = t;
	p->round = p->ranges_round = 1;
	p->pages.fd = -1;
	p->reader = (struct reader){ peek_read, peek_refresh, p };
	p->window = calloc(WINDOWS, sizeof(*p->window));
	p->slot = calloc(SLOTS, sizeof(*p->slot));
	p->bytes = malloc(SLOTS * PAGE); /* touched only where it is used */
	if (p->window && p->slot && p->bytes)
		rc = take_ranges(p, maps);
	if (!rc)
		rc = pages_open(t, &p->pages);
	p->pages.brief = true;
	p->wide = p->pages.scan ? WINDOW : WINDOW_SMALL;
	if (rc) {
		peek_close(p);
		return explain(t, rc, d);
	}
	*out = p;
	return 0;
}

void peek_close(struct peek *p)
{
	if (!p)
		return;
	pages_close(&p->pages);
	free(p->range);
	free(p->window);
	free(p->slot);
	free(p->bytes);
	free(p);
}

const struct reader *peek_reader(const struct peek *p)
{
	return &p->reader;
}
