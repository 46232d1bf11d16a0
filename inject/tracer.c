// SPDX-License-Identifier: GPL-3.0-or-later
#include "tracer.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "clock.h"
#include "fault_point.h"

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

/* A thread that was killed in its stop ends in microseconds, unless its end is not told yet: the
 * main thread's comes after those of all others (kernel/exit.c, delay_group_leader). */
#define DEATH_LIMIT (20 * NS_PER_MS)

/* glibc declares ptrace's first argument as an enum; the kernel's newer requests are not in it. */
static int request(int req, pid_t tid, uintptr_t addr, uintptr_t data)
{
	long rc;

	fault_point();
	rc = ptrace((enum __ptrace_request)req, tid, (void *)addr, (void *)data);

	return rc < 0 ? -errno : 0;
}

int tracee_seize(struct tracee *t, pid_t tid, unsigned long options)
{
	int rc = request(PTRACE_SEIZE, tid, 0, options);

	if (rc)
		return rc;
	memset(t, 0, sizeof(*t));
	t->tid = tid;
	t->seized = true;
	return 0;
}

int tracee_options(struct tracee *t, unsigned long options)
{
	return request(PTRACE_SETOPTIONS, t->tid, 0, options);
}

int tracee_interrupt(struct tracee *t)
{
	return request(PTRACE_INTERRUPT, t->tid, 0, 0);
}

int tracee_new_thread(const struct tracee *t, pid_t *tid)
{
	unsigned long msg = 0;
	int rc = request(PTRACE_GETEVENTMSG, t->tid, 0, (uintptr_t)&msg);

	if (rc == 0)
		*tid = (pid_t)msg;
	return rc;
}

int tracee_resume(struct tracee *t, int req, int sig)
{
	int rc = request(req, t->tid, 0, (uintptr_t)sig);

	if (rc == 0)
		t->stopped = false;
	return rc;
}

int tracee_wait(struct tracee *t, uint64_t deadline, const volatile sig_atomic_t *cancel)
{
	int rc = wait_event(t->tid, deadline, cancel, &t->event);

	if (rc == -ECHILD) {
		t->seized = false;
		return -ESRCH;
	}
	if (rc)
		return rc;
	if (t->event.kind == EV_NONE)
		return -ETIMEDOUT;
	if (t->event.kind == EV_EXITED) {
		t->seized = false;
		t->stopped = false;
		return -ESRCH;
	}
	t->stopped = true;
	return 0;
}

/* A group-stop is not ours to end: detaching puts the thread back into it (ptrace(2),
 * "Group-stop"). */
static int leave_group_stop(struct tracee *t)
{
	int rc = tracee_detach(t, 0);

	return rc ? rc : -EBUSY;
}

int tracee_stop(struct tracee *t, uint64_t deadline)
{
	int rc;

	t->stopped_at = clock_now();
	for (;;) {
		rc = tracee_interrupt(t);
		if (rc)
			return rc;
		rc = tracee_wait(t, deadline, NULL);
		if (rc)
			return rc;
		if (t->event.kind == EV_TRAP)
			return 0;
		if (t->event.kind == EV_GROUP_STOP)
			return leave_group_stop(t);
		rc = tracee_pass(t, PTRACE_CONT);
		if (rc)
			return rc;
	}
}

/* Those that only the thread which causes them can have: they stay unblocked while code of ours
 * runs. */
static bool is_synchronous(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGSYS ||
	       sig == SIGTRAP;
}

bool tracee_faulted(const struct tracee *t)
{
	siginfo_t si;

	if (!t->stopped || t->event.kind != EV_SIGNAL)
		return false;
	if (t->event.sig == SIGABRT)
		return true;
	if (!is_synchronous(t->event.sig))
		return false;
	/* without its origin it is safer to call it a fault: nothing goes on then */
	return request(PTRACE_GETSIGINFO, t->tid, 0, (uintptr_t)&si) || si.si_code > 0;
}

static int stop_signal(const struct tracee *t)
{
	return t->event.kind == EV_SIGNAL ? t->event.sig : 0;
}

/* The kernel queues a signal again, as it was, that is blocked when its tracer lets it through
 * (kernel/signal.c, ptrace_signal). */
static int put_off(struct tracee *t)
{
	int sig = stop_signal(t);
	uint64_t mask;
	int rc;

	if (!sig || !t->lent || sig == SIG_GLIBC_SETXID || sig == SIGSTOP)
		return 0;
	rc = tracee_mask(t, &mask);
	return rc ? rc : tracee_set_mask(t, mask | (uint64_t)1 << (sig - 1));
}

int tracee_pass(struct tracee *t, int req)
{
	int rc;

	if (t->lent && tracee_faulted(t))
		return -EFAULT;
	rc = put_off(t);
	return rc ? rc : tracee_resume(t, req, stop_signal(t));
}

int tracee_release(struct tracee *t)
{
	int rc = tracee_faulted(t) ? 0 : put_off(t);

	return rc ? rc : tracee_detach(t, stop_signal(t));
}

int tracee_detach(struct tracee *t, int sig)
{
	int rc;

	if (!t->seized)
		return 0;
	rc = request(PTRACE_DETACH, t->tid, 0, (uintptr_t)sig);
	if (rc == -ESRCH) {
		/* killed in its stop, as by another thread's execve(2): it is on its way out */
		tracee_reap(t, DEATH_LIMIT);
		if (t->seized)
			wait_death(t->tid);
		rc = 0;
	}
	if (rc == 0) {
		t->seized = false;
		t->stopped = false;
	}
	return rc;
}

void tracee_reap(struct tracee *t, uint64_t limit_ns)
{
	uint64_t deadline = clock_now() + limit_ns;
	struct event ev;

	while (t->seized && wait_event(t->tid, deadline, NULL, &ev) == 0 && ev.kind != EV_NONE)
		if (ev.kind == EV_EXITED)
			t->seized = t->stopped = false;
}

int tracee_regs(const struct tracee *t, arch_regs *r)
{
	return request(PTRACE_GETREGS, t->tid, 0, (uintptr_t)r);
}

int tracee_set_regs(const struct tracee *t, const arch_regs *r)
{
	return request(PTRACE_SETREGS, t->tid, 0, (uintptr_t)r);
}

int tracee_mask(const struct tracee *t, uint64_t *mask)
{
	return request(PTRACE_GETSIGMASK, t->tid, sizeof(*mask), (uintptr_t)mask);
}

int tracee_set_mask(const struct tracee *t, uint64_t mask)
{
	return request(PTRACE_SETSIGMASK, t->tid, sizeof(mask), (uintptr_t)&mask);
}

int tracee_xstate(const struct tracee *t, void *buf, size_t *len)
{
	struct iovec iov = { buf, TRACER_XSTATE_MAX };
	int rc = request(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, (uintptr_t)&iov);

	if (rc == 0)
		*len = iov.iov_len;
	return rc;
}

int tracee_set_xstate(const struct tracee *t, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return request(PTRACE_SETREGSET, t->tid, NT_X86_XSTATE, (uintptr_t)&iov);
}

int tracee_rseq(const struct tracee *t, struct rseq_config *out)
{
	memset(out, 0, sizeof(*out));
	return request(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(*out), (uintptr_t)out);
}

int tracee_filter(const struct tracee *t, unsigned index, struct sock_filter *buf, size_t max,
		  size_t *n)
{
	long len;

	fault_point();
	/* without a buffer it tells the length */
	len = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, t->tid,
		     (void *)(uintptr_t)index, NULL);
	if (len < 0)
		return -errno;
	if ((size_t)len > max)
		return -E2BIG;
	*n = (size_t)len;
	return ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, t->tid,
		      (void *)(uintptr_t)index, buf) < 0
		       ? -errno
		       : 0;
}
