// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_BACKTRACE_H
#define HM_BACKTRACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "modules.h"
#include "session.h"
#include "target.h"
#include "unwind.h"

/*
 * Frames of one thread, which is held only while it is unwound and goes back to the call it was in.
 * At most max frames; complete as in unwinder_run. *held is how long, and what it cost. Errors:
 * exit 3 no such thread, 4 not permitted, 6 stopped.
 */
HM_MUST_CHECK int backtrace_thread(const struct target *t, const struct modules *mods, pid_t tid,
				   struct frame *v, size_t max, size_t *n, bool *complete,
				   struct held *held, struct diag *d);
#endif
