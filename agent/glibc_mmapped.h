// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_MMAPPED_H
#define HM_GLIBC_MMAPPED_H
#include "glibc_find.h"

/* Blocks that malloc has given a mapping of their own (mmapped chunks). */
struct glibc_mmapped {
	struct span *v; /* by address; each from the start of its mapping to its end */
	size_t n, cap;
	bool proven; /* as many, and as large together, as malloc counts itself (mp_) */
};

/*
 * Looks for them in places: writable private anonymous memory that is nobody else's, page aligned
 * and by address. No list leads to these blocks. Each begins with its header (prev_size: how far
 * that is behind the start of the mapping, for aligned blocks; size with bit 1 set), and both
 * together make up whole pages (malloc.c, sysmalloc_mmap and _int_memalign). A block may go on in
 * the next place where there is no gap between the two. Pure but for v's reader, of which it reads
 * at most some 100,000 pages. 0, also where none is found; -ENOMEM, -ESRCH. The caller ends *out
 * with glibc_mmapped_free, also after an error.
 */
HM_MUST_CHECK int glibc_mmapped_find(const struct glibc_view *v, const struct span *places,
				     size_t n, struct glibc_mmapped *out);
void glibc_mmapped_free(struct glibc_mmapped *m);
#endif
