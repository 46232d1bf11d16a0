// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYSCALLS_H
#define HM_SYSCALLS_H
#include <stdbool.h>
#include <stdint.h>

/* How the kernel treats a call that a mere ptrace stop interrupts: facts in one table. */
enum restart_kind {
	RESTART_KERNEL, /* returns -ERESTART*: restarts by itself */
	RESTART_HEAL,	/* may return -EINTR after a mere stop; safe to ask for again */
	RESTART_NEVER,	/* not to be interrupted, or not asleep in a wait at all */
};
struct syscall_fact {
	long nr;
	const char *name;
	enum restart_kind restart;
	bool waits; /* a call in which threads sleep for long */
};
const struct syscall_fact *syscall_fact(long nr); /* NULL if not in the table */
const char *syscall_name(long nr); /* static text; "a system call" if not in the table */
/*
 * The same for one call with its arguments: RESTART_NEVER also where an interruption would show as
 * a short result (half a write, fewer events than asked for), which no restart can undo. Unknown
 * calls are RESTART_NEVER.
 */
enum restart_kind syscall_restart(long nr, const uint64_t arg[6]);
#endif
