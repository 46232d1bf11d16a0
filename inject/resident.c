// SPDX-License-Identifier: GPL-3.0-or-later
#include "resident.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PAGE	4096U
#define BATCH	4096U /* pages asked for at once */
#define PRESENT ((uint64_t)1 << 63)
#define SWAPPED ((uint64_t)1 << 62)

int resident_open(const struct target *t)
{
	int fd = openat(t->procfd, "pagemap", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static void add_up(const uint64_t *entry, size_t n, struct resident *out)
{
	for (size_t i = 0; i < n; i++) {
		if (entry[i] & PRESENT)
			out->resident += PAGE;
		else if (entry[i] & SWAPPED)
			out->swapped += PAGE;
	}
}

int resident_count(int fd, uint64_t lo, uint64_t hi, struct resident *out)
{
	uint64_t entry[BATCH];

	*out = (struct resident){ 0 };
	while (lo < hi) {
		uint64_t left = (hi - lo) / PAGE;
		size_t n = left < BATCH ? (size_t)left : BATCH;
		ssize_t got =
			pread(fd, entry, n * sizeof(*entry), (off_t)(lo / PAGE * sizeof(*entry)));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		n = (size_t)got / sizeof(*entry);
		if (n == 0)
			return hi - lo < PAGE ? 0 : -ESRCH; /* the process has ended */
		add_up(entry, n, out);
		lo += n * PAGE;
	}
	return 0;
}
