// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LOOK_H
#define HM_LOOK_H
#include "advice.h"
#include "facts.h"
#include "glibc_arenas.h"
#include "makeup.h"
#include "memory_cgroup.h"
#include "owners_read.h"
#include "process.h"
#include "verdict.h"

/* Why an allocator was not asked, where nothing was in the way. */
#define LOOK_NOT_ASKED "only a call could tell, and none was made"

/* An allocator that only a call can ask. */
struct look_asked {
	const struct allocator *a; /* in use; of the process, NULL without one */
	bool asked;
	char unasked[512]; /* why not, or "" */
};

/* One picture of a process: all that is known of its memory at one time. */
struct look {
	struct memory memory;
	struct memory_cgroup cgroup;
	struct facts facts;
	bool glibc; /* its heap was read: arenas is valid */
	struct glibc_arenas arenas;
	struct diag glibc_unread;	  /* why not, where glibc is in use; or exit 0 */
	const struct allocator *jemalloc; /* in use; of the process, NULL without one */
	bool jemalloc_asked;
	char jemalloc_unasked[512]; /* why not all of it is known, or "" */
	struct look_asked tcmalloc, mimalloc;
	struct makeup makeup;
	enum verdict verdict;
	char summary[VERDICT_TEXT];
	struct advices advice;
};

/*
 * Nothing is held and no page is touched, but for may_call: then jemalloc, tcmalloc and mimalloc,
 * where they are in use, are asked by calls, unless the process cannot be called now (unasked says
 * why). What cannot
 * be read is not known. 0, and then the caller ends *out with look_free before p is refreshed; else
 * with d, as when the process is gone, or its smaps may not be read.
 */
HM_MUST_CHECK int look_take(struct process *p, bool may_call, struct look *out, struct diag *d);
void look_free(struct look *l);
#endif
