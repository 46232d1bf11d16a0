// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_HEAP_H
#define LIVE_HEAP_H
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* What heapmedic says of a glibc heap. As elsewhere here, nothing returns an error. */

/* The one answer to a passive command (more: one more word, or NULL). The caller ends it with
 * json_decref. */
json_t *heap_ask(pid_t pid, const char *command, const char *more);
/* The row of one arena in an answer of `arenas`; NULL if there is none. */
json_t *heap_arena(json_t *o, long long index);
/* Does a row, or the total, carry this flag? */
bool heap_flag(json_t *row, const char *name);
/* A fact of an answer of `facts`, whose name has dots in it; json_null() where it is not known. */
json_t *heap_fact(json_t *o, const char *name);
long long heap_fact_int(json_t *o, const char *name);
/* What is true of any answer of `arenas`: largest first, parts are not larger than wholes, sums are
 * sums. */
void heap_check_rows(json_t *o);
/* No flag, no damage, no warning. */
void heap_check_quiet(json_t *o);
/* `arenas` against `info` before and after it. In one session: while it lasts, the thread that
 * makes its calls has a little in the heap. */
void heap_check_info(pid_t pid);
/* The minor number of the target's glibc; 0 where no file tells it (a static program). */
int heap_glibc(pid_t pid);
#endif
