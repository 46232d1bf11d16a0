// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_BORROW_H
#define HM_BORROW_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memfile.h"
#include "region.h"
#include "safepoint.h"
#include "session.h"
#include "sigframe.h"
#include "tracer.h"
#include "urgent.h"
#include "waited.h"

/*
 * One application thread, borrowed for a moment. At every instant between two requests below,
 * letting go of the thread (which is what the kernel does when we die) leaves it on a path that
 * ends with its own registers, mask and system call: first through the dead man's frame, at the end
 * because it has them back.
 */
struct borrow {
	/* prepared by the owner before a thread is held */
	const struct target *t;
	uint64_t trampoline;  /* address of arch_trampoline in the target */
	uint64_t syscall_ret; /* address of arch_syscall_ret in the target */
	struct xsave_facts xsave;
	int memfd;	       /* from mem_open_force */
	unsigned long options; /* PTRACE_O_* beside TRACESYSGOOD, and TRACECLONE while it starts a
				  proxy */
	struct safepoint sp;
	struct pages pages; /* sp.pages, once it is set */
	struct waited
		wait; /* of the thread that is to be held next, prepared; then of the one held */
	/* of the thread that is held */
	struct tracee th;
	struct saved_state saved;
	struct memfile *memfile;      /* what the boot code's calls write to; NULL: to none */
	bool hijacked;		      /* its registers are not its own */
	int marker;		      /* of the boot code it is in; 0: none */
	struct sigframe own_frame;    /* on its own stack */
	struct sigframe region_frame; /* on the stack in the region */
	struct held held;
	struct urgent urgent;
};

/* Bytes of free stack for two signal frames with that much FPU state: ours, and one of glibc's
 * signals on top. */
size_t borrow_stack_need(size_t xstate);
HM_MUST_CHECK int borrow_init(struct borrow *b);
void borrow_free(struct borrow *b);

/*
 * Holds tid at a safe point. 0: it is held. -EAGAIN: it is not at one, and runs on untouched
 * (b->sp.reason); -EBUSY: group-stop; -ESRCH: gone; -EPERM; -ETIMEDOUT: it did not stop (it may be
 * stuck in the kernel).
 */
HM_MUST_CHECK int borrow_hold(struct borrow *b, pid_t tid, uint64_t deadline);
/* Makes one system call on the thread's own stack. The first one arms the dead man's frame. -errno
 * of the call. */
HM_MUST_CHECK int borrow_syscall(struct borrow *b, long nr, const uint64_t arg[6],
				 uint64_t *result);
/*
 * Writes text, block and frame into the region, which is mapped R-X, and starts the boot code. text
 * is the payload with its block distance filled in.
 */
HM_MUST_CHECK int borrow_boot(struct borrow *b, const struct region *r, const void *text,
			      size_t text_len, const struct hm_block *block, const void *scratch,
			      size_t scratch_len);
/*
 * Waits until the boot code is done, or *cancel (may be NULL). *clone is the thread it created, 0
 * if none; that thread is traced and has not been waited for. -ETIMEDOUT, -ECANCELED: still
 * running; -EFAULT: a fault or abort in it, *sig says which; -ESRCH.
 */
HM_MUST_CHECK int borrow_finish(struct borrow *b, const struct region *r, int marker,
				uint64_t deadline, const volatile sig_atomic_t *cancel,
				pid_t *clone, int *sig);
/*
 * Gives the thread back exactly. Good in every state after borrow_hold; a thread whose boot code
 * still runs is stopped first and taken out of it: what it holds there, a lock of the allocator as
 * like as not, stays locked for good, so borrow_abandon is for one that is in a call.
 */
HM_MUST_CHECK int borrow_return(struct borrow *b);
/* Lets the thread run on in the boot code; the dead man's frame gives it back when that ends. */
HM_MUST_CHECK int borrow_abandon(struct borrow *b);

/*
 * What hijacked code blocks. Signals that a fault sends stay open, because a fault of a thread that
 * blocks it ends the process without asking its handler; but not those that the thread itself
 * blocks: some other may wait for them with sigwait(3), and we would take them first. glibc's for
 * setuid(2) is always answered.
 */
uint64_t borrow_mask(const struct borrow *b);
/* A signal for the boot code's end: ignored by default, not caught, blocked or pending here; 0 if
 * there is none. */
int borrow_marker(const struct borrow *b, const struct proc_status *st);
#endif
