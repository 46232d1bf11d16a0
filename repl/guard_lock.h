// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GUARD_LOCK_H
#define HM_GUARD_LOCK_H
#include "../inject/target.h"

/*
 * One action at a time on a process, whoever wants it: a file for each process that was acted on
 * (its pid and start time are the name), locked with flock(2) while an action runs, so that the
 * kernel frees it when the holder dies. It also remembers when the last action was, so that a guard
 * that is started anew does not act at once again. The files are in /run/heapmedic for root, else
 * in $XDG_RUNTIME_DIR/heapmedic or /tmp/heapmedic-UID: a directory of this user that nobody else
 * may write to, or none is used.
 */
struct guard_lock {
	int fd; /* -1: not held */
};

/*
 * Could a lock be taken? So that it is known before it is time. Exit 1, as guard_lock_take. What is
 * there of processes that are gone is removed.
 */
HM_MUST_CHECK int guard_lock_check(struct diag *d);
/*
 * -EBUSY, without d, if another process acts on t right now: *holder is its pid, 0 if not known.
 * Exit 1 with d where there is no such directory, or it is not ours alone. *last is when the last
 * action was (CLOCK_BOOTTIME, ns), 0 for none.
 */
HM_MUST_CHECK int guard_lock_take(const struct target *t, struct guard_lock *l, uint64_t *last,
				  pid_t *holder, struct diag *d);
/* An action begins at this time: it counts, also where its guard is killed in the middle of it. */
void guard_lock_acts(const struct guard_lock *l, uint64_t now);
/* acted: the time to be remembered, 0: as it was. */
void guard_lock_end(struct guard_lock *l, uint64_t acted);
/* Of a process that is gone nothing need be remembered. */
void guard_lock_forget(const struct target *t);
#endif
