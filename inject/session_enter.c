// SPDX-License-Identifier: GPL-3.0-or-later
/* A held thread enters the region, and how it is taken out of it when something is wrong. */
#include "session_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cause.h"
#include "last_words.h"
#include "mem.h"
#include "phase.h"
#include "seccomp.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* By somebody who started at the same moment: another place is tried. */
static int place_taken(const struct session *s, int rc, struct diag *d)
{
	return cause_fail(d, rc, CAUSE_NO_ROOM,
			  "%" PRIu64 " bytes at 0x%" PRIx64 " of the target are taken", s->r.size,
			  s->r.base);
}

static int map_region(struct session *s, struct diag *d)
{
	const uint64_t arg[6] = { s->r.base,
				  s->r.size,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0 };
	uint64_t got = 0;
	int rc = borrow_syscall(&s->b, SYS_mmap, arg, &got);

	if (rc == 0 && got != s->r.base) {
		/* before Linux 4.17 the flag is only a hint */
		const uint64_t back[6] = { got, s->r.size };

		(void)!borrow_syscall(&s->b, SYS_munmap, back, &got);
		rc = -EEXIST;
	}
	if (rc)
		return rc == -EEXIST ? place_taken(s, rc, d) : session_no_room(s, rc, d);
	return 0;
}

int session_unmap(struct session *s)
{
	const uint64_t arg[6] = { s->r.base, s->r.size };
	uint64_t ignored;

	return borrow_syscall(&s->b, SYS_munmap, arg, &ignored);
}

/*
 * All behind the code. It counts as data only now (RLIMIT_DATA, and what may be committed), so it
 * is here that a process at its limit refuses; the boot code would have no way to say so.
 */
static int make_writable(struct session *s, struct diag *d)
{
	const struct region *r = &s->r;
	const uint64_t arg[6] = { r->stack, r->out + r->out_len - r->stack,
				  PROT_READ | PROT_WRITE };
	uint64_t ignored;
	int rc = borrow_syscall(&s->b, SYS_mprotect, arg, &ignored);

	if (rc == 0)
		return 0;
	(void)!session_unmap(s);
	return session_no_room(s, rc, d);
}

int session_died(const struct session *s, struct diag *d)
{
	return diag_fail(d, -ESRCH, HM_DIED, "target-died", "look at its log or core for the cause",
			 "process %d or its thread ended while it was borrowed", s->t->pid);
}

int session_lost(struct session *s, int rc, const char *what, struct diag *d)
{
	if (s->proxy_on)
		proxy_reap(&s->proxy);
	return target_ending(s->t, true) ? session_died(s, d) : diag_internal(d, rc, what);
}

/* After an error with a thread held: give it back, and say so if even that fails. */
int session_give_up(struct session *s, int rc, const char *what, struct diag *d)
{
	int back = borrow_return(&s->b);

	if (rc == -ESRCH || back == -ESRCH)
		return session_died(s, d);
	if (back)
		return diag_internal(d, back, RETURNING);
	return what ? diag_internal(d, rc, what) : rc;
}

/* The program may have executed another one since its symbols were read (execve(2)); now it cannot.
 */
static int check_anchors(const struct session *s)
{
	unsigned char t[sizeof(arch_trampoline)], c[sizeof(arch_syscall_ret)];

	if (mem_read(s->t->pid, s->a.trampoline, t, sizeof(t)) ||
	    mem_read(s->t->pid, s->a.syscall_ret, c, sizeof(c)) ||
	    memcmp(t, arch_trampoline, sizeof(t)) != 0 ||
	    memcmp(c, arch_syscall_ret, sizeof(c)) != 0)
		return -ESTALE;
	return 0;
}

int session_filter_refuses(int rc, const struct seccomp_call *c, bool direct_too, struct diag *d)
{
	static const char *const harm[] = {
		[SECCOMP_KILLS] = "would kill it for",
		[SECCOMP_FATAL_ERROR] = "refuses what it cannot do without,",
	};

	if (rc != -EACCES || !c->harm)
		return cause_fail(d, rc, CAUSE_SECCOMP_UNREAD,
				  "the target's seccomp filter cannot be read: %s", strerror(-rc));
	return cause_fail(d, rc, CAUSE_SECCOMP_KILLS,
			  "the target's seccomp filter %s system call %ld (%s), should heapmedic "
			  "be killed meanwhile%s",
			  harm[c->harm], c->nr, c->name,
			  direct_too ? "; a direct call needs it too" : "");
}

/* With a filter that does harm, our death would be the target's: it ends the suspension of the
 * filter. */
static int ask_filter(const struct session *s, struct diag *d)
{
	bool file = s->b.memfile != NULL;
	struct seccomp_call c, direct;
	int rc;

	if (!s->b.options)
		return 0;
	rc = seccomp_check(&s->b.th, s->mode, file, &c);
	if (rc == 0)
		return 0;
	return session_filter_refuses(
		rc, &c,
		s->mode == HM_MODE_PROXY && seccomp_check(&s->b.th, HM_MODE_DIRECT, file, &direct),
		d);
}

int session_map(struct session *s, struct diag *d)
{
	int rc = ask_filter(s, d);

	if (rc == 0)
		rc = map_region(s, d);
	if (rc == 0)
		rc = make_writable(s, d);
	return rc;
}

/* Holds a thread, maps the region, starts the boot code. On success the thread is in it. */
int session_enter(struct session *s, unsigned forbid, struct diag *d)
{
	struct proc_status st;
	int rc = status_read(s->t->procfd, "status", &st);

	if (rc)
		return target_unreadable(s->t, "/status", rc, d);
	phase_begin("waiting for a safe point", 0);
	rc = session_hold(s, forbid, d);
	if (rc)
		return rc;
	rc = check_anchors(s);
	if (rc) {
		rc = session_give_up(s, rc, NULL, d);
		return rc == -ESTALE ? target_changed(s->t, TARGET_IS_ANOTHER, d) : rc;
	}
	rc = session_map(s, d);
	if (rc)
		return session_give_up(s, rc, NULL, d);
	s->block.marker = borrow_marker(&s->b, &st);
	s->block.lent_tid = s->b.th.tid;
	s->block.call_mask = borrow_mask(&s->b);
	rc = borrow_boot(&s->b, &s->r, s->text, s->text_len, &s->block, s->scratch, s->used);
	if (rc) {
		(void)!session_unmap(s);
		return session_give_up(s, rc, "entering the payload", d);
	}
	return 0;
}

int session_left_running(struct session *s, int rc, struct diag *d)
{
	int back = borrow_abandon(&s->b);

	s->running = true;
	if (back == -ESRCH)
		return session_died(s, d);
	return diag_fail(d, rc, HM_RUNNING, "still-running",
			 "the thread goes on with its own work when it returns, and the next run "
			 "removes the mapping that stays",
			 rc == -ECANCELED
				 ? "interrupted: the call still runs on thread %d"
				 : "the call did not return in time and still runs on thread %d",
			 s->b.sp.tid);
}

int session_fault(struct session *s, int sig, struct diag *d)
{
	char words[300] = "";
	int rc;

	if (sig == SIGABRT)
		last_words_read(s->t->pid, s->abort_msg, words, sizeof(words));
	rc = session_unmap(s);
	if (rc == 0)
		rc = borrow_return(&s->b);
	if (rc)
		return session_give_up(s, rc, "taking the thread out of a fault", d);
	return diag_fail(
		d, -EFAULT, HM_DIED, "call-faulted",
		"its heap may be damaged or locked; plan a restart and keep a core",
		"the call ended in signal %d (SIG%s)%s%s, and was undone; thread %d runs on", sig,
		sigabbrev_np(sig), words[0] ? ", the allocator said: " : "", words, s->b.sp.tid);
}
