// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PICTURE_H
#define HM_GLIBC_PICTURE_H
#include "glibc_live.h"
#include "glibc_plan_read.h"

/*
 * A heap of glibc as it was at one time: its lists, walked once, tell what a trim would return, and
 * whether they are such that a call gets through them (guard.h). Nobody is held for it, no page is
 * touched.
 */
struct glibc_picture {
	struct glibc_live live;
	struct pages pages;
	struct glibc_pinned *pinned;
	struct glibc_plan_opts o;
	struct glibc_plan plan;
	uint64_t ns; /* that it took */
};

/*
 * Reads the heap of a (glibc) and plans malloc_trim(pad). 0, and then the caller ends *out with
 * glibc_picture_free, before p or its modules are gone; -ENOENT where the heap was not found,
 * -ENXIO where the pages of the process may not be looked at, -ENODATA where nothing was ever
 * allocated (d is not filled for these three); else with d.
 */
HM_MUST_CHECK int glibc_picture_take(struct process *p, const struct allocator *a, uint64_t pad,
				     struct glibc_picture **out, struct diag *d);
/* Brings it up to date (glibc_plan_again). */
HM_MUST_CHECK int glibc_picture_again(struct process *p, const struct allocator *a,
				      struct glibc_picture *pic, struct diag *d);
void glibc_picture_free(struct glibc_picture *pic); /* may be NULL */

/*
 * Takes p->picture, for a command that both looks whether the heap is whole and predicts. There is
 * none where a picture cannot be had; that is no error here.
 */
HM_MUST_CHECK int glibc_picture_keep(struct process *p, uint64_t pad, struct diag *d);
void glibc_picture_drop(struct process *p);
#endif
