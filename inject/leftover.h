// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LEFTOVER_H
#define HM_LEFTOVER_H
#include "maps.h"
#include "payload/abi.h"
#include "session.h"

/*
 * What killed runs have left. range gets the address ranges that nobody uses any more, at most max;
 * *n how many. A region is in use while a thread named after us runs, a thread's stack pointer lies
 * in it, or its boot code has begun and not ended.
 */
HM_MUST_CHECK int leftover_find(const struct target *t, const struct maps *maps,
				struct hm_range *range, size_t max, size_t *n,
				struct leftovers *out);
#endif
