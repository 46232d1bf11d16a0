// SPDX-License-Identifier: GPL-3.0-or-later
#include "borrow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "mem.h"
#include "restart.h"
#include "stray.h"
#include "syscalls.h"

/* How long a hijacked system call or the restore may take before something is badly wrong. */
#define STEP_LIMIT (5 * NS_PER_SEC)
/* A thread that is not stuck in the kernel stops within microseconds. */
#define STOP_LIMIT (200 * NS_PER_MS)
/* How long a call may go on that somebody wants to end. */
#define CANCEL_GRACE (50 * NS_PER_MS)
/* arch_syscall of a stop in no system call */
#define NO_SYSCALL (-1)
/* Beside its FPU part a signal frame holds struct rt_sigframe (440 bytes) and is aligned to 64. */
#define FRAME_EXTRA ((size_t)640)
/* What glibc's handler itself needs: it only sets ids. */
#define HANDLER_ROOM ((size_t)1024)

#define BIT(sig) ((uint64_t)1 << ((sig)-1))
/* The mask of hijacked code that has no stack yet: nothing but faults of its own. */
#define FAULTS_ONLY                                                                                \
	(~(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS)))

int borrow_init(struct borrow *b)
{
	b->sp.buf = malloc(SAFEPOINT_BUF);
	b->saved.xstate = malloc(TRACER_XSTATE_MAX);
	if (!b->sp.buf || !b->saved.xstate)
		return -ENOMEM;
	return 0;
}

void borrow_free(struct borrow *b)
{
	if (b->sp.pages)
		pages_close(&b->pages);
	free(b->sp.buf);
	free(b->saved.xstate);
	if (b->memfd >= 0)
		close(b->memfd);
}

uint64_t borrow_mask(const struct borrow *b)
{
	return (FAULTS_ONLY | b->saved.mask) & ~BIT(SIG_GLIBC_SETXID);
}

int borrow_marker(const struct borrow *b, const struct proc_status *st)
{
	static const int candidates[] = { SIGURG, SIGWINCH, SIGCHLD };
	uint64_t taken = st->sig_caught | st->sig_pending | st->shd_pending | b->saved.mask;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(*candidates); i++)
		if (!(taken & BIT(candidates[i])))
			return candidates[i];
	return 0;
}

static void account(struct borrow *b)
{
	uint64_t ns = clock_now() - b->th.stopped_at;

	if (b->wait.anew) {
		b->held.anew++;
		b->held.anew_tid = b->sp.tid;
		b->held.anew_call = syscall_name(b->wait.nr);
	}
	b->held.threads++;
	b->held.last_ns = ns;
	b->held.total_ns += ns;
	if (ns > b->held.max_ns)
		b->held.max_ns = ns;
}

/*
 * A restartable sequence (rseq(2)) is undone by the kernel when its thread is preempted in it. We
 * would move the program counter out and back in again, and the kernel would not notice that the
 * sequence was interrupted.
 */
static bool in_restartable_sequence(const struct borrow *b)
{
	struct {
		uint32_t version, flags;
		uint64_t start, len, abort;
	} cs;
	struct rseq_config c;
	uint64_t at;

	if (tracee_rseq(&b->th, &c) || !c.addr)
		return false;
	/* struct rseq: cpu_id_start, cpu_id, then the descriptor's address */
	if (mem_read(b->t->pid, c.addr + 8, &at, sizeof(at)) || !at)
		return false;
	if (mem_read(b->t->pid, at, &cs, sizeof(cs)))
		return false;
	return arch_pc(&b->saved.regs) - cs.start < cs.len;
}

static int check_hold(struct borrow *b)
{
	int rc = tracee_regs(&b->th, &b->saved.regs);

	if (rc)
		return rc;
	waited_stop(&b->wait, b->t, &b->th, &b->saved.regs);
	rc = safepoint_check(&b->sp, &b->saved.regs);
	if (rc == 0 && arch_syscall(&b->saved.regs) < 0 && in_restartable_sequence(b)) {
		snprintf(b->sp.reason, sizeof(b->sp.reason), "it is in a restartable sequence");
		rc = -EAGAIN;
	}
	return rc;
}

static int save(struct borrow *b)
{
	int rc = tracee_xstate(&b->th, b->saved.xstate, &b->saved.xlen);

	return rc ? rc : tracee_mask(&b->th, &b->saved.mask);
}

/* PTRACE_SEIZE is refused as if by permission for a thread that is just ending. */
static bool is_ending(const struct borrow *b, pid_t tid)
{
	struct proc_status st;
	char path[48];

	snprintf(path, sizeof(path), "task/%d/status", (int)tid);
	return status_read(b->t->procfd, path, &st) || st.state == 'Z' || st.state == 'X';
}

size_t borrow_stack_need(size_t xstate)
{
	return 2 * (xstate + FRAME_EXTRA) + HANDLER_ROOM;
}

/* The dead man's frame for the thread's own stack. With AMX tiles in use it is larger than was
 * thought before. */
static int build_own_frame(struct borrow *b)
{
	uint64_t room = arch_sp(&b->saved.regs) - b->sp.stack_lo;
	arch_regs back;
	int rc;

	restart_frame_regs(&b->saved.regs, waited_so_far(&b->wait), &back);
	rc = sigframe_build(&b->own_frame, arch_sp(&b->saved.regs) - ARCH_RED_ZONE, &back,
			    b->saved.xstate, b->saved.xlen, b->saved.mask, b->trampoline,
			    &b->xsave);
	if (rc == 0 && room < ARCH_RED_ZONE + borrow_stack_need(b->own_frame.len)) {
		snprintf(b->sp.reason, sizeof(b->sp.reason),
			 "there is not enough room left on its stack");
		return -EAGAIN;
	}
	return rc;
}

int borrow_hold(struct borrow *b, pid_t tid, uint64_t deadline)
{
	const uint64_t limit = clock_now() + STOP_LIMIT;
	int back, rc;

	if (!stray_room())
		return -ETIMEDOUT;
	rc = tracee_seize(&b->th, tid, PTRACE_O_TRACESYSGOOD | b->options);
	if (rc)
		return rc == -EPERM && is_ending(b, tid) ? -ESRCH : rc;
	b->hijacked = false;
	b->marker = 0;
	urgent_begin(&b->urgent);
	rc = tracee_stop(&b->th, limit < deadline ? limit : deadline);
	if (rc) {
		urgent_end(&b->urgent);
		if (rc == -ETIMEDOUT)
			stray_add(&b->th);
		return rc;
	}
	b->sp.tid = tid;
	rc = check_hold(b);
	if (rc == 0)
		rc = save(b);
	if (rc == 0)
		rc = build_own_frame(b);
	if (rc == 0)
		return 0;
	back = borrow_return(b);
	return back ? back : rc;
}

/* Resumes after a stop that is not the one we wait for; faults in hijacked code are not passed on.
 */
static int pass(struct borrow *b, int req, int *sig)
{
	const struct event *ev = &b->th.event;

	*sig = ev->kind == EV_SIGNAL ? ev->sig : 0;
	/* somebody else's; nobody catches it, and blocked it could not tell the end any more */
	if (*sig && *sig == b->marker)
		return tracee_resume(&b->th, req, 0);
	return tracee_pass(&b->th, req);
}

/*
 * Waits for the next stop at system call nr with the stack pointer at sp. A handler of signal 33
 * that runs on top makes calls of its own, with a lower stack pointer; its rt_sigreturn(2) ends
 * with ours, but in no call (-1).
 */
static int wait_syscall(struct borrow *b, long nr, uint64_t sp, arch_regs *regs)
{
	uint64_t deadline = clock_now() + STEP_LIMIT;
	int sig;
	int rc = tracee_resume(&b->th, PTRACE_SYSCALL, 0);

	while (rc == 0) {
		rc = tracee_wait(&b->th, deadline, NULL);
		if (rc)
			return rc;
		if (b->th.event.kind == EV_SYSCALL) {
			rc = tracee_regs(&b->th, regs);
			if (rc || (arch_sp(regs) == sp && arch_syscall(regs) == nr))
				return rc;
		}
		rc = pass(b, PTRACE_SYSCALL, &sig);
	}
	return rc;
}

static int arm(struct borrow *b)
{
	/* of the address space that was looked at, should another thread call execve(2) just now */
	return mem_write_force(b->memfd, b->own_frame.addr, b->own_frame.bytes, b->own_frame.len);
}

/*
 * Without a marker the boot code ends in the system-call-enter-stop of rt_sigreturn(2). A call that
 * is skipped there still has its system-call-exit-stop (ptrace(2), "Syscall-stops").
 */
static bool exit_stop_is_due(const struct borrow *b)
{
	arch_regs now;

	return b->th.stopped && b->th.event.kind == EV_SYSCALL && tracee_regs(&b->th, &now) == 0 &&
	       arch_syscall(&now) == SYS_rt_sigreturn;
}

int borrow_syscall(struct borrow *b, long nr, const uint64_t arg[6], uint64_t *result)
{
	arch_regs regs = b->saved.regs;
	bool first = !b->hijacked;
	bool due = !first && exit_stop_is_due(b);
	int rc = first ? arm(b) : 0;

	if (rc)
		return rc;
	arch_enter_syscall(&regs, b->syscall_ret, b->own_frame.sp, nr, arg);
	rc = tracee_set_regs(&b->th, &regs);
	if (rc)
		return rc;
	b->hijacked = b->th.lent = true;
	/* only now: from here on whatever ends the call also restores the mask */
	if (first)
		rc = tracee_set_mask(&b->th, borrow_mask(b));
	if (rc == 0 && due)
		rc = wait_syscall(b, NO_SYSCALL, b->own_frame.sp, &regs);
	if (rc == 0)
		rc = wait_syscall(b, nr, b->own_frame.sp, &regs); /* enter */
	if (rc == 0)
		rc = wait_syscall(b, nr, b->own_frame.sp, &regs); /* exit */
	if (rc)
		return rc;
	*result = (uint64_t)arch_result(&regs);
	return arch_result(&regs) < 0 && arch_result(&regs) >= -4095 ? (int)arch_result(&regs) : 0;
}

static int write_region(struct borrow *b, const struct region *r, const void *text, size_t text_len,
			const struct hm_block *block, const void *scratch, size_t scratch_len)
{
	int rc = mem_write_force(b->memfd, r->base, text, text_len);

	if (rc == 0)
		rc = mem_write_force(b->memfd, r->block, block, sizeof(*block));
	if (rc == 0 && scratch_len)
		rc = mem_write_force(b->memfd, r->scratch, scratch, scratch_len);
	if (rc == 0)
		rc = mem_write_force(b->memfd, b->region_frame.addr, b->region_frame.bytes,
				     b->region_frame.len);
	return rc;
}

/* Without a marker its end is a system call. */
static int boot_request(const struct borrow *b, int marker)
{
	return !marker ? PTRACE_SYSCALL : b->memfile ? memfile_request(b->memfile) : PTRACE_CONT;
}

int borrow_boot(struct borrow *b, const struct region *r, const void *text, size_t text_len,
		const struct hm_block *block, const void *scratch, size_t scratch_len)
{
	arch_regs regs = b->saved.regs;
	arch_regs back;
	uint64_t entry;
	int rc;

	restart_frame_regs(&b->saved.regs, waited_so_far(&b->wait), &back);
	rc = sigframe_build(&b->region_frame, r->stack + r->stack_len, &back, b->saved.xstate,
			    b->saved.xlen, b->saved.mask, b->trampoline, &b->xsave);
	if (rc == 0)
		rc = write_region(b, r, text, text_len, block, scratch, scratch_len);
	if (rc)
		return rc;
	memcpy(&entry, (const char *)text + HM_ENTRY_BOOT, sizeof(entry));
	arch_enter_call(&regs, r->base + entry, b->region_frame.sp, r->block);
	/*
	 * Only now, while it stands still: had it been asked for from the start, a thread that the
	 * application creates just then would be ours too, stopped and forgotten.
	 */
	if (r->guard)
		rc = tracee_options(&b->th,
				    PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | b->options);
	if (rc)
		return rc;
	b->marker = block->marker;
	/* first the mask: no signal can be delivered on a stack that is not writable yet */
	rc = tracee_set_mask(&b->th, FAULTS_ONLY | b->saved.mask);
	if (rc == 0)
		rc = tracee_set_regs(&b->th, &regs);
	if (rc == 0)
		rc = tracee_resume(&b->th, boot_request(b, block->marker), 0);
	return rc;
}

/* Is this stop the end of the boot code? */
static bool boot_done(const struct borrow *b, const struct region *r, int marker)
{
	const struct event *ev = &b->th.event;
	uint32_t state = 0;
	arch_regs regs;

	if (marker) {
		if (ev->kind != EV_SIGNAL || ev->sig != marker)
			return false;
		return mem_read(b->t->pid, r->block + offsetof(struct hm_block, boot_state), &state,
				sizeof(state)) == 0 &&
		       state == HM_BOOT_DONE;
	}
	/* the trampoline has been reached: the word above the frame's start is where its stack
	 * pointer stands */
	return ev->kind == EV_SYSCALL && tracee_regs(&b->th, &regs) == 0 &&
	       arch_syscall(&regs) == SYS_rt_sigreturn && arch_sp(&regs) == b->region_frame.sp + 8;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int borrow_finish(struct borrow *b, const struct region *r, int marker, uint64_t deadline,
		  const volatile sig_atomic_t *cancel, pid_t *clone, int *sig)
{
	int rc;

	for (;;) {
		rc = tracee_wait(&b->th, deadline, cancel);
		if (rc == -ECANCELED) {
			/* most calls are over before anybody could say that they still run */
			rc = tracee_wait(&b->th, sooner(deadline, clock_now() + CANCEL_GRACE),
					 NULL);
			rc = rc == -ETIMEDOUT ? -ECANCELED : rc;
		}
		if (rc)
			return rc;
		if (boot_done(b, r, marker))
			return 0;
		if (b->th.event.kind == EV_CLONE) {
			rc = tracee_new_thread(&b->th, clone);
			if (rc)
				return rc;
			wait_death(*clone);
		}
		if (b->memfile && b->th.event.kind == EV_SYSCALL) {
			rc = memfile_stop(b->memfile, b->t, &b->th);
			if (rc)
				return rc;
		}
		rc = pass(b, boot_request(b, marker), sig);
		if (rc)
			return rc;
	}
}

/*
 * A system-call-stop is no place to restart a call from: the kernel does that only on its way
 * through signal delivery. So the thread is sent there, by a pending interrupt, without executing
 * anything in between that it could not undo.
 */
static int leave_syscall_stop(struct borrow *b)
{
	arch_regs regs;
	int rc = tracee_regs(&b->th, &regs);

	if (rc)
		return rc;
	if (arch_syscall(&regs) == SYS_rt_sigreturn) {
		/* skip it, and be ready to make it again should we die now */
		arch_no_syscall(&regs);
		arch_set_pc(&regs, b->trampoline);
		rc = tracee_set_regs(&b->th, &regs);
		if (rc)
			return rc;
	}
	rc = tracee_interrupt(&b->th);
	return rc ? rc : tracee_resume(&b->th, PTRACE_CONT, 0);
}

/* Brings the thread into a stop from which the kernel will restart its call: EV_TRAP or a signal's.
 */
static int reach_restart_stop(struct borrow *b)
{
	uint64_t deadline = clock_now() + STEP_LIMIT;
	int rc = 0;

	if (!b->th.stopped) {
		rc = tracee_stop(&b->th, deadline);
		return rc == -EFAULT ? 0 : rc; /* a fault's stop is as good */
	}
	if (b->th.event.kind == EV_CLONE || b->th.event.kind == EV_OTHER) {
		rc = tracee_resume(&b->th, PTRACE_CONT, 0);
		return rc ? rc : reach_restart_stop(b);
	}
	if (b->th.event.kind != EV_SYSCALL)
		return 0;
	rc = leave_syscall_stop(b);
	while (rc == 0) {
		rc = tracee_wait(&b->th, deadline, NULL);
		if (rc || b->th.event.kind == EV_TRAP || b->th.event.kind == EV_GROUP_STOP ||
		    b->th.event.kind == EV_SIGNAL)
			break;
		rc = leave_syscall_stop(b);
	}
	return rc;
}

/* The order matters for a tracer that dies between two of these: general registers last. */
static int put_back(struct borrow *b)
{
	arch_regs regs;
	int rc;

	waited_regs(&b->wait, &b->saved.regs, &regs);
	waited_write(&b->wait, b->memfd, &regs);
	if (b->hijacked) {
		rc = tracee_set_xstate(&b->th, b->saved.xstate, b->saved.xlen);
		if (rc == 0)
			rc = tracee_set_mask(&b->th, b->saved.mask);
		if (rc == 0)
			rc = tracee_set_regs(&b->th, &regs);
		return rc;
	}
	if (!b->wait.marked && memcmp(&regs, &b->saved.regs, sizeof(regs)) == 0)
		return 0;
	return tracee_set_regs(&b->th, &regs);
}

/*
 * A signal that stopped it in hijacked code has been taken off the queue already. It is the
 * application's unless it is our marker or a fault of ours; the mask that is put back decides when
 * it is delivered.
 */
static int signal_of_application(const struct borrow *b)
{
	const struct event *ev = &b->th.event;

	if (!b->th.stopped || ev->kind != EV_SIGNAL || ev->sig == b->marker)
		return 0;
	return tracee_faulted(&b->th) ? 0 : ev->sig;
}

/* rc: how letting go of it went. */
static void end_hold(struct borrow *b, int rc)
{
	urgent_end(&b->urgent);
	if (rc == -ESRCH)
		tracee_reap(&b->th, STOP_LIMIT);
	/* it goes on with our code and the dead man's frame as soon as it stops */
	if (rc == -ETIMEDOUT)
		stray_add(&b->th);
}

int borrow_return(struct borrow *b)
{
	int sig = 0;
	int rc = 0;

	if (!b->th.seized)
		return 0;
	if (b->hijacked)
		rc = reach_restart_stop(b);
	if (rc == 0)
		sig = signal_of_application(b);
	if (rc == 0)
		rc = put_back(b);
	if (rc == 0)
		rc = tracee_detach(&b->th, sig);
	end_hold(b, rc);
	if (rc == 0) {
		b->hijacked = false;
		account(b);
	}
	return rc;
}

int borrow_abandon(struct borrow *b)
{
	int rc = 0;

	if (!b->th.seized)
		return 0;
	if (!b->th.stopped)
		rc = tracee_stop(&b->th, clock_now() + STEP_LIMIT);
	if (rc == 0 || rc == -EFAULT)
		rc = tracee_release(&b->th);
	end_hold(b, rc);
	if (rc == 0)
		account(b);
	return rc;
}
