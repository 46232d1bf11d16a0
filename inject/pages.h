// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAGES_H
#define HM_PAGES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "target.h"

/*
 * Which pages of a process are in memory. Asking touches no page of the process: the kernel looks
 * at its page tables. PAGEMAP_SCAN (Linux 6.7) answers in runs and tells zero and huge pages;
 * before that /proc/PID/pagemap says present, swapped and file of each page.
 */
enum page_flag {
	PAGE_PRESENT = 1,
	PAGE_SWAPPED = 2,
	PAGE_FILE = 4, /* of a file or shared, not anonymous */
	/* the kernel's page of zeros: read, but never written. PAGEMAP_SCAN, or `own` below */
	PAGE_ZERO = 8,
	PAGE_HUGE = 16, /* mapped as a part of a huge page. PAGEMAP_SCAN only */
};

#define PAGES_SIZE 4096U /* of a page on x86-64 */

/* The page boundary at or below x, and the one at or above it. */
static inline uint64_t pages_floor(uint64_t x)
{
	return x & ~(uint64_t)(PAGES_SIZE - 1);
}

static inline uint64_t pages_ceil(uint64_t x)
{
	return pages_floor(x + PAGES_SIZE - 1);
}

/* [start, end) has the same flags (never 0: what is absent is in no run). */
struct page_run {
	uint64_t start, end;
	unsigned flags;
};

struct page_runs {
	struct page_run *v; /* by address */
	size_t n, cap;
};

struct pages {
	int fd;	    /* of /proc/PID/pagemap */
	bool scan;  /* the kernel has PAGEMAP_SCAN: tells zero and huge pages */
	bool brief; /* set by the user of it who wants to know no more than present and swapped:
		       three times as quick, as the kernel need not look at the pages themselves */
	bool own;   /* set by the user of it who asks about anonymous memory only, and knows that
		       none of it is shared with another process: pagemap then tells zero pages */
};

/* -EACCES or -EPERM without the right to read the process, -ESRCH if it is gone. */
HM_MUST_CHECK int pages_open(const struct target *t, struct pages *p);
void pages_close(struct pages *p);
/* The older way of asking also where the kernel has PAGEMAP_SCAN: for tests. */
void pages_use_pagemap(struct pages *p);
/*
 * Flags of n pages from the page-aligned address start on, one byte each, 0 for what is not mapped
 * or not there.
 */
HM_MUST_CHECK int pages_flags(const struct pages *p, uint64_t start, size_t n, unsigned char *out);
/* Calls fn for each run of [start, end), page-aligned, in order; neighbours may have the same
 * flags. What fn returns, unless that is 0, ends it and is the result. */
typedef int (*pages_fn)(void *arg, uint64_t start, uint64_t end, unsigned flags);
HM_MUST_CHECK int pages_each(const struct pages *p, uint64_t start, uint64_t end, pages_fn fn,
			     void *arg);
/* Adds the runs of [start, end), page-aligned, to *out, which begins zeroed. The caller ends it
 * with pages_free_runs, also after an error. */
HM_MUST_CHECK int pages_runs(const struct pages *p, uint64_t start, uint64_t end,
			     struct page_runs *out);
void pages_free_runs(struct page_runs *r);
#endif
