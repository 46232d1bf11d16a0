// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TRACER_H
#define HM_TRACER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/x86_64.h"
#include "wait.h"

/*
 * One thread under PTRACE_SEIZE. The option that kills tracees when the tracer ends is never set:
 * when we die the kernel lets every tracee go.
 */
#define TRACER_XSTATE_MAX ((size_t)64 * 1024)

struct tracee {
	pid_t tid;
	bool seized;
	bool stopped;
	bool lent; /* it executes code of ours: tracee_pass keeps the application's handlers off it
		    */
	uint64_t stopped_at; /* clock_now when the stop was asked for */
	struct event event;  /* the stop it is in */
};

/* The registers and mask that a thread gets back. */
struct saved_state {
	arch_regs regs;
	uint64_t mask; /* signal mask */
	size_t xlen;   /* bytes of xstate, as the kernel gave them */
	uint8_t *xstate;
};

/* PTRACE_SEIZE with these options (PTRACE_O_*). The thread keeps running. */
HM_MUST_CHECK int tracee_seize(struct tracee *t, pid_t tid, unsigned long options);
HM_MUST_CHECK int tracee_options(struct tracee *t, unsigned long options);
/*
 * A signal of glibc itself (SIGSETXID): who blocks it makes setuid(2) of the application wait. The
 * other one, 32 (SIGCANCEL), must not come to code of ours: its handler would unwind the thread out
 * of it, with all its locks. Nobody waits for that one.
 */
#define SIG_GLIBC_SETXID 33
/*
 * Stops the thread: PTRACE_INTERRUPT, sent again after every other stop, since any ptrace stop
 * swallows a pending one. Signals that arrive meanwhile are passed on. 0 when it stands in a
 * PTRACE_EVENT_STOP; -EBUSY: group-stop (it is detached, still stopped); -ESRCH: it is gone;
 * -ETIMEDOUT: not stopped by the deadline, still seized.
 */
HM_MUST_CHECK int tracee_stop(struct tracee *t, uint64_t deadline);
/* Only asks: the stop comes at the thread's next way out of the kernel. */
HM_MUST_CHECK int tracee_interrupt(struct tracee *t);
/* At EV_CLONE: the new thread. */
HM_MUST_CHECK int tracee_new_thread(const struct tracee *t, pid_t *tid);
/* Lets a stopped thread run on: req is PTRACE_CONT or PTRACE_SYSCALL, sig 0 or the signal to
 * deliver. */
HM_MUST_CHECK int tracee_resume(struct tracee *t, int req, int sig);
/*
 * Lets it run on after a stop that is not the one waited for, with the signal it is stopped for.
 * Where code of ours runs, a signal that somebody has sent must not start a handler of the
 * application: it goes back onto its queue, blocked, until the thread has its own mask again. Not
 * so SIGSTOP and glibc's, which are waited for. -EFAULT: the signal is a fault of that code
 * (tracee_faulted), and it stays stopped.
 */
HM_MUST_CHECK int tracee_pass(struct tracee *t, int req);
/*
 * Is it stopped for a signal that its own code has caused? A fault is sent by the kernel (si_code,
 * sigaction(2)); abort(3) is the only one to unblock SIGABRT where code of ours runs.
 */
bool tracee_faulted(const struct tracee *t);
/* Waits for the next stop of t; its event is in t->event. Errors of wait_event; -ETIMEDOUT; -ESRCH
 * when it is gone. */
HM_MUST_CHECK int tracee_wait(struct tracee *t, uint64_t deadline,
			      const volatile sig_atomic_t *cancel);
/* Lets go of a stopped thread. A thread that is gone meanwhile is no error. */
HM_MUST_CHECK int tracee_detach(struct tracee *t, int sig);
/*
 * The same with the signal that it is stopped for, which stays off code of ours as in tracee_pass;
 * but a fault is the target's now.
 */
HM_MUST_CHECK int tracee_release(struct tracee *t);

/*
 * A request has failed because the thread is gone: collects it, waiting until limit_ns from now at
 * most. A traced thread that has ended stays a zombie until its tracer waits for it, and its
 * process does not end before.
 */
void tracee_reap(struct tracee *t, uint64_t limit_ns);

HM_MUST_CHECK int tracee_regs(const struct tracee *t, arch_regs *r);
HM_MUST_CHECK int tracee_set_regs(const struct tracee *t, const arch_regs *r);
HM_MUST_CHECK int tracee_mask(const struct tracee *t, uint64_t *mask);
HM_MUST_CHECK int tracee_set_mask(const struct tracee *t, uint64_t mask);
/* NT_X86_XSTATE as an opaque blob; buf holds TRACER_XSTATE_MAX. */
HM_MUST_CHECK int tracee_xstate(const struct tracee *t, void *buf, size_t *len);
HM_MUST_CHECK int tracee_set_xstate(const struct tracee *t, const void *buf, size_t len);
/* rseq registration (PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13): addr 0 if none. -EIO where
 * unknown. */
struct rseq_config {
	uint64_t addr;
	uint32_t size, signature, flags, pad;
};
HM_MUST_CHECK int tracee_rseq(const struct tracee *t, struct rseq_config *out);
struct sock_filter;
/*
 * The index-th seccomp filter of a stopped thread, newest first (PTRACE_SECCOMP_GET_FILTER): at
 * most max instructions. -ENOENT behind the last one, -EACCES without CAP_SYS_ADMIN, -E2BIG if it
 * does not fit.
 */
HM_MUST_CHECK int tracee_filter(const struct tracee *t, unsigned index, struct sock_filter *buf,
				size_t max, size_t *n);
#endif
