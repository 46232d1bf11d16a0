// SPDX-License-Identifier: GPL-3.0-or-later
#include "safepoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "mem.h"
#include "restart.h"
#include "threads.h"
#include "touched.h"

#define FRAMES_MAX	 256
#define FP_XSTATE_MAGIC1 0x46505853U /* in each signal frame's FPU part */
#define STACK_SCAN_MAX	 ((uint64_t)64 << 20)

static int unsafe(struct safepoint *s, const char *why)
{
	snprintf(s->reason, sizeof(s->reason), "%s", why);
	s->why = why;
	return -EAGAIN;
}

static const char *kind_name(unsigned kind)
{
	if (kind & CODE_ALLOC)
		return "it is inside the allocator";
	if (kind & CODE_LOADER)
		return "it is inside the dynamic linker";
	if (kind & CODE_THREADS)
		return "it is inside thread creation, fork or setuid";
	if (kind & CODE_STDIO)
		return "it is inside stdio";
	return "it is inside a signal handler";
}

static int unsafe_code(struct safepoint *s, unsigned kind, uint64_t addr)
{
	s->why = kind_name(kind);
	snprintf(s->reason, sizeof(s->reason), "%s (0x%" PRIx64 " on its stack)", s->why, addr);
	return -EAGAIN;
}

static bool is_syscall(const struct safepoint *s, uint64_t pc)
{
	unsigned char code[ARCH_SYSCALL_LEN];

	return mem_read(s->pid, pc, code, sizeof(code)) == 0 &&
	       memcmp(code, arch_syscall_ret, sizeof(code)) == 0;
}

/*
 * It runs, or ran when a signal came: nothing that we forbid may have begun there. In libc that is
 * sure just behind a `syscall` instruction, where the call is complete, and at one, where it has
 * not begun; a handler that interrupts a call returns to either place (SA_RESTART, sigaction(2)).
 */
static int between_instructions(struct safepoint *s, uint64_t pc)
{
	unsigned kind = code_map_kind(s->code, pc);

	if (kind & (s->forbid | CODE_SIGNAL))
		return unsafe_code(s, kind & (s->forbid | CODE_SIGNAL), pc);
	if (!(kind & CODE_LIBC) || is_syscall(s, pc - ARCH_SYSCALL_LEN) || is_syscall(s, pc))
		return 0;
	return unsafe(s, "it is running inside libc");
}

/* Where it stands: asleep in a call that may be interrupted, or between instructions outside libc.
 */
static int check_pc(struct safepoint *s, const arch_regs *r)
{
	const struct syscall_fact *f;
	long nr;

	if (restart_interrupted(r, &nr)) {
		f = syscall_fact(nr);
		/* restart_syscall(2) continues a call that an earlier stop interrupted; which one
		 * is not known, but it is always one of those that the kernel restarts */
		if (nr != SYS_restart_syscall && (!f || f->restart == RESTART_NEVER)) {
			snprintf(s->reason, sizeof(s->reason),
				 "it is in system call %ld, which must not be interrupted", nr);
			return -EAGAIN;
		}
		return 0;
	}
	return between_instructions(s, arch_pc(r));
}

static int find_stack(struct safepoint *s, const arch_regs *r)
{
	uint64_t sp = arch_sp(r);
	const struct map *m = maps_find(s->maps, sp);
	uint64_t tp = arch_tp(r);

	if (!m || !(m->prot & PROT_WRITE))
		return unsafe(s, "its stack is in no known mapping");
	s->stack_lo = m->start;
	if (strcmp(m->name, "[stack]") == 0) {
		s->stack_hi = m->end;
	} else if (tp > sp && tp < m->end) {
		/* glibc places the thread descriptor at the end of the stack it belongs to */
		s->stack_hi = tp;
	} else {
		return unsafe(s, "it runs on a stack that is not its own (coroutine, fiber or "
				 "alternate stack)");
	}
	if (s->stack_hi - sp > STACK_SCAN_MAX)
		return unsafe(s, "its stack is too deep to look through");
	if (sp - s->stack_lo < ARCH_RED_ZONE + s->need)
		return unsafe(s, "there is not enough room left on its stack");
	return 0;
}

/* Looks at every word of the live stack. Returns the kinds found and the first address that has
 * one. */
static int scan_stack(struct safepoint *s, uint64_t sp, unsigned bad, unsigned *kind,
		      uint64_t *where)
{
	uint64_t lo, hi;

	*kind = 0;
	code_map_span(s->code, &lo, &hi);
	for (uint64_t at = sp & ~(uint64_t)7; at < s->stack_hi;) {
		size_t len = s->stack_hi - at < SAFEPOINT_BUF ? (size_t)(s->stack_hi - at)
							      : SAFEPOINT_BUF;
		const uint64_t *w = (const uint64_t *)(const void *)s->buf;
		int rc = touched_read(s->pages, s->pid, at, s->buf, len & ~(size_t)7);

		if (rc)
			return rc;
		for (size_t i = 0; i < len / 8; i++) {
			unsigned k = 0;

			if ((uint32_t)w[i] == FP_XSTATE_MAGIC1)
				k = CODE_SIGNAL;
			else if (w[i] - lo < hi - lo)
				k = code_map_return(s->code, w[i]) & bad;
			if (k && !*kind)
				*where = w[i];
			*kind |= k;
		}
		at += len;
		if (len < 8)
			break;
	}
	return 0;
}

/*
 * A signal handler is safe to be in where the code that it interrupted was safe to be stopped in:
 * a server that makes its children in a handler, like PostgreSQL's up to 15, leaves them in it for
 * all their life.
 */
static int interrupted_code(struct safepoint *s, uint64_t pc)
{
	char why[sizeof(s->reason)];
	int rc = between_instructions(s, pc);

	if (rc != -EAGAIN)
		return rc;
	snprintf(why, sizeof(why), "%s", s->reason);
	snprintf(s->reason, sizeof(s->reason), "it is in a signal handler, and below that %.110s",
		 strncmp(why, "it is ", 6) == 0 ? why + 6 : why);
	return rc;
}

/* A suspicious word may be left over from a call that has returned: the exact frames decide. */
static int check_frames(struct safepoint *s, const arch_regs *r, unsigned bad)
{
	static _Thread_local struct frame frames[FRAMES_MAX];
	bool complete = false;
	size_t n = 0;
	int rc = unwinder_run(s->unwinder, r, frames, FRAMES_MAX, &n, &complete);

	if (rc)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++) {
		unsigned kind;

		if (i > 0 && frames[i - 1].signal) {
			rc = interrupted_code(s, frames[i].pc);
			continue;
		}
		if (frames[i].signal)
			continue;
		kind = code_map_kind(s->code, frames[i].pc - (i ? 1 : 0)) & bad;
		if (kind)
			rc = unsafe_code(s, kind, frames[i].pc);
	}
	if (rc)
		return rc;
	return complete ? 0 : -EAGAIN;
}

int safepoint_check(struct safepoint *s, const arch_regs *regs)
{
	unsigned bad = s->forbid | CODE_SIGNAL;
	unsigned kind;
	uint64_t where = 0;
	int rc;

	s->reason[0] = '\0';
	s->why = NULL;
	rc = check_pc(s, regs);
	if (rc == 0)
		rc = find_stack(s, regs);
	if (rc)
		return rc;
	rc = scan_stack(s, arch_sp(regs), bad, &kind, &where);
	if (rc || !kind)
		return rc;
	rc = check_frames(s, regs, bad);
	if (rc == -EAGAIN && !s->reason[0])
		return unsafe_code(s, kind, where);
	return rc;
}

int safepoint_preview(struct safepoint *s, uint64_t sp, uint64_t pc, uint64_t tp)
{
	unsigned bad = s->forbid | CODE_SIGNAL;
	uint64_t where = 0;
	unsigned kind = 0;
	arch_regs regs;
	int rc;

	s->reason[0] = '\0';
	s->why = NULL;
	arch_sleeping(&regs, pc, sp, tp);
	rc = find_stack(s, &regs);
	if (rc == 0)
		rc = scan_stack(s, sp, bad, &kind, &where);
	if (rc == 0 && kind)
		rc = check_frames(s, &regs, bad);
	/* only a frame that was found is certain; everything else is decided when the thread is
	 * held */
	return rc == -EAGAIN && s->reason[0] ? -EAGAIN : 0;
}
