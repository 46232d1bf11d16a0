// SPDX-License-Identifier: GPL-3.0-or-later
#include "backtrace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cause.h"
#include "clock.h"
#include "mem.h"
#include "preflight.h"
#include "stray.h"
#include "syscalls.h"
#include "tracer.h"
#include "urgent.h"
#include "waited.h"

/* Looks, a millisecond apart. */
#define PATIENCE   5
#define STOP_LIMIT (500 * NS_PER_MS)

static int explain(const struct target *t, pid_t tid, int rc, struct diag *d)
{
	switch (rc) {
	case -ESRCH:
		return target_alive(t)
			       ? diag_fail(d, rc, HM_GONE, "no-such-thread", "`threads` lists them",
					   "process %d has no thread %d", t->pid, tid)
			       : target_gone(t, d);
	case -EPERM:
		preflight_explain_eperm(t, d);
		return rc;
	case -EBUSY:
		return cause_fail(d, rc, CAUSE_STOPPED, "process %d is stopped by a signal",
				  t->pid);
	case -ETIMEDOUT:
		return diag_fail(d, rc, HM_UNSAFE, "not-stopping", "try another thread",
				 "thread %d did not stop in time, it may be stuck in the kernel",
				 tid);
	default:
		return diag_internal(d, rc, "unwinding a thread");
	}
}

/* The thread goes back to its call; one that a mere stop has interrupted is healed. */
static int let_go(struct waited *w, int memfd, struct tracee *th, const arch_regs *stopped)
{
	arch_regs regs;
	int back, rc = 0;

	waited_regs(w, stopped, &regs);
	waited_write(w, memfd, &regs);
	if (w->marked || memcmp(&regs, stopped, sizeof(regs)) != 0)
		rc = tracee_set_regs(th, &regs);
	/* also without them: a call that ends early is better than a thread that stays stopped */
	back = tracee_detach(th, 0);
	return rc ? rc : back;
}

/* A wait that is just about to end is let end: it may only be stopped in the next one. */
static int prepare(const struct target *t, pid_t tid, bool filtered, struct thread *before,
		   struct waited *wait)
{
	for (int i = 0;; i++) {
		int rc = thread_read(t, tid, before);

		if (rc)
			return rc;
		waited_prepare(wait, t, before, filtered);
		if (!wait->ends_soon || i == PATIENCE)
			return 0;
		stray_sleep(NS_PER_MS);
	}
}

static int hold_and_unwind(const struct target *t, int memfd, struct unwinder *u, pid_t tid,
			   struct frame *v, size_t max, size_t *n, bool *complete,
			   struct held *held)
{
	struct urgent urgent = { 0 };
	struct proc_status st;
	struct thread before;
	struct waited wait;
	struct tracee th;
	arch_regs regs;
	bool filtered;
	int back, rc;

	if (!stray_room())
		return -ETIMEDOUT;
	filtered = status_read(t->procfd, "status", &st) || st.seccomp != 0;
	rc = prepare(t, tid, filtered, &before, &wait);
	if (rc)
		return rc;
	rc = tracee_seize(&th, tid, 0);
	if (rc)
		return rc;
	urgent_begin(&urgent);
	rc = tracee_stop(&th, clock_now() + STOP_LIMIT);
	if (rc == -ETIMEDOUT)
		stray_add(&th);
	if (rc)
		goto out;
	rc = tracee_regs(&th, &regs);
	if (rc) {
		(void)!tracee_detach(&th, 0);
		goto out;
	}
	waited_stop(&wait, t, &th, &regs);
	rc = unwinder_run(u, &regs, v, max, n, complete);
	back = let_go(&wait, memfd, &th, &regs);
	held->last_ns = held->max_ns = held->total_ns = clock_now() - th.stopped_at;
	held->threads = 1;
	if (wait.anew) {
		held->anew = 1;
		held->anew_tid = tid;
		held->anew_call = syscall_name(wait.nr);
	}
	rc = back ? back : rc;
out:
	urgent_end(&urgent);
	return rc;
}

int backtrace_thread(const struct target *t, const struct modules *mods, pid_t tid, struct frame *v,
		     size_t max, size_t *n, bool *complete, struct held *held, struct diag *d)
{
	struct unwinder *u;
	sigset_t old;
	char path[32];
	int memfd, rc;

	*n = 0;
	*complete = false;
	memset(held, 0, sizeof(*held));
	/* a thread of this process, not of another one */
	snprintf(path, sizeof(path), "task/%d", tid);
	if (tid <= 0 || faccessat(t->procfd, path, F_OK, 0))
		return explain(t, tid, -ESRCH, d);
	rc = unwinder_new(t->pid, mods, &u);
	if (rc)
		return diag_internal(d, rc, "preparing to unwind");
	/* without it a wait may begin anew; why we may not is told by what follows */
	memfd = mem_open_force(t->procfd);
	wait_begin(&old);
	rc = hold_and_unwind(t, memfd, u, tid, v, max, n, complete, held);
	wait_end(&old);
	if (memfd >= 0)
		close(memfd);
	unwinder_free(u);
	return rc ? explain(t, tid, rc, d) : 0;
}
