// SPDX-License-Identifier: GPL-3.0-or-later
#include "touched.h"

#include <errno.h>
#include <string.h>

#include "mem.h"

struct part {
	pid_t pid;
	uint64_t start, end;
	unsigned char *buf;
};

static int read_run(void *arg, uint64_t start, uint64_t end, unsigned flags)
{
	const struct part *p = arg;

	(void)flags;
	if (start < p->start)
		start = p->start;
	if (end > p->end)
		end = p->end;
	return start < end
		       ? mem_read(p->pid, start, p->buf + (start - p->start), (size_t)(end - start))
		       : 0;
}

int touched_read(const struct pages *pages, pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct part p = { pid, addr, addr + len, buf };
	int rc;

	if (!pages || pages->fd < 0)
		return mem_read(pid, addr, buf, len);
	if (addr > INT64_MAX - PAGES_SIZE || len > INT64_MAX - PAGES_SIZE - addr)
		return -EFAULT;
	memset(buf, 0, len);
	rc = pages_each(pages, pages_floor(p.start), pages_ceil(p.end), read_run, &p);
	/* pagemap stays with the program that ran when it was opened (proc_pid_pagemap(5)) */
	return rc == -ESRCH ? mem_read(pid, addr, buf, len) : rc;
}
