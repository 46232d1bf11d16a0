// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_STACKS_H
#define HM_STACKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "maps.h"
#include "modules.h"
#include "target.h"

/* Where the stack of a thread lies; the main thread's is the kernel's [stack]. */
struct stack {
	uint64_t lo, hi; /* the whole block: guard, stack, struct pthread and static TLS */
	pid_t tid;	 /* as the target's own pid namespace counts; 0: of a thread that has ended,
			    kept for the next one */
	bool exact;	 /* glibc's own bounds; false: the mapping that its stack pointer is in */
};

struct stacks {
	struct stack *v;
	size_t n;
	uint64_t main_tcb; /* the main thread's struct pthread, 0 if not found */
};

/*
 * Pure: bounds of the block of the thread whose struct pthread is at tcb, from its first len bytes
 * in buf. glibc keeps them there as two words, stackblock and stackblock_size: they are found as
 * the pair whose sum is the end of the block, which struct pthread is at (all versions; the offset
 * of the pair is in no header). False if there is no such pair (the main thread).
 */
bool stack_bounds(const void *buf, size_t len, uint64_t tcb, uint64_t *lo, uint64_t *hi);

/*
 * All stacks but the main one: through glibc's own lists (2.34 and newer, dynamic). Without lists
 * by their shape (behind a guard, with a struct pthread at the end), and by the stack pointers of
 * the threads that are not running. Nothing is stopped: a thread that starts or ends meanwhile may
 * be missing. Only memory that threads have written is read. mods may be NULL.
 */
HM_MUST_CHECK int stacks_read(const struct target *t, const struct maps *maps,
			      const struct modules *mods, struct stacks *out, struct diag *d);
void stacks_free(struct stacks *s);
#endif
