// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PLAN_READ_H
#define HM_GLIBC_PLAN_READ_H
#include "glibc_plan.h"

/*
 * Reads all arenas, each until its header was the same before and after and nothing looked wrong,
 * at most a few times. fault is the first thing that looked wrong in the reading that counts: the
 * numbers are then those of what came before it. budget may be NULL. 0, -ESRCH, -ENOMEM; *out is
 * the caller's (glibc_plan_free), also after an error.
 */
HM_MUST_CHECK int glibc_plan_read(const struct glibc_view *v, const struct pages *pages,
				  const struct glibc_plan_opts *o,
				  const struct glibc_budget *budget, struct glibc_plan *out);
/*
 * Brings plan up to date: arenas whose header is another one than it was are read again, together
 * up to so many free chunks as they had; those that have more are moving then. Arenas that are new
 * are not found. pages and o as they were, but for o->brk. 0, -ESRCH, -ENOMEM.
 */
HM_MUST_CHECK int glibc_plan_again(const struct glibc_view *v, const struct pages *pages,
				   const struct glibc_plan_opts *o, uint64_t chunks,
				   struct glibc_plan *plan);
/* All lists of all arenas were read to their ends, and nothing in them looked wrong. */
bool glibc_plan_is_whole(const struct glibc_plan *plan);
void glibc_plan_free(struct glibc_plan *p);
#endif
