// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_LIVE_H
#define HM_GLIBC_LIVE_H
#include "../inject/peek.h"
#include "glibc_find.h"
#include "process.h"

/* glibc's malloc in a living process, read without a call: nobody is held, no page is touched. */
struct glibc_live {
	struct peek *peek;
	struct glibc_view view;
};

/*
 * Finds the heap of allocator a (glibc). 0; -ENOENT if libc's data does not look like one of the
 * known layouts, -ENODATA if nothing was ever allocated (d is not filled for these two); else d.
 * The caller ends it with glibc_live_close, after 0 only. p must stay valid.
 */
HM_MUST_CHECK int glibc_live_open(const struct process *p, const struct allocator *a,
				  struct glibc_live *out, struct diag *d);
void glibc_live_close(struct glibc_live *l);
/*
 * What to say where the memory was gone (-ESRCH) in the middle: that goes with the process, but
 * also where it executes another program. Fills d, exit 3 or 6; returns -ESRCH or -ESTALE.
 */
int glibc_live_lost(const struct process *p, struct diag *d);
#endif
