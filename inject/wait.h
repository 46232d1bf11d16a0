// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_WAIT_H
#define HM_WAIT_H
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/* A wait status of a PTRACE_SEIZEd thread, classified once (ptrace(2), "Stopped states"). */
enum event_kind {
	EV_NONE, /* nothing yet */
	EV_TRAP, /* PTRACE_EVENT_STOP with SIGTRAP: our PTRACE_INTERRUPT, or a new thread's first
		    stop */
	EV_GROUP_STOP, /* PTRACE_EVENT_STOP with a stopping signal */
	EV_SYSCALL,    /* system-call-stop, enter or exit (PTRACE_O_TRACESYSGOOD) */
	EV_CLONE,      /* PTRACE_EVENT_CLONE */
	EV_SIGNAL,     /* signal-delivery-stop; sig says which */
	EV_OTHER,      /* another PTRACE_EVENT stop */
	EV_EXITED,     /* the thread is gone: it exited, or the process exited or executed another
			  program */
};

struct event {
	enum event_kind kind;
	pid_t tid;
	int sig;
	int status;
};

/* Pure: what waitpid's status means. */
void event_classify(pid_t tid, int status, struct event *ev);

/*
 * SIGCHLD must be blocked while waiting, so that a stop that comes between the look and the sleep
 * still wakes us. wait_begin blocks it and saves the mask, wait_end puts it back.
 */
void wait_begin(sigset_t *saved);
void wait_end(const sigset_t *saved);

/* What else has to be looked at while wait_event sleeps on this thread, NULL: nothing. It is called
 * before each sleep, and may itself call wait_event with a deadline of 0. */
void wait_meanwhile(void (*fn)(void));

/*
 * tid is, or may be, killed while we trace it and wait for another thread: until its tracer has
 * waited for it the other threads of its process wait too, in execve(2) and at their end
 * (fs/exec.c, de_thread; ptrace(2)). wait_event collects its end beside its own, and wait_deaths
 * does; who waits for it by number afterwards gets -ECHILD. The list belongs to the calling thread
 * and keeps no thread that is not traced any more.
 */
void wait_death(pid_t tid);
/* Collects those that have ended; returns how many have not. */
size_t wait_deaths(void);

/*
 * Waits for a stop or the end of tid until deadline (clock_now; 0: only look). 0 with ev filled
 * (EV_NONE when the time is over), -ECANCELED when *cancel became non-zero, or the errno of waitpid
 * (-ECHILD: not ours).
 */
HM_MUST_CHECK int wait_event(pid_t tid, uint64_t deadline, const volatile sig_atomic_t *cancel,
			     struct event *ev);
#endif
