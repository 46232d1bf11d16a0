// SPDX-License-Identifier: GPL-3.0-or-later
#include "restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "syscalls.h"

/* The kernel's internal restart codes (include/linux/errno.h); only a tracer ever sees them. */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
};

#define NS_PER_MS_SIGNED 1000000LL

bool restart_interrupted(const arch_regs *regs, long *nr)
{
	int64_t rc = arch_result(regs);

	*nr = arch_syscall(regs);
	if (*nr < 0)
		return false;
	return rc == -EINTR || rc == -ERESTARTSYS || rc == -ERESTARTNOINTR ||
	       rc == -ERESTARTNOHAND || rc == -ERESTART_RESTARTBLOCK;
}

bool restart_timeout(const arch_regs *regs, unsigned *arg, int *ms)
{
	long nr;

	if (!restart_interrupted(regs, &nr))
		return false;
	switch (nr) {
	case SYS_poll:
		*arg = 2;
		break;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		*arg = 3;
		break;
	default:
		return false;
	}
	*ms = (int)arch_syscall_arg(regs, *arg);
	return *ms > 0;
}

/* What is left of the timeout, rounded up: a wait may end late, never early. */
static void shorten(const arch_regs *stopped, uint64_t slept_ns, arch_regs *out)
{
	unsigned arg;
	int64_t left;
	int ms;

	if (!slept_ns || !restart_timeout(stopped, &arg, &ms))
		return;
	left = ms * NS_PER_MS_SIGNED - (int64_t)(slept_ns < INT64_MAX ? slept_ns : INT64_MAX);
	arch_set_syscall_arg(out, arg,
			     left > 0 ? (uint64_t)((left + NS_PER_MS_SIGNED - 1) / NS_PER_MS_SIGNED)
				      : 0);
}

void restart_regs(const arch_regs *stopped, uint64_t slept_ns, arch_regs *out)
{
	const struct syscall_fact *f;
	long nr;

	*out = *stopped;
	if (!restart_interrupted(stopped, &nr) || arch_result(stopped) != -EINTR)
		return;
	f = syscall_fact(nr);
	if (!f || f->restart != RESTART_HEAL)
		return;
	arch_set_result(out, -ERESTARTNOHAND);
	shorten(stopped, slept_ns, out);
}

/* Calls whose timeout is absolute, infinite, known or none at all can be made again. */
static bool can_repeat(const arch_regs *r, long nr, uint64_t slept_ns)
{
	uint64_t op = arch_syscall_arg(r, 1) & (uint64_t)FUTEX_CMD_MASK;

	if (nr == SYS_poll)
		return slept_ns || (int)arch_syscall_arg(r, 2) <= 0;
	return nr == SYS_futex && (op != FUTEX_WAIT || arch_syscall_arg(r, 3) == 0);
}

void restart_frame_regs(const arch_regs *stopped, uint64_t slept_ns, arch_regs *out)
{
	int64_t result;
	long nr;

	restart_regs(stopped, slept_ns, out);
	result = arch_result(out);
	if (!restart_interrupted(out, &nr) || result == -EINTR) {
		arch_no_syscall(out);
	} else if (result == -ERESTART_RESTARTBLOCK && !can_repeat(stopped, nr, slept_ns)) {
		arch_set_result(out, -EINTR);
		arch_no_syscall(out);
	} else {
		shorten(stopped, slept_ns, out);
		arch_rewind_syscall(out);
	}
}
