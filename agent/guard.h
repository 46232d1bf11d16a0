// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_H
#define HM_GUARD_H
#include "glibc_check.h"
#include "glibc_picture.h"
#include "process.h"

/*
 * Before a call: is the target's heap such that it survives it? glibc aborts the process when it
 * meets damage, and walks on into the dark where it does not notice.
 */
enum guard_state {
	GUARD_NONE,    /* glibc's malloc is not used, or was never called */
	GUARD_UNKNOWN, /* its heap was not found: a layout that is not known */
	GUARD_LOOKED,  /* check says what was found */
};

struct guard {
	enum guard_state state;
	struct glibc_check check;
	/* An arena whose lock was held all the while, with nothing changing below it: whoever
	 * allocates from it waits. stuck_at 0: none. */
	uint64_t stuck_at;
	unsigned stuck;
	uint64_t ns; /* that the look took */
};

/*
 * Looks. every_chunk: also at chunks in use and thread caches, for a longer time. 0, also where
 * damage was found; -ESRCH with d.
 */
HM_MUST_CHECK int guard_look(struct process *p, bool every_chunk, struct guard *out,
			     struct diag *d);
/*
 * The same from a picture of the heap: its lists are read again only where it is not whole. As
 * guard_look.
 */
HM_MUST_CHECK int guard_judge(struct process *p, const struct glibc_picture *pic, struct guard *out,
			      struct diag *d);
/* Fills d with exit 6 "damaged-heap" and returns -EBADMSG. */
int guard_refuse(const struct process *p, const struct glibc_fault *f, struct diag *d);
/* Fills d with exit 6 "arena-locked" and returns -EBUSY; for a guard with stuck_at. */
int guard_refuse_stuck(const struct process *p, const struct guard *g, struct diag *d);
/*
 * Looks at what calls touch, in p->picture where there is one; exit 6 where it is damaged.
 * p->heap_note tells what could not be looked at, "" if nothing. Does nothing where p->force is
 * set.
 */
HM_MUST_CHECK int guard_run(struct process *p, struct diag *d);
#endif
