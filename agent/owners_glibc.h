// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNERS_GLIBC_H
#define HM_OWNERS_GLIBC_H
#include "../inject/reader.h"
#include "../inject/smaps.h"
#include "owners.h"

/* What belongs to glibc's malloc, by its own arenas or by the maps. */
struct glibc_range {
	uint64_t start, end;
	enum owner owner; /* OWNER_GLIBC_MAIN, _ARENA or _MMAPPED */
	long arena;	  /* its number, -1: not known */
	enum basis basis;
};
struct glibc_ranges {
	struct glibc_range *v;
	size_t n, cap;
};
HM_MUST_CHECK int glibc_ranges_add(struct glibc_ranges *r, const struct glibc_range *range);
void glibc_ranges_free(struct glibc_ranges *r);
/* Makes claims of them. */
HM_MUST_CHECK int owner_claim_glibc(struct owner_facts *f, const struct glibc_ranges *r);

/*
 * Pure but for r: the heaps of thread arenas as far as the maps show them. A heap is aligned to
 * 64 MiB (HEAP_MAX_SIZE), begins with a heap_info whose ar_ptr leads to an arena that says the same
 * of itself, and its size there is the length of the accessible part (arena.c). This
 * needs no arena's header, and so also finds the heaps of one that changes too fast to be read;
 * heaps of another alignment (glibc.malloc.hugetlb) are not found.
 */
HM_MUST_CHECK int glibc_ranges_from_maps(const struct smaps *s, const struct reader *r,
					 struct glibc_ranges *out);
#endif
