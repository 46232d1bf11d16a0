// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PREDICT_H
#define HM_GLIBC_PREDICT_H
#include "prediction.h"
#include "process.h"

/*
 * What malloc_trim(pad) would give back, in a few numbers: from p->picture, brought up to date,
 * where there is one of the same pad; else by a look of its own. What is not known is no error.
 * allocator_ops.predict.
 */
HM_MUST_CHECK int glibc_predict(struct process *p, const struct allocator *a, uint64_t pad,
				struct prediction *out, struct diag *d);
#endif
