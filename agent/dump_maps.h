// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DUMP_MAPS_H
#define HM_DUMP_MAPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * The mappings at the end of a heap profile (the text of /proc/PID/maps behind MAPPED_LIBRARIES:),
 * without which its addresses mean nothing. jemalloc opens that file by the number that getpid(2)
 * gives it: without a proc in the target's root there are none (5.3) or no dump at all (before),
 * and with the proc of another pid namespace they are another process's.
 */

/* Pure: does a mapping that text has there hold addr? */
bool dump_maps_have(const char *text, size_t len, uint64_t addr);
/*
 * Pure: takes what stands there away and puts maps, a NUL-terminated text of the same form, in its
 * place. *text (malloc'ed) and *len change, also its address; a NUL stands behind it. -ENOMEM, then
 * nothing has changed.
 */
HM_MUST_CHECK int dump_maps_put(char **text, size_t *len, const char *maps);
#endif
