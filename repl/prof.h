// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROF_H
#define HM_PROF_H
#include <stddef.h>

#include "commands.h"

/*
 * What `prof` can do, by its first word: those that need the process are in cmd_prof.c, those that
 * look at a profile in cmd_prof_file.c. argv[0] is that word.
 */
command_fn prof_top, prof_export, prof_diff;
check_fn check_prof_top, check_prof_export;

/* The name of the i-th, NULL behind the last. */
const char *prof_name(size_t i);

/*
 * The target's heap profile of now, as jemalloc writes it (heap_v2). *data is malloc'ed, len bytes
 * and a NUL behind them, and the caller's. Errors: no jemalloc (exit 5), profiling not compiled in
 * or not enabled at start, a dump that the target could not make (exit 1), those of a call.
 */
HM_MUST_CHECK int prof_take(struct context *c, char **data, size_t *len, struct diag *d);
#endif
