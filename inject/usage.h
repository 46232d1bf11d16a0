// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_USAGE_H
#define HM_USAGE_H
#include <stdint.h>

#include "diag.h"
#include "target.h"

/* Bytes, from /proc/PID/smaps_rollup (Linux 4.14), summed from smaps where that is missing. */
struct usage {
	uint64_t rss, pss, anon, swap, lazyfree, locked, anon_huge, shmem_huge, private_dirty;
	uint64_t pss_anon; /* of anonymous memory; smaps_rollup only (Linux 5.3), else 0 */
	uint64_t hugetlb;  /* from the pool of huge pages: no part of rss */
};
/*
 * Pure: adds up each field over all mappings that the text tells of, so that one parser reads
 * smaps_rollup and smaps. -EINVAL if there is no Rss at all, or a number is damaged or too large.
 */
HM_MUST_CHECK int usage_parse(const char *text, struct usage *out);
/* Pure: "   123 kB" up to the end of the line or the text: adds its bytes to *sum. -EINVAL. */
HM_MUST_CHECK int usage_add_kb(const char *s, uint64_t *sum);
HM_MUST_CHECK int usage_read(const struct target *t, struct usage *out, struct diag *d);
/*
 * Only the RSS in bytes, from /proc/PID/statm: no page table is walked for it, so that it costs the
 * same of any process. The kernel's counters may be a few pages per CPU behind (proc(5)).
 * -ESRCH or another errno of reading it, -EINVAL if it has an unknown form.
 */
HM_MUST_CHECK int usage_rss(const struct target *t, uint64_t *rss);
/* Pure: the second number of statm's text, pages. -EINVAL. */
HM_MUST_CHECK int usage_parse_statm(const char *text, uint64_t *pages);
#endif
