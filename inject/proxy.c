// SPDX-License-Identifier: GPL-3.0-or-later
#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cause.h"
#include "clock.h"
#include "descriptor.h"
#include "fault_point.h"
#include "last_words.h"
#include "mem.h"
#include "stray.h"

#define START_LIMIT (5 * NS_PER_SEC)
#define STOP_LIMIT  (1 * NS_PER_SEC)
#define END_LIMIT   (5 * NS_PER_SEC)
/* A call that is over so soon is not worth the words that it still runs. */
#define CANCEL_GRACE (50 * NS_PER_MS)
#define ERRNO_MAX    4095 /* MAX_ERRNO of the kernel */
#define POLL_SLICE                                                                                 \
	50 /* ms: how soon a cancel is noticed that came between a look and the sleep              \
	    */

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

static int read_state(const struct proxy *p, struct hm_block *b)
{
	/* all that precedes the calls */
	return mem_read(p->t->pid, p->r->block, b, offsetof(struct hm_block, slot));
}

int proxy_errno(int32_t e)
{
	return e > 0 && e <= ERRNO_MAX ? -e : -EPROTO;
}

static int wait_ready(struct proxy *p, struct hm_block *b)
{
	uint64_t deadline = clock_now() + START_LIMIT;
	uint64_t nap = 20000;

	for (;;) {
		int rc = read_state(p, b);

		if (rc)
			return rc;
		if (b->proxy_state == HM_PROXY_READY)
			return 0;
		if (b->proxy_state == HM_PROXY_FAILED)
			return proxy_errno(b->proxy_errno);
		if (b->proxy_state == HM_PROXY_LEAVING)
			return -EPROTO;
		if (clock_now() > deadline)
			return -ETIMEDOUT;
		rc = tracee_wait(&p->th, clock_now() + nap, NULL);
		if (rc == 0)
			rc = tracee_pass(&p->th, PTRACE_CONT);
		if (rc && rc != -ETIMEDOUT)
			return rc;
		if (nap < NS_PER_MS)
			nap *= 2;
	}
}

static int send_request(const struct proxy *p, enum hm_request what)
{
	const char c = (char)what;

	fault_point();
	return write(p->request, &c, 1) == 1 ? 0 : -errno;
}

static int open_ends(struct proxy *p, const struct hm_block *b)
{
	pid_t tid = p->th.tid;
	int rc = descriptor_open(p->t, tid, b->fd_request_host, DESCRIPTOR_PIPE,
				 O_WRONLY | O_NONBLOCK, &p->request);

	if (rc == 0)
		rc = descriptor_open(p->t, tid, b->fd_reply_host, DESCRIPTOR_PIPE,
				     O_RDONLY | O_NONBLOCK, &p->reply);
	if (rc == 0)
		rc = descriptor_open(p->t, tid, b->fd_out, DESCRIPTOR_MEMORY, O_RDWR, &p->out);
	if (rc == 0)
		rc = send_request(p, HM_REQ_OPENED);
	return rc;
}

static int open_childfd(struct proxy *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	p->childfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return p->childfd < 0 ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_ends(struct proxy *p)
{
	close_fd(&p->request);
	close_fd(&p->reply);
	close_fd(&p->out);
	close_fd(&p->childfd);
}

static int pass_stop(struct proxy *p)
{
	int req = PTRACE_CONT;

	if (p->memfile) {
		int rc =
			p->th.event.kind == EV_SYSCALL ? memfile_stop(p->memfile, p->t, &p->th) : 0;

		if (rc)
			return rc;
		req = memfile_request(p->memfile);
	}
	return tracee_pass(&p->th, req);
}

/* From now on it stops at its system calls. */
static int follow(struct proxy *p)
{
	int rc = tracee_stop(&p->th, clock_now() + STOP_LIMIT);

	return rc ? rc : tracee_resume(&p->th, PTRACE_SYSCALL, 0);
}

/* The call has not asked for the file: nobody may wait for its stops any more. */
static void unfollow(struct proxy *p)
{
	if (p->memfile && p->memfile->state != MEMFILE_DONE &&
	    tracee_stop(&p->th, clock_now() + STOP_LIMIT) == 0)
		(void)!tracee_resume(&p->th, PTRACE_CONT, 0);
}

int proxy_ask_filter(struct proxy *p, struct seccomp_call *out)
{
	int back, rc = proxy_unpark(p);

	if (rc == 0)
		rc = tracee_stop(&p->th, clock_now() + STOP_LIMIT);
	if (rc)
		return rc;
	rc = seccomp_check(&p->th, HM_MODE_PROXY, true, out);
	back = tracee_resume(&p->th, PTRACE_CONT, 0);
	return rc ? rc : back;
}

/* Waits until the reply comes or something happens to the thread. 1: reply; 0: look again;
 * negative: error. */
static int wait_reply(struct proxy *p)
{
	struct pollfd fds[2] = { { .fd = p->reply, .events = POLLIN },
				 { .fd = p->childfd, .events = POLLIN } };
	struct signalfd_siginfo si;
	char c;
	int rc = poll(fds, 2, POLL_SLICE);

	if (rc < 0 && errno != EINTR)
		return -errno;
	if (rc > 0 && fds[1].revents)
		(void)!read(p->childfd, &si, sizeof(si));
	if (rc > 0 && fds[0].revents) {
		ssize_t n = read(p->reply, &c, 1);

		if (n == 1)
			return 1;
		if (n == 0)
			return -ESRCH;
	}
	(void)stray_collect();
	/* also without a SIGCHLD: it may have been taken by another wait */
	rc = tracee_wait(&p->th, 0, NULL);
	if (rc == -ETIMEDOUT)
		return 0;
	return rc ? rc : pass_stop(p);
}

/* What the thread said last: for an abort the allocator's own message, as a rule. */
static void last_output(const struct proxy *p, char *buf, size_t size)
{
	char text[256];
	ssize_t n = p->out >= 0 ? pread(p->out, text, sizeof(text), 0) : -1;

	buf[0] = '\0';
	if (n <= 0)
		return;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	escape_copy(buf, size, text, (size_t)n);
}

static int fault(struct proxy *p, struct diag *d)
{
	int sig = p->th.event.sig;
	char words[300] = "";

	if (sig == SIGABRT)
		last_words_read(p->t->pid, p->abort_msg, words, sizeof(words));
	if (!words[0])
		last_output(p, words, sizeof(words));
	p->lost = true;
	/* the signal is the target's own now: nobody can say that its heap is still whole */
	(void)!tracee_detach(&p->th, sig);
	return diag_fail(d, -EFAULT, HM_DIED, "target-died",
			 "look at its core; a heap that was damaged before is the usual cause",
			 "the call ended in signal %d (SIG%s)%s%s", sig, sigabbrev_np(sig),
			 words[0] ? ", the allocator said: " : "", words);
}

static int still_running(struct proxy *p, int rc, struct diag *d)
{
	p->lost = true;
	return diag_fail(d, rc, HM_RUNNING, "still-running",
			 "it finishes there by itself and leaves; --timeout gives it longer",
			 rc == -ECANCELED
				 ? "interrupted: the call still runs in the target (thread %d)"
				 : "the call did not return in time and still runs in the target "
				   "(thread %d)",
			 p->th.tid);
}

void proxy_reap(struct proxy *p)
{
	tracee_reap(&p->th, STOP_LIMIT);
}

int proxy_run(struct proxy *p, uint64_t timeout_ns, struct diag *d)
{
	const uint64_t begun = clock_now(), deadline = begun + timeout_ns;
	int rc;

	if (p->lost)
		return diag_fail(d, -EBUSY, HM_RUNNING, "still-running",
				 "wait until it has ended (`threads`), then start again",
				 "an earlier call still runs in the target (thread %d)", p->th.tid);
	rc = proxy_unpark(p);
	if (rc == -EPERM)
		return diag_fail(d, rc, HM_NOT_PERMITTED, "proxy-traced",
				 "end that tracer (a debugger, strace) or let it detach",
				 "our thread %d in the target is traced by another process",
				 p->th.tid);
	if (rc == 0 && p->memfile)
		rc = follow(p);
	if (rc == 0)
		rc = send_request(p, HM_REQ_CALL);
	while (rc == 0) {
		rc = wait_reply(p);
		if (rc == 0 && p->cancel && *p->cancel && clock_now() > begun + CANCEL_GRACE)
			return still_running(p, -ECANCELED, d);
		if (rc == 0 && clock_now() > deadline)
			return still_running(p, -ETIMEDOUT, d);
	}
	if (rc > 0) {
		unfollow(p);
		return 0;
	}
	if (rc == -EFAULT)
		return fault(p, d);
	p->lost = true;
	proxy_reap(p);
	if (target_ending(p->t, true))
		return diag_fail(d, -ESRCH, HM_DIED, "target-died",
				 "look at its log or core for the cause",
				 "process %d ended while the call was running", p->t->pid);
	return diag_fail(d, rc, HM_CALL_FAILED, "proxy-lost", "try again",
			 "the proxy thread %d is gone: %s", p->th.tid, strerror(-rc));
}

int proxy_park(struct proxy *p)
{
	int rc;

	if (!p->th.seized || p->lost)
		return 0;
	rc = tracee_stop(&p->th, clock_now() + STOP_LIMIT);
	if (rc == -EBUSY) /* the whole process is stopped: it was let go as it is */
		return 0;
	return rc ? rc : tracee_detach(&p->th, 0);
}

int proxy_unpark(struct proxy *p)
{
	int rc = p->th.seized ? 0 : tracee_seize(&p->th, p->th.tid, p->options);

	p->th.lent = true;
	return rc;
}

/* Stops it, wherever it is, and lets it go on by itself; a fault is the target's then. */
static void let_go(struct proxy *p)
{
	int rc;

	if (!p->th.seized)
		return;
	rc = p->th.stopped ? 0 : tracee_stop(&p->th, clock_now() + STOP_LIMIT);
	if (rc == 0 || rc == -EFAULT)
		(void)!tracee_release(&p->th);
	else if (rc == -ETIMEDOUT)
		stray_add(&p->th);
}

/* Tells the payload what to unregister before its stack goes. -EIO (before Linux 5.13): the stack
 * must stay. */
static int prepare_end(struct proxy *p)
{
	struct rseq_config c;
	uint64_t v[3];
	int rc = tracee_rseq(&p->th, &c);

	if (rc)
		return rc;
	v[0] = c.addr;
	v[1] = c.size;
	v[2] = c.signature;
	return mem_write(p->t->pid, p->r->block + offsetof(struct hm_block, rseq_addr), v,
			 sizeof(v));
}

/* Lets the thread go on to its entry to exit(2), in which it then stands. */
static int reach_exit(struct proxy *p, uint64_t deadline, arch_regs *regs)
{
	for (;;) {
		int rc = tracee_wait(&p->th, deadline, NULL);

		if (rc == 0 && p->th.event.kind == EV_SYSCALL)
			rc = tracee_regs(&p->th, regs);
		if (rc)
			return rc;
		if (p->th.event.kind == EV_SYSCALL && arch_syscall(regs) == SYS_exit)
			return 0;
		rc = tracee_pass(&p->th, PTRACE_SYSCALL);
		if (rc)
			return rc;
	}
}

/* Lets it make the system call that it stands in, so that nothing but its end is left to come. */
static int make_call(struct proxy *p, uint64_t deadline)
{
	int rc = tracee_resume(&p->th, PTRACE_SYSCALL, 0);

	while (rc == 0) {
		rc = tracee_wait(&p->th, deadline, NULL);
		if (rc || p->th.event.kind == EV_SYSCALL)
			return rc;
		rc = tracee_pass(&p->th, PTRACE_SYSCALL);
	}
	return rc;
}

/*
 * glibc's last act for a thread is a loop around exit(2) that touches no memory. At its entry the
 * stack is free: the call becomes munmap of the stack, and the loop then makes the real one. If we
 * die in between it does so too. Where a seccomp filter is suspended as long as we trace, we stay
 * until the munmap is made: the filter need not allow it.
 */
static int take_stack(struct proxy *p, bool can_unmap)
{
	uint64_t arg[6];
	uint64_t deadline = clock_now() + END_LIMIT;
	arch_regs regs;
	int rc = reach_exit(p, deadline, &regs);

	if (rc)
		return rc;
	if (!can_unmap)
		return tracee_detach(&p->th, 0);
	/* the loop keeps the number of exit(2) in a register: those that munmap does not need stay
	 * as they are */
	for (unsigned i = 0; i < 6; i++)
		arg[i] = arch_syscall_arg(&regs, i);
	arg[0] = p->r->guard;
	arg[1] = p->r->base + p->r->size - p->r->guard;
	arch_replace_syscall(&regs, SYS_munmap, arg);
	rc = tracee_set_regs(&p->th, &regs);
	if (rc == 0 && (p->options & PTRACE_O_SUSPEND_SECCOMP))
		rc = make_call(p, deadline);
	return rc ? rc : tracee_detach(&p->th, 0);
}

static bool is_there(const struct proxy *p)
{
	char path[32];

	snprintf(path, sizeof(path), "task/%d", p->th.tid);
	return faccessat(p->t->procfd, path, F_OK, 0) == 0;
}

static int wait_gone(const struct proxy *p)
{
	uint64_t deadline = clock_now() + END_LIMIT;

	while (is_there(p)) {
		if (clock_now() > deadline)
			return -EBUSY;
		clock_sleep(20000);
	}
	return 0;
}

/* A proxy that could not start goes like any other, with all of its memory. */
static void dismiss(struct proxy *p)
{
	const uint32_t state = HM_PROXY_LEAVING;
	bool can_unmap;

	if (tracee_stop(&p->th, clock_now() + STOP_LIMIT))
		return;
	can_unmap = prepare_end(p) == 0;
	if (mem_write(p->t->pid, p->r->block + offsetof(struct hm_block, proxy_state), &state,
		      sizeof(state)) == 0 &&
	    tracee_resume(&p->th, PTRACE_SYSCALL, 0) == 0 && take_stack(p, can_unmap) == 0)
		(void)!wait_gone(p);
}

static int start_failed(struct proxy *p, int rc, const struct hm_block *b, struct diag *d)
{
	static const char *const step[] = { "start", "get a descriptor table of its own",
					    "make a memory file", "make its pipes" };
	unsigned at = (unsigned)b->proxy_step < 4 ? (unsigned)b->proxy_step : 0;

	if (b->proxy_state == HM_PROXY_FAILED)
		dismiss(p);
	close_ends(p);
	let_go(p);
	proxy_reap(p);
	if (target_ending(p->t, true))
		return diag_fail(d, -ESRCH, HM_DIED, "target-died",
				 "look at its log or core for the cause",
				 "process %d ended while our thread was starting", p->t->pid);
	if (rc == -EMFILE)
		return cause_fail(
			d, rc, CAUSE_LIMIT_FILES,
			"RLIMIT_NOFILE of process %d leaves too few descriptors: the proxy "
			"thread could not %s",
			(int)p->t->pid, step[at]);
	if (rc == -ETIMEDOUT)
		return diag_fail(d, rc, HM_RUNNING, "still-running",
				 "it leaves by itself when it gets on: see `threads` and `bt` for "
				 "who holds a lock, and whether a debugger stops one",
				 "our thread %d in the target did not get to its work in %u s: it "
				 "waits for a lock, or for a CPU",
				 (int)p->th.tid, (unsigned)(START_LIMIT / NS_PER_SEC));
	return diag_fail(d, rc, HM_CALL_FAILED, "proxy-failed",
			 "try --via direct; `check` shows limits and filters",
			 "the proxy thread could not %s: %s", step[at], strerror(-rc));
}

int proxy_start(struct proxy *p, const struct target *t, const struct region *r, pid_t tid,
		unsigned long options, struct diag *d)
{
	struct hm_block b = { 0 };
	int rc;

	memset(p, 0, sizeof(*p));
	p->t = t;
	p->r = r;
	p->options = PTRACE_O_TRACESYSGOOD | options;
	p->request = p->reply = p->out = p->childfd = -1;
	/* attached by the kernel when the borrowed thread created it (PTRACE_O_TRACECLONE) */
	p->th.tid = tid;
	p->th.seized = true;
	p->th.lent = true;
	rc = open_childfd(p);
	if (rc == 0)
		rc = tracee_wait(&p->th, clock_now() + START_LIMIT, NULL);
	if (rc == 0)
		rc = tracee_options(&p->th, p->options);
	if (rc == 0)
		rc = tracee_resume(&p->th, PTRACE_CONT, 0);
	if (rc == 0)
		rc = wait_ready(p, &b);
	if (rc == 0)
		rc = open_ends(p, &b);
	return rc ? start_failed(p, rc, &b, d) : 0;
}

int proxy_end(struct proxy *p)
{
	bool can_unmap;
	int rc;

	if (p->lost) {
		let_go(p);
		close_ends(p);
		return is_there(p) && target_alive(p->t) ? -EBUSY : -ESRCH;
	}
	rc = proxy_unpark(p);
	if (rc == 0)
		rc = tracee_stop(&p->th, clock_now() + STOP_LIMIT);
	if (rc) {
		close_ends(p); /* end of file: it leaves by itself, a stopped process when it is
				  continued */
		if (rc == -ETIMEDOUT)
			stray_add(&p->th);
		return rc == -EBUSY ? -EAGAIN : rc;
	}
	can_unmap = prepare_end(p) == 0;
	rc = send_request(p, HM_REQ_QUIT);
	if (rc == 0)
		rc = tracee_resume(&p->th, PTRACE_SYSCALL, 0);
	if (rc == 0)
		rc = take_stack(p, can_unmap);
	if (rc)
		let_go(p);
	close_ends(p);
	if (rc == 0)
		rc = wait_gone(p);
	return rc ? rc : can_unmap ? 0 : -EIO;
}
