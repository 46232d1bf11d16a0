// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TOUCHED_H
#define HM_TOUCHED_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "pages.h"

/*
 * As mem_read, of private memory, but a page that the process has never touched stays so, and reads
 * as zeros: a plain read would make the kernel put a page there (the page of zeros, or where it has
 * none, one of its own). Swapped pages are read. pages NULL or without a file: as mem_read. Other
 * errors are those of mem_read and pages_each.
 */
HM_MUST_CHECK int touched_read(const struct pages *pages, pid_t pid, uint64_t addr, void *buf,
			       size_t len);
#endif
