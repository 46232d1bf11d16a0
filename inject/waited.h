// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_WAITED_H
#define HM_WAITED_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "liveness.h"
#include "slept.h"
#include "target.h"
#include "threads.h"
#include "timeout.h"
#include "tracer.h"

/*
 * The wait that a stop interrupts, from before the stop until the thread is let go: when it is to
 * end, and how it is made again for the time that is left (timeout.h). At every instant letting go
 * of the thread, which is what the kernel does when we die, leaves it with a wait that is at most
 * too long.
 */
struct waited {
	/* before the stop */
	struct slept slept;
	struct waited_call {
		long nr;
		uint64_t arg[6], sp, pc;
	} call;		/* that it was in when its sleep was measured */
	bool ends_soon; /* by itself: let it, and look again */
	bool filtered;
	bool common;	 /* clock_is_common: an end that is noted means the same to the next run */
	uint64_t pc;	 /* that code below is of */
	unsigned looked; /* for which argument */
	struct liveness code; /* what it reads from there on */
	/* since the stop */
	enum timeout_form form;
	unsigned which; /* argument */
	long nr;
	uint64_t arg;	    /* its value as the application has passed it */
	uint64_t total_ns;  /* what it says */
	uint64_t end_ns;    /* when the wait is to end, clock_now */
	uint64_t asleep_ns; /* poll(2): how long it has slept; 0: not known */
	uint64_t ring[3];
	bool marked; /* it was stopped with a mark of ours, which has been taken out of the
			registers */
	bool can_mark;
	bool anew; /* its timeout begins anew: nobody can help that */
};

/*
 * Nobody is held: looks at the code and measures the sleep of a thread that is about to be held, as
 * /proc/PID/task/TID/syscall shows it (nr -1: in no call). filtered: a seccomp filter looks at its
 * calls, and is to see no argument that the application does not pass.
 */
void waited_prepare(struct waited *w, const struct target *t, const struct thread *th,
		    bool filtered);
/*
 * th has just been stopped. Takes a mark out of regs, so that they are those that the application
 * has made, and finds out when the wait is to end. Reads the target's memory; whatever cannot be
 * read makes the wait one that begins anew, which is no error.
 */
void waited_stop(struct waited *w, const struct target *t, const struct tracee *th,
		 arch_regs *regs);
/* For restart_frame_regs: how long it has waited until now; 0 not known. */
uint64_t waited_so_far(const struct waited *w);
/* The registers to put back: those of restart_regs, marked where that can be done. */
void waited_regs(const struct waited *w, const arch_regs *stopped, arch_regs *out);
/*
 * Before they are put back: writes what is left where out points to. Should that fail, out is made
 * to point to the application's own timeout again, and the wait begins anew. memfd is from
 * mem_open_force: another program that the process may execute meanwhile is not written to.
 */
void waited_write(struct waited *w, int memfd, arch_regs *out);
#endif
