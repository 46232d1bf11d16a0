// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_RESIDENT_H
#define HM_RESIDENT_H
#include <stdint.h>

#include "diag.h"
#include "target.h"

/* Bytes in memory and in swap of a part of the address space, page by page. */
struct resident {
	uint64_t resident, swapped;
};

/* A descriptor of /proc/PID/pagemap, to be closed by the caller, or a negative errno. */
HM_MUST_CHECK int resident_open(const struct target *t);
/*
 * Counts [lo, hi), both multiples of the page size, by bits 63 (present) and 62 (swapped) of
 * pagemap (Documentation/admin-guide/mm/pagemap.rst); these need no privilege beyond opening it.
 * Nothing of the memory itself is read, so no page is faulted in. Reads 8 bytes for each page.
 */
HM_MUST_CHECK int resident_count(int fd, uint64_t lo, uint64_t hi, struct resident *out);
#endif
