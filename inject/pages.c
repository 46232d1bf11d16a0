// SPDX-License-Identifier: GPL-3.0-or-later
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Entries of /proc/PID/pagemap (admin-guide/mm/pagemap). */
#define PM_PRESENT ((uint64_t)1 << 63)
#define PM_SWAPPED ((uint64_t)1 << 62)
#define PM_FILE	   ((uint64_t)1 << 61)
#define PM_ALONE   ((uint64_t)1 << 56) /* mapped once: never said of the page of zeros */

/* PAGEMAP_SCAN as uapi/linux/fs.h has it since 6.7; older headers do not know it. */
struct scan_region {
	uint64_t start, end, categories;
};
struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN _IOWR('f', 16, struct scan_arg)
enum { SCAN_FILE = 4, SCAN_PRESENT = 8, SCAN_SWAPPED = 16, SCAN_PFNZERO = 32, SCAN_HUGE = 64 };

#define BATCH	 512U
#define USER_END ((uint64_t)1 << 47) /* user space is as large at least, less one page */

static unsigned scan_flags(uint64_t c)
{
	return (c & SCAN_PRESENT ? PAGE_PRESENT : 0U) | (c & SCAN_SWAPPED ? PAGE_SWAPPED : 0U) |
	       (c & SCAN_FILE ? PAGE_FILE : 0U) | (c & SCAN_PFNZERO ? PAGE_ZERO : 0U) |
	       (c & SCAN_HUGE ? PAGE_HUGE : 0U);
}

static unsigned entry_flags(const struct pages *p, uint64_t e)
{
	if (!(e & (PM_PRESENT | PM_SWAPPED)))
		return 0;
	/* a huge one looks as if it were a file's */
	if (p->own && (e & PM_PRESENT) && !(e & PM_ALONE))
		return PAGE_PRESENT | PAGE_ZERO;
	return (e & PM_PRESENT ? PAGE_PRESENT : 0U) | (e & PM_SWAPPED ? PAGE_SWAPPED : 0U) |
	       (e & PM_FILE ? PAGE_FILE : 0U);
}

/* Up to BATCH regions of [start, end) that are present or swapped. *walked is how far it looked. */
static int scan(const struct pages *p, uint64_t start, uint64_t end, struct scan_region *v,
		size_t *n, uint64_t *walked)
{
	struct scan_arg a = {
		.size = sizeof(a),
		.start = start,
		.end = end,
		.vec = (uint64_t)(uintptr_t)v,
		.vec_len = BATCH,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED,
	};
	int rc;

	if (!p->brief)
		a.return_mask |= SCAN_FILE | SCAN_PFNZERO | SCAN_HUGE;
	rc = ioctl(p->fd, SCAN, &a);

	if (rc < 0)
		return -errno;
	*n = (size_t)rc;
	*walked = a.walk_end;
	/* a kernel that does not get on would keep us for ever */
	return *walked > start && *walked <= end && *n <= BATCH ? 0 : -EPROTO;
}

int pages_open(const struct target *t, struct pages *p)
{
	struct scan_region v[BATCH];
	uint64_t walked;
	size_t n;

	*p = (struct pages){ .fd = openat(t->procfd, "pagemap", O_RDONLY | O_CLOEXEC) };
	if (p->fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	p->scan = scan(p, PAGES_SIZE, (uint64_t)2 * PAGES_SIZE, v, &n, &walked) == 0;
	return 0;
}

void pages_close(struct pages *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void pages_use_pagemap(struct pages *p)
{
	p->scan = false;
}

static int each_read(const struct pages *p, uint64_t start, uint64_t end, pages_fn fn, void *arg)
{
	uint64_t v[BATCH];

	while (start < end) {
		uint64_t want = (end - start) / PAGES_SIZE;
		ssize_t got;
		size_t n;

		if (want > BATCH)
			want = BATCH;
		got = pread(p->fd, v, (size_t)want * sizeof(v[0]),
			    (off_t)(start / PAGES_SIZE * sizeof(v[0])));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		n = (size_t)got / sizeof(v[0]);
		/* the file ends where user space does, and at once when the process does */
		if (n == 0)
			return start < USER_END - PAGES_SIZE ? -ESRCH : 0;
		for (size_t i = 0; i < n; i++, start += PAGES_SIZE) {
			unsigned f = entry_flags(p, v[i]);
			int rc = f ? fn(arg, start, start + PAGES_SIZE, f) : 0;

			if (rc)
				return rc;
		}
	}
	return 0;
}

static int each_scanned(const struct pages *p, uint64_t start, uint64_t end, pages_fn fn, void *arg)
{
	struct scan_region v[BATCH];

	while (start < end) {
		uint64_t walked = start;
		size_t n = 0;
		int rc = scan(p, start, end, v, &n, &walked);

		for (size_t i = 0; !rc && i < n; i++)
			if (v[i].start < v[i].end && v[i].start >= start && v[i].end <= end)
				rc = fn(arg, v[i].start, v[i].end, scan_flags(v[i].categories));
		if (rc == -EINTR)
			continue;
		if (rc)
			return rc;
		start = walked;
	}
	return 0;
}

static int ignore(void *arg, uint64_t start, uint64_t end, unsigned flags)
{
	(void)arg;
	(void)start;
	(void)end;
	(void)flags;
	return 0;
}

int pages_each(const struct pages *p, uint64_t start, uint64_t end, pages_fn fn, void *arg)
{
	int rc;

	if (start % PAGES_SIZE || end % PAGES_SIZE || start > end || end > INT64_MAX)
		return -EINVAL;
	if (!p->scan || start == end)
		return each_read(p, start, end, fn, arg);
	rc = each_scanned(p, start, end, fn, arg);
	/* a process that is gone looks as if nothing were mapped; the plain file knows */
	return rc ? rc : each_read(p, start, start + PAGES_SIZE, ignore, NULL);
}

struct table {
	uint64_t start;
	unsigned char *out;
};

static int fill(void *arg, uint64_t start, uint64_t end, unsigned flags)
{
	const struct table *t = arg;

	memset(t->out + (start - t->start) / PAGES_SIZE, (int)flags,
	       (size_t)((end - start) / PAGES_SIZE));
	return 0;
}

int pages_flags(const struct pages *p, uint64_t start, size_t n, unsigned char *out)
{
	struct table t = { start, out };

	if (start > INT64_MAX || n > (INT64_MAX - start) / PAGES_SIZE)
		return -EINVAL;
	memset(out, 0, n);
	return pages_each(p, start, start + n * PAGES_SIZE, fill, &t);
}

static int append(void *arg, uint64_t start, uint64_t end, unsigned flags)
{
	struct page_runs *r = arg;
	struct page_run *last = r->n ? &r->v[r->n - 1] : NULL;

	if (last && last->end == start && last->flags == flags) {
		last->end = end;
		return 0;
	}
	if (!r->v || r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 64;
		struct page_run *v = reallocarray(r->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		r->v = v;
		r->cap = cap;
	}
	r->v[r->n++] = (struct page_run){ start, end, flags };
	return 0;
}

int pages_runs(const struct pages *p, uint64_t start, uint64_t end, struct page_runs *out)
{
	return pages_each(p, start, end, append, out);
}

void pages_free_runs(struct page_runs *r)
{
	free(r->v);
	*r = (struct page_runs){ 0 };
}
