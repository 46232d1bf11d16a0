// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <string.h>

#include "../../inject/mem.h"
#include "fuzz.h"

#define PAGE 4096ULL

struct piece {
	uint64_t addr;
	size_t len;
	const uint8_t *p;
};

static struct piece piece[FUZZ_PIECES];
static size_t pieces;

void fuzz_memory(struct fuzz_input *in)
{
	for (pieces = 0; pieces < FUZZ_PIECES && in->left > 10; pieces++) {
		struct piece *pc = &piece[pieces];

		pc->addr = fuzz_number(in, 8) & INT64_MAX;
		pc->p = fuzz_bytes(in, (size_t)fuzz_number(in, 2), &pc->len);
		if (pc->len > INT64_MAX - pc->addr)
			pc->len = (size_t)(INT64_MAX - pc->addr);
	}
}

static bool page_read(uint64_t page, unsigned char buf[PAGE])
{
	bool there = false;

	memset(buf, 0, PAGE);
	for (size_t i = 0; i < pieces; i++) {
		const struct piece *pc = &piece[i];
		uint64_t lo = pc->addr > page ? pc->addr : page;
		uint64_t hi = pc->addr + pc->len;

		if (hi > page + PAGE)
			hi = page + PAGE;
		if (lo >= hi)
			continue;
		memcpy(buf + (lo - page), pc->p + (lo - pc->addr), (size_t)(hi - lo));
		there = true;
	}
	return there;
}

ssize_t mem_read_some(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	unsigned char page[PAGE];
	size_t done = 0;

	(void)pid;
	if (addr > INT64_MAX)
		return 0;
	if (len > INT64_MAX - addr)
		len = (size_t)(INT64_MAX - addr);
	while (done < len) {
		size_t in = (size_t)((addr + done) % PAGE), n = PAGE - in;

		if (!page_read(addr + done - in, page))
			break;
		if (n > len - done)
			n = len - done;
		memcpy((char *)buf + done, page + in, n);
		done += n;
	}
	return (ssize_t)done;
}

int mem_read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	if (len == 0)
		return 0;
	if (addr > INT64_MAX || len > INT64_MAX - addr)
		return -EFAULT;
	return (size_t)mem_read_some(pid, addr, buf, len) == len ? 0 : -EFAULT;
}

int mem_read_str(pid_t pid, uint64_t addr, char *buf, size_t max)
{
	ssize_t n = max ? mem_read_some(pid, addr, buf, max) : 0;

	if (n > 0 && memchr(buf, '\0', (size_t)n))
		return 0;
	if ((size_t)n < max) {
		buf[n] = '\0';
		return -EFAULT;
	}
	if (max)
		buf[max - 1] = '\0';
	return -ENAMETOOLONG;
}

/* What is written is not read again by anything that is tested here. */
int mem_write(pid_t pid, uint64_t addr, const void *buf, size_t len)
{
	unsigned char page[PAGE];

	(void)pid;
	(void)buf;
	return len == 0 || page_read(addr & ~(PAGE - 1), page) ? 0 : -EFAULT;
}

int mem_open_force(int procfd)
{
	(void)procfd;
	return -EPERM;
}

int mem_write_force(int memfd, uint64_t addr, const void *buf, size_t len)
{
	(void)memfd;
	return mem_write(FUZZ_PID, addr, buf, len);
}
