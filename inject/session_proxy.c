// SPDX-License-Identifier: GPL-3.0-or-later
/* Sessions with a thread of our own: a thread is borrowed once, to start it. */
#include "session_parts.h"

#include <errno.h>
#include <string.h>

#include "cause.h"
#include "clock.h"
#include "limits.h"
#include "mem.h"

/* pthread_create waits at most for locks that running threads hold for microseconds. */
#define PLACES	   4
#define BOOT_LIMIT (2 * NS_PER_SEC)

static int boot_result(struct session *s, int *rc)
{
	return mem_read(s->t->pid, s->r.block + offsetof(struct hm_block, boot_rc), rc,
			sizeof(*rc));
}

static int create_failed(struct session *s, int boot_rc, struct diag *d)
{
	int err = proxy_errno(boot_rc);
	struct room room;
	int rc = session_unmap(s);

	if (rc)
		return session_give_up(s, rc, "removing the region", d);
	rc = borrow_return(&s->b);
	if (rc)
		return session_give_up(s, rc, RETURNING, d);
	/* glibc makes EAGAIN of ENOMEM */
	if (limits_read(s->t, false, &room) == 0 && limits_judge_thread(&room, d))
		return err;
	return cause_fail(d, err, CAUSE_NO_THREAD, "pthread_create in the target failed: %s",
			  strerror(-err));
}

/*
 * Nobody waits for the proxy's stops while we do something else, such as writing to a pager that is
 * full, and the application's setuid(2) waits for the proxy. So it is traced during calls only. One
 * that cannot be parked is found out by the next call.
 */
static void rest(struct session *s)
{
	/* untraced, its system calls would meet the target's seccomp filter (see session_park) */
	if (!s->b.options)
		(void)!proxy_park(&s->proxy);
}

/* Two that start at once may choose the same address (MAP_FIXED_NOREPLACE then answers EEXIST). */
static int enter_somewhere(struct session *s, struct diag *d)
{
	int rc;

	for (int i = 0;; i++) {
		rc = session_enter(s, CODE_ALLOC | CODE_LOADER | CODE_THREADS, d);
		if (rc != -EEXIST || i == PLACES)
			return rc;
		rc = session_place(s, d);
		if (rc)
			return rc;
	}
}

int session_open_proxy(struct session *s, struct diag *d)
{
	pid_t clone = 0;
	int boot_rc = 0, sig = 0;
	int rc = enter_somewhere(s, d);

	if (rc)
		return rc;
	/* Nobody takes a thread out of pthread_create: it may hold the allocator's lock there. */
	rc = borrow_finish(&s->b, &s->r, s->block.marker, clock_now() + BOOT_LIMIT, NULL, &clone,
			   &sig);
	if (rc == -ETIMEDOUT)
		return session_left_running(s, rc, d);
	if (rc == -EFAULT)
		return session_fault(s, sig, d);
	if (rc)
		return session_give_up(s, rc, "waiting for pthread_create", d);
	/* what it has unmapped may be somebody else's when a later proxy boots */
	s->block.n_reap = 0;
	rc = boot_result(s, &boot_rc);
	if (rc == 0 && !boot_rc && !clone)
		rc = -EPROTO;
	if (rc)
		return session_give_up(s, rc, "starting the proxy", d);
	if (boot_rc)
		return create_failed(s, boot_rc, d);
	rc = borrow_return(&s->b);
	if (rc)
		return session_give_up(s, rc, RETURNING, d);
	rc = proxy_start(&s->proxy, s->t, &s->r, clone, s->b.options, d);
	s->running = rc == -ETIMEDOUT;
	if (rc)
		return rc;
	s->proxy.cancel = s->o.cancel;
	s->proxy.abort_msg = s->abort_msg;
	s->proxy_on = true;
	rest(s);
	return 0;
}

/* A filter that is suspended was asked before the thread was made, but not for a file. */
static int ask_for_file(struct session *s, struct diag *d)
{
	struct seccomp_call c;
	int rc;

	if (!s->file || !s->b.options)
		return 0;
	rc = proxy_ask_filter(&s->proxy, &c);
	if (rc == 0 || c.harm || rc == -ENOMEM)
		return rc ? session_filter_refuses(rc, &c, true, d) : 0;
	return session_lost(s, rc, "asking the seccomp filter", d);
}

int session_call_proxy(struct session *s, struct call *v, size_t n, struct diag *d)
{
	uint64_t block = s->r.block;
	pid_t pid = s->t->pid;
	uint32_t counts[2] = { (uint32_t)n, 0 };
	int rc = ask_for_file(s, d);

	if (rc)
		return rc;
	rc = mem_write(pid, block + offsetof(struct hm_block, slot), s->block.slot,
		       n * sizeof(struct hm_slot));
	if (rc == 0)
		rc = mem_write(pid, block + offsetof(struct hm_block, n_calls), counts,
			       sizeof(counts));
	if (rc == 0 && s->used)
		rc = mem_write(pid, s->r.scratch, s->scratch, s->used);
	if (rc)
		return session_lost(s, rc, "writing the calls", d);
	s->proxy.memfile = s->file;
	rc = proxy_run(&s->proxy, s->o.timeout_ns, d);
	s->proxy.memfile = NULL;
	if (rc)
		return rc;
	rest(s);
	return session_results(s, v, n, d);
}
