// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAGECACHE_H
#define HM_PAGECACHE_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "elf.h"

/*
 * Pages of a target's memory for readers of many small pieces. Pages in a constant range stay; all
 * others are read anew in each run, because between two runs the target runs.
 */
struct pagecache;
HM_MUST_CHECK int pagecache_new(pid_t pid, struct pagecache **out);
void pagecache_free(struct pagecache *p);
/*
 * Pages from lo to hi (page aligned) do not change. elf is the file that is mapped there, bias what
 * its addresses differ by: what it has is read from it, as a read of the memory would bring pages
 * in that the target has never touched. NULL: from memory. It must live as long. -ENOSPC.
 */
HM_MUST_CHECK int pagecache_constant(struct pagecache *p, uint64_t lo, uint64_t hi,
				     const struct elf_file *elf, uint64_t bias);
/*
 * Memory of our own, len bytes, that reads at addresses from at on; at must lie outside of the
 * target's user space. Not copied. -ENOSPC.
 */
HM_MUST_CHECK int pagecache_overlay(struct pagecache *p, uint64_t at, const void *mem, size_t len);
void pagecache_next_run(struct pagecache *p);
/* 0, or the errno of mem_read. */
HM_MUST_CHECK int pagecache_read(struct pagecache *p, uint64_t addr, void *buf, size_t len);
HM_MUST_CHECK int pagecache_word(struct pagecache *p, uint64_t addr, uint64_t *val);
#endif
