// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_UNWIND_H
#define HM_UNWIND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "diag.h"
#include "modules.h"

struct frame {
	uint64_t pc, sp; /* pc of an outer frame is a return address */
	bool signal;	 /* a signal frame: the handler below interrupted this one */
	bool exact;	 /* found by unwind tables, not by guessing */
};

/*
 * Unwinds stopped threads with libunwind over the target's memory. Made once, before anything is
 * held; unwind tables that were read stay cached, so that the second thread costs little.
 */
struct unwinder;
HM_MUST_CHECK int unwinder_new(pid_t pid, const struct modules *mods, struct unwinder **out);
void unwinder_free(struct unwinder *u);
/*
 * Frames of a thread with these registers, innermost first; at most max. complete is true only if
 * each step was exact and the last frame is the outermost one (no return address, or the thread's
 * start function).
 */
HM_MUST_CHECK int unwinder_run(struct unwinder *u, const struct user_regs_struct *regs,
			       struct frame *v, size_t max, size_t *n, bool *complete);
#endif
