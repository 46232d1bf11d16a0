// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROXY_H
#define HM_PROXY_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memfile.h"
#include "region.h"
#include "seccomp.h"
#include "session.h"
#include "tracer.h"

/*
 * The host's side of the proxy thread. While a call runs it is traced, so that a fault is a stop
 * that we see; at rest it is not, so that neither the application's setuid(2) nor another tool ever
 * waits for us.
 */
struct proxy {
	const struct target *t;
	const struct region *r;
	struct tracee th;
	unsigned long options;	 /* PTRACE_O_* while it is traced */
	int request, reply, out; /* our ends; -1 if not open */
	int childfd;		 /* signalfd of SIGCHLD */
	uint64_t abort_msg;	 /* see last_words.h; 0 unknown */
	bool lost; /* a call is still running, or it is gone: nothing but proxy_end is possible */
	const volatile sig_atomic_t *cancel;
	struct memfile *memfile; /* what the calls write to; NULL: to none */
};

/* Takes over the new thread (its first stop has not been waited for) and waits until it serves. */
HM_MUST_CHECK int proxy_start(struct proxy *p, const struct target *t, const struct region *r,
			      pid_t tid, unsigned long options, struct diag *d);
/* Runs the calls that stand in the block; the caller has written them. Fills d: exit 8 or 9. */
HM_MUST_CHECK int proxy_run(struct proxy *p, uint64_t timeout_ns, struct diag *d);
/* seccomp_check of the filter that it runs under, for calls that write a file. */
HM_MUST_CHECK int proxy_ask_filter(struct proxy *p, struct seccomp_call *out);
/* Pure: the errno that the payload has left in memory of the target, negative; -EPROTO if what
 * stands there is none. */
int proxy_errno(int32_t e);
/* The thread is gone: collects it (tracee_reap). */
void proxy_reap(struct proxy *p);
HM_MUST_CHECK int proxy_park(struct proxy *p);
HM_MUST_CHECK int proxy_unpark(struct proxy *p);
/*
 * Ends the thread. 0: it is gone and its memory with it; -EBUSY: a call still runs (it will leave
 * by itself when that returns); other: it is gone or leaving, its stack may remain for the next
 * session to remove.
 */
HM_MUST_CHECK int proxy_end(struct proxy *p);
#endif
