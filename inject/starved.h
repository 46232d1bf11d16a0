// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_STARVED_H
#define HM_STARVED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target.h"

/*
 * Threads that could run and get no CPU: what they hold, they keep meanwhile, however long that is.
 */
struct starved {
	struct starved_thread *v;
	size_t n;
};

/* The time that a thread has spent on a CPU, ns: the first field of its schedstat; 0 if it cannot
 * be read (proc(5), sched-stats.rst of the kernel). */
uint64_t thread_cpu_time(const struct target *t, pid_t tid);
/* Notes the threads that run or wait for a CPU now (state R). 0, -ENOMEM or an errno of reading;
 * starved_free frees, also after an error. */
HM_MUST_CHECK int starved_note(const struct target *t, struct starved *s);
/* Has one of them had at most ns of CPU time since, and is still in that state? */
bool starved_any(const struct target *t, const struct starved *s, uint64_t ns);
void starved_free(struct starved *s);
#endif
