// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROF_H
#define HM_PROF_H
#include <stddef.h>

#include "commands.h"

/*
 * What `prof` can do, by its first word: cmd_prof_status.c says what there is, cmd_prof_live.c
 * switches the sampling, cmd_prof_dump.c brings a profile here, cmd_prof_file.c and
 * cmd_prof_export.c look at one. argv[0] is that word.
 */
command_fn prof_status, prof_on, prof_off, prof_reset, prof_dump, prof_top, prof_export, prof_diff;
check_fn check_prof_on, check_prof_reset, check_prof_top, check_prof_export;

/* The jemalloc to ask, or exit 5; which of several it is is warned of, where r is not NULL. */
HM_MUST_CHECK int prof_jemalloc(struct context *c, struct reply *r, const struct allocator **out,
				struct diag *d);

/* The name of the i-th, NULL behind the last. */
const char *prof_name(size_t i);

/*
 * The target's heap profile of now, as jemalloc writes it (heap_v2). *data is malloc'ed, len bytes
 * and a NUL behind them, and the caller's. Errors: no jemalloc (exit 5), profiling not compiled in
 * or not enabled at start, a dump that the target could not make (exit 1), those of a call.
 */
HM_MUST_CHECK int prof_take(struct context *c, char **data, size_t *len, struct diag *d);
#endif
