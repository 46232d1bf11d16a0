// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SMAPS_H
#define HM_SMAPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "maps.h"
#include "target.h"

/* The two letters of a VmFlags line that say something about memory (proc(5)). */
enum smaps_flag {
	SMAPS_LOCKED = 1,	 /* lo: mlock */
	SMAPS_HUGETLB = 2,	 /* ht: from the pool of huge pages, never part of Rss */
	SMAPS_HUGE_ADVISED = 4,	 /* hg: MADV_HUGEPAGE */
	SMAPS_HUGE_DENIED = 8,	 /* nh: MADV_NOHUGEPAGE */
	SMAPS_GROWS_DOWN = 16,	 /* gd: a stack of the kernel's making */
	SMAPS_DEVICE = 32,	 /* io, pf: memory of a device */
	SMAPS_NOT_FORKED = 64,	 /* dc, wf */
	SMAPS_NOT_DUMPED = 128,	 /* dd */
	SMAPS_MERGEABLE = 256,	 /* mg: KSM */
	SMAPS_SHADOW_STACK = 512 /* ss */
};

/* One mapping of /proc/PID/smaps. All sizes are bytes; what a kernel does not tell is 0. */
struct smaps_row {
	struct map map;
	uint64_t page_size; /* KernelPageSize */
	uint64_t rss, pss, pss_dirty;
	uint64_t shared_clean, shared_dirty, private_clean, private_dirty;
	uint64_t referenced, anon, ksm, lazyfree;
	uint64_t anon_huge, shmem_huge, file_huge; /* parts of rss */
	uint64_t shared_hugetlb, private_hugetlb;  /* not part of rss */
	uint64_t swap, swap_pss, locked;
	unsigned flags; /* enum smaps_flag */
	bool seen_rss;
};

struct smaps_names;
struct smaps {
	struct smaps_row *v; /* by address, without overlap */
	size_t n;
	/*
	 * The text does not fit together: it ends in the middle of a mapping, or two mappings
	 * overlap (a read is not one moment: proc.rst, "inherently racy"). What could be read is
	 * there; an overlap is taken off the later mapping's addresses, not off its figures.
	 */
	bool torn;
	struct smaps_names *names;
};

/*
 * Pure: parses text (copied). Keys that are not known are passed over. -EINVAL on a line that is
 * neither a mapping nor a key, or a damaged number; -ENOMEM. The caller frees with smaps_free.
 */
HM_MUST_CHECK int smaps_parse(const char *text, size_t len, struct smaps *out);
/* Time and memory are linear in the mappings, about 300 bytes for each; more than 512 MiB of text
 * is exit 5. */
HM_MUST_CHECK int smaps_read(const struct target *t, struct smaps *out, struct diag *d);
void smaps_free(struct smaps *s);
#endif
