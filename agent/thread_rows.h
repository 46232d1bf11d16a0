// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_THREAD_ROWS_H
#define HM_THREAD_ROWS_H
#include "../inject/threads.h"
#include "glibc_threads.h"
#include "owners.h"
#include "process.h"

/* A thread: what it waits in, and what it has of glibc's malloc and of the stacks. */
struct thread_row {
	struct thread t;
	struct glibc_thread g;
	uint64_t stack_mapped, stack_resident; /* bytes; 0 until thread_rows_stacks */
};
struct thread_rows {
	struct thread_row *v; /* best candidate first */
	size_t n;
};

/*
 * All threads of p. Nobody is held. Without the right to attach, what they do is not known, and
 * none is usable. 0, and then the caller ends *out with thread_rows_free; else with d.
 */
HM_MUST_CHECK int thread_rows_read(const struct process *p, struct thread_rows *out,
				   struct diag *d);
void thread_rows_free(struct thread_rows *r);
/* Pure: fills in the stacks from the pieces that say whose they are. main is the process's pid. */
void thread_rows_stacks(struct thread_rows *r, const struct owners *o, pid_t main);
#endif
