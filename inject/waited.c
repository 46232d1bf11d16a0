// SPDX-License-Identifier: GPL-3.0-or-later
#include "waited.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "clock.h"
#include "mem.h"
#include "restart.h"

/* ERESTARTNOHAND (include/linux/errno.h), which only a tracer sees. */
#define NOHAND (-514)
/*
 * A sleep that comes this near to its timeout may have ended by itself, and the thread be on its
 * way into the same wait again: that would end at once if the sleep were taken for its own. So it
 * is not believed, and where that can be seen before, the thread is not stopped just then. The
 * kernel wakes up to 50 us late (timer slack), and slept.c counts half a millisecond too little.
 */
#define DOUBTFUL_NS NS_PER_MS
#define SOON_NS	    (2 * NS_PER_MS)
/* A wait shorter than this may begin anew: nobody sees that, and it would always end soon. */
#define SHORT_NS (10 * NS_PER_MS)
/* A wrapper's own struct timespec is in its frame, this far above the stack pointer at most. */
#define FRAME_MAX 4096U

static int read_code(void *context, uint64_t addr, void *buf, size_t len)
{
	const struct target *t = context;
	ssize_t n = mem_read_some(t->pid, addr, buf, len);

	if (n <= 0)
		return -EFAULT;
	memset((char *)buf + n, 0, len - (size_t)n);
	return 0;
}

static void look_at_code(struct waited *w, const struct target *t, uint64_t pc, unsigned which)
{
	w->pc = pc;
	w->looked = which;
	liveness_look(read_code, (void *)(uintptr_t)t, pc, which, &w->code);
}

/* Reads the timeout that argument value points to. */
static int read_timespec(struct waited *w, const struct target *t, uint64_t value)
{
	struct timeout_timespec ts;
	uint64_t at = value;
	int rc = 0;

	if (w->form == TIMEOUT_RING) {
		rc = mem_read(t->pid, value, w->ring, sizeof(w->ring));
		/* the high half of the second word is a shortest wait (min_wait_usec) */
		if (rc == 0 && (!w->ring[2] || w->ring[1] >> 32))
			rc = -ENOENT;
		at = w->ring[2];
	}
	if (rc == 0)
		rc = mem_read(t->pid, at, &ts, sizeof(ts));
	if (rc == 0)
		w->total_ns = timeout_ns(&ts);
	return rc;
}

/* poll(2)'s, which the kernel keeps over a stop but not over our death. */
static uint64_t poll_ns(const uint64_t arg[6])
{
	return (uint64_t)(uint32_t)arg[2] * NS_PER_MS;
}

/* How long it has slept in a wait of that length; what cannot be is not known. */
static void measure(struct waited *w, const struct target *t, pid_t tid, uint64_t total_ns)
{
	slept_measure(t->procfd, tid, &w->slept);
	if (total_ns && w->slept.ns > total_ns + SHORT_NS)
		w->slept.ns = 0;
	w->ends_soon = w->slept.ns && total_ns > SHORT_NS && w->slept.ns + SOON_NS > total_ns;
}

/* 0: not known. */
static uint64_t asleep(const struct waited *w, const struct target *t, const struct tracee *th,
		       uint64_t total_ns)
{
	uint64_t ns = slept_until_stop(t->procfd, th->tid, &w->slept, th->stopped_at);

	return ns + DOUBTFUL_NS > total_ns ? 0 : ns;
}

void waited_prepare(struct waited *w, const struct target *t, const struct thread *th,
		    bool filtered)
{
	uint64_t note = timeout_note_addr(th->sp), end;
	enum timeout_form form = TIMEOUT_NONE;
	unsigned which = 0;

	memset(w, 0, sizeof(*w));
	w->filtered = filtered;
	w->common = clock_is_common();
	if (!th->in_syscall)
		return;
	w->call = (struct waited_call){ .nr = th->nr, .sp = th->sp, .pc = th->pc };
	memcpy(w->call.arg, th->arg, sizeof(w->call.arg));
	if (th->nr == SYS_poll && (int)th->arg[2] > 0)
		measure(w, t, th->tid, poll_ns(th->arg));
	form = timeout_form(th->nr, th->arg, &which);
	if (form == TIMEOUT_NONE || form == TIMEOUT_WRITTEN)
		return;
	look_at_code(w, t, th->pc, which);
	if (w->common && (form == TIMEOUT_MS ? timeout_tagged(th->arg[which], clock_now(), &end)
					     : th->arg[which] == timeout_note_arg(note, form)))
		return; /* its end is known */
	w->form = form;
	if (form == TIMEOUT_MS)
		w->total_ns = (uint64_t)(uint32_t)th->arg[which] * NS_PER_MS;
	else if (read_timespec(w, t, th->arg[which]))
		w->total_ns = 0;
	measure(w, t, th->tid, w->total_ns);
}

/* The note of an earlier stop: *value becomes the application's own argument again. */
static void take_note(struct waited *w, const struct target *t, const arch_regs *regs,
		      uint64_t *value)
{
	uint64_t addr = timeout_note_addr(arch_sp(regs));
	struct timeout_note n;

	if (!w->common || *value != timeout_note_arg(addr, w->form) ||
	    mem_read(t->pid, addr, &n, sizeof(n)) || !timeout_note_valid(&n, w->nr))
		return;
	w->marked = true;
	w->end_ns = n.end_ns;
	*value = n.arg;
}

static void find_end(struct waited *w, const struct target *t, const struct tracee *th,
		     uint64_t now)
{
	uint64_t ns = asleep(w, t, th, w->total_ns);

	w->end_ns = (ns ? th->stopped_at - ns : now) + w->total_ns;
}

/* Which kind of wait it is; -ENOENT where there is nothing to do about it. */
static int look_at_timeout(struct waited *w, const struct target *t, arch_regs *regs, uint64_t now)
{
	int64_t result = arch_result(regs);
	uint64_t value = arch_syscall_arg(regs, w->which);
	int rc = 0;

	switch (w->form) {
	case TIMEOUT_NONE:
		return -ENOENT;
	case TIMEOUT_MS:
		if (result != -EINTR)
			return -ENOENT;
		w->marked = w->common && timeout_tagged(value, now, &w->end_ns);
		/* something else in the high half is none of ours to change */
		w->can_mark = w->common && !w->filtered && w->code.arg_unread &&
			      (w->marked || !(value >> 32));
		if (w->marked)
			value = (uint32_t)value;
		w->total_ns = (uint64_t)(uint32_t)value * NS_PER_MS;
		break;
	case TIMEOUT_TIMESPEC:
	case TIMEOUT_RING:
		if (result != -EINTR && result != NOHAND)
			return -ENOENT;
		take_note(w, t, regs, &value);
		rc = read_timespec(w, t, value);
		break;
	case TIMEOUT_WRITTEN:
		/* what the kernel has just written; elsewhere than in the wrapper's frame it stays
		 */
		if (result != NOHAND || value - (arch_sp(regs) - ARCH_RED_ZONE) > FRAME_MAX)
			return -ENOENT;
		rc = read_timespec(w, t, value);
		break;
	}
	w->arg = value;
	arch_set_syscall_arg(regs, w->which, value);
	return rc;
}

/* Does the function that makes the call leave the red zone alone? */
static bool zone_is_free(const struct waited *w, const arch_regs *regs)
{
	uint64_t sp = arch_sp(regs), fp = arch_frame_pointer(regs);
	uint64_t lowest = fp + (uint64_t)(int64_t)w->code.lowest;

	if (!w->code.zone_unread)
		return false;
	if (w->code.lowest < 0 && lowest < sp && fp + FRAME_MAX > sp)
		return false;
	/* no variable of it is there that a pointer leads to, or begins a little below */
	return !arch_points_into(regs, sp - ARCH_RED_ZONE - FRAME_MAX, sp);
}

/* Might who has called the function go on with the argument's register? Then it stays as it is. */
static bool caller_knows(const struct waited *w, const struct target *t, const arch_regs *regs)
{
	uint64_t from = w->code.from_frame ? arch_frame_pointer(regs) : arch_sp(regs), to;

	if (!w->code.returns)
		return false;
	return mem_read(t->pid, from + (uint64_t)(int64_t)w->code.return_at, &to, sizeof(to)) ||
	       liveness_caller_knows(read_code, (void *)(uintptr_t)t, to);
}

/*
 * A thread that is stopped on its way into its next wait has given up its CPU once, as one that was
 * stopped in the wait that was measured: the sleep is that of the latter.
 */
static bool is_call_measured(const struct waited *w, const arch_regs *regs)
{
	bool same =
		w->nr == w->call.nr && arch_pc(regs) == w->call.pc && arch_sp(regs) == w->call.sp;

	for (unsigned i = 0; i < 6; i++)
		same &= arch_syscall_arg(regs, i) == w->call.arg[i];
	return same;
}

void waited_stop(struct waited *w, const struct target *t, const struct tracee *th, arch_regs *regs)
{
	uint64_t now = clock_now(), arg[6];

	w->form = TIMEOUT_NONE;
	w->marked = w->anew = false;
	w->asleep_ns = 0;
	if (!restart_interrupted(regs, &w->nr))
		return;
	if (!is_call_measured(w, regs))
		w->slept.ns = 0;
	for (unsigned i = 0; i < 6; i++)
		arg[i] = arch_syscall_arg(regs, i);
	if (w->nr == SYS_poll)
		w->asleep_ns = asleep(w, t, th, poll_ns(arg));
	w->anew = timeout_of_socket(w->nr) && arch_result(regs) == -EINTR;
	w->form = timeout_form(w->nr, arg, &w->which);
	w->can_mark = false;
	/* it was on its way into the call when it was looked at, or in another one that is made at
	 * the same place (syscall(2)) */
	if (w->form != TIMEOUT_NONE && w->form != TIMEOUT_WRITTEN &&
	    (arch_pc(regs) != w->pc || w->which != w->looked))
		look_at_code(w, t, arch_pc(regs), w->which);
	/* in memory that the kernel could not write the rest to */
	if (w->form == TIMEOUT_WRITTEN && arch_result(regs) == -EINTR)
		w->anew = true;
	if (look_at_timeout(w, t, regs, now))
		w->form = TIMEOUT_NONE;
	if (w->form == TIMEOUT_WRITTEN)
		w->end_ns = now + w->total_ns;
	else if (w->form != TIMEOUT_NONE && !w->marked)
		find_end(w, t, th, now);
	if (w->form == TIMEOUT_TIMESPEC || w->form == TIMEOUT_RING) {
		w->can_mark = w->common && w->code.arg_unread && zone_is_free(w, regs) &&
			      !caller_knows(w, t, regs);
		w->anew = !w->can_mark;
	}
}

static uint64_t left_of(const struct waited *w, uint64_t now)
{
	return w->end_ns > now ? w->end_ns - now : 0;
}

uint64_t waited_so_far(const struct waited *w)
{
	uint64_t left;

	if (w->form != TIMEOUT_MS)
		return w->asleep_ns;
	left = left_of(w, clock_now());
	return w->total_ns > left ? w->total_ns - left : 0;
}

void waited_regs(const struct waited *w, const arch_regs *stopped, arch_regs *out)
{
	uint64_t reg;

	restart_regs(stopped, waited_so_far(w), out);
	if (!w->can_mark || arch_result(out) != NOHAND)
		return;
	reg = arch_syscall_arg(out, w->which);
	if (w->form == TIMEOUT_MS)
		reg = timeout_tag((uint32_t)reg, w->end_ns, clock_now());
	else
		reg = timeout_note_arg(timeout_note_addr(arch_sp(out)), w->form);
	arch_set_syscall_arg(out, w->which, reg);
}

void waited_write(struct waited *w, int memfd, arch_regs *out)
{
	uint64_t addr = timeout_note_addr(arch_sp(out)), left = left_of(w, clock_now());
	struct timeout_note n;

	timeout_note_fill(&n, addr, w->nr, w->arg, w->end_ns, left, w->ring);
	if (w->form == TIMEOUT_WRITTEN) {
		/* as the kernel would have written it, had the stop come only now */
		(void)!mem_write_force(memfd, w->arg, &n.left, sizeof(n.left));
		return;
	}
	if (arch_syscall_arg(out, w->which) == w->arg || w->form == TIMEOUT_MS ||
	    w->form == TIMEOUT_NONE)
		return;
	if (mem_write_force(memfd, addr, &n, sizeof(n))) {
		arch_set_syscall_arg(out, w->which, w->arg);
		w->anew = true;
	}
}
