// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_STATS_H
#define HM_GLIBC_STATS_H
#include "glibc_info.h"

/*
 * The text of malloc_stats, also with other text before each line. Pure. glibc prints system and in
 * use bytes as 32-bit numbers that wrap at 4 GiB. The total is recomputed from the arenas, and the
 * mmapped bytes from what the printed total has more than they (exact while the printed maximum of
 * mmapped bytes leaves only one answer). An arena with more in use than it has must have wrapped,
 * how often nobody can tell: it is flagged. -ENOENT if there is no malloc_stats in text, -ENOMEM.
 */
HM_MUST_CHECK int glibc_stats_parse(const char *text, size_t len, struct glibc_info *out);
#endif
