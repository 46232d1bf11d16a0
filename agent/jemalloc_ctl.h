// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_CTL_H
#define HM_JEMALLOC_CTL_H
#include <time.h>

#include "ctl_build.h"
#include "mallctl.h"
#include "process.h"

/* MALLCTL_ARENAS_ALL: the index that stands for all arenas, since 5.0. */
#define JEMALLOC_ARENAS_ALL 4096
/* MALLOCX_ARENA_LIMIT: no arena has a larger index than one below it. */
#define JEMALLOC_ARENAS_MAX 4095

/*
 * When statistics are of: jemalloc answers stats.* from a picture that it takes when `epoch` is
 * written, which is done before they are read.
 */
struct ctl_fresh {
	bool known;
	uint64_t epoch;	    /* the number of that picture */
	struct timespec at; /* CLOCK_REALTIME, when it was there */
};

/*
 * Reads name (old may be NULL), writes value (NULL: only read), refreshing the epoch first for
 * stats.*. A name with no data (CTL_VOID) is called: both NULL. "all" as index stands for all
 * arenas where jemalloc itself knows that index; elsewhere it is a sweep, see jemalloc_sweep.h. old
 * is what stood there before the write; its type is CTL_VOID if nothing was read. An index that is
 * too large is refused before it reaches jemalloc, which takes narenas itself for all arenas.
 * Errors of mallctl come as exit 1 with a sentence for this return code, name, version and build.
 */
HM_MUST_CHECK int jemalloc_ctl(struct process *p, const struct allocator *a, const char *name,
			       const struct ctl_name *row, const struct ctl_value *value,
			       struct ctl_value *old, struct diag *d);
/*
 * The same. *now (may be NULL) is what stands there after a write, which need not be the value that
 * was given: jemalloc rounds some (arena.<i>.retain_grow_limit), and an epoch counts by itself. Its
 * type is CTL_VOID if nothing was read. *fresh (may be NULL) says when the statistics are of.
 * agreed: the operator knows what ctl_check_value would refuse as unsafe, and wants it.
 */
HM_MUST_CHECK int jemalloc_ctl_at(struct process *p, const struct allocator *a, const char *name,
				  const struct ctl_name *row, const struct ctl_value *value,
				  struct ctl_value *old, struct ctl_value *now,
				  struct ctl_fresh *fresh, bool agreed, struct diag *d);

/* One name to be read along with others. */
struct ctl_ask {
	const char *name; /* without `all` */
	const struct ctl_name *row;
	int rc;			/* out: 0, or what mallctl returned, or EPROTO for another size */
	struct ctl_value value; /* out, where rc is 0 */
};
/*
 * Reads n names in as few batches as there is room for, so that a direct session holds its thread
 * few times. The epoch is renewed first if fresh is given. What mallctl refuses is no error here.
 */
HM_MUST_CHECK int jemalloc_ask(struct process *p, const struct allocator *a, struct ctl_ask *v,
			       size_t n, struct ctl_fresh *fresh, struct diag *d);
/* What the build says of itself, for ctl_error; what it does not say is unknown. */
HM_MUST_CHECK int jemalloc_build(struct process *p, const struct allocator *a,
				 struct ctl_build *out, struct diag *d);
/* ctl_error with what is known without a call: the version, and the variable of the options. */
int jemalloc_refused(const struct allocator *a, const char *name, bool write, int rc,
		     struct diag *d);
/* The version alone, by a call where it is not known without one; 0 if that fails, too. */
HM_MUST_CHECK int jemalloc_version(struct process *p, const struct allocator *a, unsigned *version,
				   struct diag *d);
#endif
