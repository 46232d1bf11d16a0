// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_INFO_H
#define HM_GLIBC_INFO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * malloc_info's XML (glibc_info_xml.h), or the text of malloc_stats (glibc_stats.h), as numbers.
 * Pure. Units: bytes and counts; all 64 bit. As glibc counts: system and in_use are without mmapped
 * chunks, thread caches are in use.
 */
enum info_flag {
	INFO_FREE_OVER_SYSTEM = 1, /* more free than the arena has */
	INFO_WRAPPED =
		2, /* a 32-bit counter has wrapped (undone where proven, else only flagged) */
	INFO_TOTAL_DIFFERS = 4, /* the printed total is not the sum of the arenas */
	INFO_CUT = 8,		/* the text ended early */
	INFO_TOP_IN_USE = 16,	/* before 2.31 the top chunk is in no free row: counted as in use */
};
struct info_arena {
	unsigned index;
	uint64_t system, max;
	uint64_t in_use;     /* system - free */
	uint64_t free, fast; /* free: all of it, fast bins and top included */
	uint64_t aspace, mprotect;
	uint64_t free_count, fast_count;
	unsigned subheaps;
	unsigned flags;
};
struct glibc_info {
	struct info_arena *arena;
	size_t arenas;
	struct info_arena total; /* index unused */
	uint64_t mmapped, mmapped_count;
	bool has_total;
};
/* Hostile numbers do not wrap: the sum, at most UINT64_MAX. */
static inline uint64_t info_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void glibc_info_free(struct glibc_info *i);
/* "free-over-system", "wrapped" ...; "" for an unknown bit. */
const char *info_flag_name(unsigned bit);
/* Appends to out->arena, at most GLIBC_INFO_ARENAS (-E2BIG), -ENOMEM. */
#define GLIBC_INFO_ARENAS ((size_t)65536)
HM_MUST_CHECK int glibc_info_add(struct glibc_info *i, const struct info_arena *a);
/* Adds the figures of a to those of t. */
void info_arena_add(struct info_arena *t, const struct info_arena *a);
/* Sums the arenas into total (its flags are kept). */
void glibc_info_sum(struct glibc_info *i);
#endif
