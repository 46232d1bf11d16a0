// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_RESTART_H
#define HM_RESTART_H
#include <stdbool.h>
#include <stdint.h>

#include "arch/x86_64.h"

/*
 * A stop interrupts the system call that a thread sleeps in. The kernel makes most calls again by
 * itself (restart codes, include/linux/errno.h); the others return -EINTR, which no application
 * expects without a signal.
 */

/*
 * Is the thread in a system call that was interrupted by the stop? Then *nr is the call; its result
 * is one of the kernel's restart codes or -EINTR.
 */
bool restart_interrupted(const arch_regs *regs, long *nr);

/*
 * Does the call take a relative timeout in a register, counted in milliseconds? Made again, it must
 * wait only for what is left. *arg is the argument's index, *ms its value (positive).
 */
bool restart_timeout(const arch_regs *regs, unsigned *arg, int *ms);

/*
 * Pure: the registers that make the interrupted call right again. slept_ns: how long the call has
 * waited so far, 0 where that is not known (then it waits for its whole time once more, never for
 * less than it should).
 *
 * restart_regs: for PTRACE_SETREGS before letting go; the kernel restarts the call itself (-EINTR
 * of a call that a mere stop interrupted becomes ERESTARTNOHAND, which still gives way to a real
 * signal handler). restart_frame_regs: for rt_sigreturn, which forgets restart state: the call is
 * made again where that is right, and returns -EINTR where only the kernel knew the remaining time.
 */
void restart_regs(const arch_regs *stopped, uint64_t slept_ns, arch_regs *out);
void restart_frame_regs(const arch_regs *stopped, uint64_t slept_ns, arch_regs *out);
#endif
