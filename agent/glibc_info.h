// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_INFO_H
#define HM_GLIBC_INFO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/* malloc_info's XML as numbers. Pure. Units: bytes and counts; all 64 bit. */
enum info_flag {
	INFO_FREE_OVER_SYSTEM = 1, /* more free than the arena has */
	INFO_WRAPPED =
		2, /* a 32-bit counter has wrapped (undone where proven, else only flagged) */
	INFO_TOTAL_DIFFERS = 4, /* the printed total is not the sum of the arenas */
	INFO_CUT = 8,		/* the text ended early */
};
struct info_arena {
	unsigned index;
	uint64_t system, max, in_use, free, fast, aspace, mprotect;
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
/*
 * Parses text of malloc_info (also with text glued around it, or cut: flagged) with expat; entity
 * declarations are refused. -EINVAL with a diag (exit 1, "bad-malloc-info", line number) when there
 * is no malloc_info in it at all.
 */
HM_MUST_CHECK int glibc_info_parse(const char *text, size_t len, struct glibc_info *out,
				   struct diag *d);
void glibc_info_free(struct glibc_info *i);
const char *info_flag_name(unsigned bit);
#endif
