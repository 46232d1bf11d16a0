// SPDX-License-Identifier: GPL-3.0-or-later
#include "syscalls.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Younger than the headers of the oldest system that we build on. */
#define NR_EPOLL_PWAIT2 441
#define NR_FUTEX_WAITV	449
#define NR_FUTEX_WAIT	455

/*
 * signal(7), "Interruption of system calls and library functions by stop signals", and the return
 * values in the kernel's sources. Calls on descriptors count as RESTART_HEAL although the kernel
 * restarts most of them: on a socket with SO_RCVTIMEO or SO_SNDTIMEO the same call returns -EINTR.
 */
static const struct syscall_fact facts[] = {
	/* -ERESTARTSYS, -ERESTARTNOINTR, -ERESTARTNOHAND or -ERESTART_RESTARTBLOCK */
	{ SYS_futex, "futex", RESTART_KERNEL, true },
	{ NR_FUTEX_WAIT, "futex_wait", RESTART_KERNEL, true },
	{ SYS_nanosleep, "nanosleep", RESTART_KERNEL, true },
	{ SYS_clock_nanosleep, "clock_nanosleep", RESTART_KERNEL, true },
	{ SYS_restart_syscall, "restart_syscall", RESTART_KERNEL, true },
	{ SYS_poll, "poll", RESTART_KERNEL, true },
	{ SYS_wait4, "wait4", RESTART_KERNEL, true },
	{ SYS_waitid, "waitid", RESTART_KERNEL, true },
	{ SYS_flock, "flock", RESTART_KERNEL, true },
	{ SYS_fcntl, "fcntl", RESTART_KERNEL, true },
	{ SYS_msgrcv, "msgrcv", RESTART_KERNEL, true },
	{ SYS_msgsnd, "msgsnd", RESTART_KERNEL, true },
	{ SYS_mq_timedreceive, "mq_timedreceive", RESTART_KERNEL, true },
	{ SYS_mq_timedsend, "mq_timedsend", RESTART_KERNEL, true },
	{ SYS_rt_sigsuspend, "rt_sigsuspend", RESTART_KERNEL, true },
	{ SYS_pause, "pause", RESTART_KERNEL, true },
	{ SYS_open, "open", RESTART_KERNEL, true }, /* a FIFO without a peer */
	{ SYS_openat, "openat", RESTART_KERNEL, true },
	{ SYS_io_pgetevents, "io_pgetevents", RESTART_KERNEL, true },

	/* -EINTR, always or where the socket has a timeout */
	{ SYS_epoll_wait, "epoll_wait", RESTART_HEAL, true },
	{ SYS_epoll_pwait, "epoll_pwait", RESTART_HEAL, true },
	{ NR_EPOLL_PWAIT2, "epoll_pwait2", RESTART_HEAL, true },
	/* with a timeout in memory that the kernel cannot write the rest back to */
	{ SYS_select, "select", RESTART_HEAL, true },
	{ SYS_pselect6, "pselect6", RESTART_HEAL, true },
	{ SYS_ppoll, "ppoll", RESTART_HEAL, true },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait", RESTART_HEAL, true },
	{ SYS_semop, "semop", RESTART_HEAL, true },
	{ SYS_semtimedop, "semtimedop", RESTART_HEAL, true },
	{ SYS_io_getevents, "io_getevents", RESTART_HEAL, true },
	{ SYS_io_uring_enter, "io_uring_enter", RESTART_HEAL, true },
	{ NR_FUTEX_WAITV, "futex_waitv", RESTART_HEAL, true },
	{ SYS_read, "read", RESTART_HEAL, true },
	{ SYS_readv, "readv", RESTART_HEAL, true },
	{ SYS_write, "write", RESTART_HEAL, true },
	{ SYS_writev, "writev", RESTART_HEAL, true },
	{ SYS_accept, "accept", RESTART_HEAL, true },
	{ SYS_accept4, "accept4", RESTART_HEAL, true },
	{ SYS_recvfrom, "recvfrom", RESTART_HEAL, true },
	{ SYS_recvmsg, "recvmsg", RESTART_HEAL, true },
	{ SYS_recvmmsg, "recvmmsg", RESTART_HEAL, true },
	{ SYS_sendto, "sendto", RESTART_HEAL, true },
	{ SYS_sendmsg, "sendmsg", RESTART_HEAL, true },
	{ SYS_sendmmsg, "sendmmsg", RESTART_HEAL, true },

	/* cannot be asked for again, or may have done half of their work when they are stopped */
	{ SYS_connect, "connect", RESTART_NEVER, true },
	{ SYS_close, "close", RESTART_NEVER, false },
	{ SYS_sendfile, "sendfile", RESTART_NEVER, true },
	{ SYS_splice, "splice", RESTART_NEVER, true },
	{ SYS_tee, "tee", RESTART_NEVER, true },
	{ SYS_vmsplice, "vmsplice", RESTART_NEVER, true },
	{ SYS_ioctl, "ioctl", RESTART_NEVER, true },
	{ SYS_vfork, "vfork", RESTART_NEVER, true },
	{ SYS_fsync, "fsync", RESTART_NEVER, true },
	{ SYS_fdatasync, "fdatasync", RESTART_NEVER, true },
};

const struct syscall_fact *syscall_fact(long nr)
{
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (facts[i].nr == nr)
			return &facts[i];
	}
	return NULL;
}

const char *syscall_name(long nr)
{
	const struct syscall_fact *f = syscall_fact(nr);

	return f ? f->name : "a system call";
}

/* A pipe takes this much at once or waits (PIPE_BUF, pipe(7)); sockets hardly ever split it. */
#define WHOLE_WRITE 4096U

/*
 * What is done when the stop comes is done: the call then returns short instead of restarting. Each
 * rule names the argument that says whether it can be half done.
 */
static const struct split {
	long nr;
	unsigned arg;
	enum { ALWAYS, ABOVE, HAS_BITS, LACKS_BITS } test;
	uint64_t value;
	uint64_t only_if_above; /* with LACKS_BITS: applies if argument 2 is above this */
} splits[] = {
	{ SYS_write, 2, ABOVE, WHOLE_WRITE, 0 },
	{ SYS_sendto, 2, ABOVE, WHOLE_WRITE, 0 },
	{ SYS_writev, 0, ALWAYS, 0, 0 }, /* their lengths are in memory only */
	{ SYS_sendmsg, 0, ALWAYS, 0, 0 },
	{ SYS_sendmmsg, 0, ALWAYS, 0, 0 },
	{ SYS_recvfrom, 3, HAS_BITS, MSG_WAITALL, 0 },
	{ SYS_recvmsg, 2, HAS_BITS, MSG_WAITALL, 0 },
	{ SYS_recvmmsg, 3, LACKS_BITS, MSG_WAITFORONE, 1 }, /* several, and waits for all */
	{ SYS_io_getevents, 1, ABOVE, 1, 0 },
	{ SYS_io_pgetevents, 1, ABOVE, 1, 0 },
	{ SYS_io_uring_enter, 1, ABOVE, 0, 0 }, /* submits: returns that count, not -EINTR */
	{ SYS_io_uring_enter, 2, ABOVE, 1, 0 }, /* returns 0 once there is a completion */
};

static bool split_applies(const struct split *s, const uint64_t arg[6])
{
	uint64_t v = arg[s->arg];

	switch (s->test) {
	case ALWAYS:
		return true;
	case ABOVE:
		return v > s->value;
	case HAS_BITS:
		return (v & s->value) != 0;
	case LACKS_BITS:
		return (v & s->value) == 0 && arg[2] > s->only_if_above;
	}
	return true;
}

enum restart_kind syscall_restart(long nr, const uint64_t arg[6])
{
	const struct syscall_fact *f = syscall_fact(nr);

	if (!f)
		return RESTART_NEVER;
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		if (splits[i].nr == nr && split_applies(&splits[i], arg))
			return RESTART_NEVER;
	}
	return f->restart;
}
