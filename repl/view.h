// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_VIEW_H
#define HM_VIEW_H
#include "../agent/jemalloc_arenas.h"
#include "../agent/look.h"
#include "../agent/thread_rows.h"
#include "context.h"

/*
 * What the looking commands look at: the process as it is now (context_process has opened it), or
 * what was saved of one (--load). Each reads no more than it says. *out is the saved one, or own,
 * which the caller then ends with its own _free; errors are those of the reader.
 */
/* may_call: see look_take; --passive calls nobody in any case. */
HM_MUST_CHECK int view_look(struct context *c, bool may_call, struct look *own,
			    const struct look **out, struct diag *d);
HM_MUST_CHECK int view_memory(struct context *c, struct memory *own, const struct memory **out,
			      struct diag *d);
HM_MUST_CHECK int view_threads(struct context *c, struct thread_rows *own,
			       const struct thread_rows **out, struct diag *d);
/* -ENODATA, without d, where glibc has not allocated anything yet. */
HM_MUST_CHECK int view_arenas(struct context *c, struct glibc_arenas *own,
			      const struct glibc_arenas **out, struct diag *d);
/* Of a, by calls. Exit 4 under --passive, and for a snapshot that was taken so. */
HM_MUST_CHECK int view_jemalloc(struct context *c, const struct allocator *a,
				struct jemalloc_arenas *own, const struct jemalloc_arenas **out,
				struct diag *d);
const struct allocators *view_allocators(const struct context *c);
#endif
