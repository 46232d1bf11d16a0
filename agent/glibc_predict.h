// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PREDICT_H
#define HM_GLIBC_PREDICT_H
#include "glibc_plan.h"
#include "prediction.h"
#include "process.h"

/*
 * Plans malloc_trim(pad) for the heap of a (glibc) as it is now; nobody is held, no page is
 * touched. 0, and then the caller ends *out with glibc_plan_free; -ENOENT where the heap was not
 * found, -ENXIO where the pages of the process may not be looked at, -ENODATA where nothing was
 * ever allocated (d is not filled for these three); else with d.
 */
HM_MUST_CHECK int glibc_plan_live(struct process *p, const struct allocator *a, uint64_t pad,
				  struct glibc_plan *out, struct diag *d);
/* The same in a few numbers; what is not known is no error. allocator_ops.predict. */
HM_MUST_CHECK int glibc_predict(struct process *p, const struct allocator *a, uint64_t pad,
				struct prediction *out, struct diag *d);
#endif
