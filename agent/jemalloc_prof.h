// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_PROF_H
#define HM_JEMALLOC_PROF_H
#include "process.h"
#include "prof_state.h"

/* jemalloc's heap profiling in a process: by calls. */

/* All of it in one batch. Errors are those of a call. */
HM_MUST_CHECK int jemalloc_prof_state(struct process *p, const struct allocator *a,
				      struct prof_state *out, struct diag *d);
/* prof_conf_line for it, with what its environment has. Returns buf. */
const char *jemalloc_prof_line(const struct process *p, const struct allocator *a, char *buf,
			       size_t size);
/* The same, and exit 1 where nothing can be sampled (prof_check). */
HM_MUST_CHECK int jemalloc_prof_require(struct process *p, const struct allocator *a,
					struct prof_state *out, struct diag *d);
/* Switches the sampling; *was is what it was before. */
HM_MUST_CHECK int jemalloc_prof_switch(struct process *p, const struct allocator *a, bool on,
				       bool *was, struct diag *d);
/*
 * Has our thread in the target switch it off should we be gone without having done so. false
 * takes that back. -EOPNOTSUPP where there is no such thread (d is left alone).
 */
HM_MUST_CHECK int jemalloc_prof_off_at_end(struct process *p, const struct allocator *a, bool off,
					   struct diag *d);
/* Forgets all samples; from now on one is taken per 2^lg bytes. */
HM_MUST_CHECK int jemalloc_prof_reset(struct process *p, const struct allocator *a, uint64_t lg,
				      struct diag *d);

/*
 * The profile of now as jemalloc writes it (heap_v2), with the mappings behind it. It is written to
 * a memory file (memfile.h): the target's file systems see nothing of it. *text has len bytes and a
 * NUL behind them, and is the caller's; *ns is what the call took inside the target. Exit 1 with
 * the reason where jemalloc could not write it, exit 6 where its memory cgroup has no room for it.
 */
HM_MUST_CHECK int jemalloc_prof_dump(struct process *p, const struct allocator *a, char **text,
				     size_t *len, uint64_t *ns, struct diag *d);
#endif
