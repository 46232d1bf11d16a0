// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SECCOMP_H
#define HM_SECCOMP_H
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "payload/abi.h"
#include "tracer.h"

/*
 * While we trace a thread its seccomp filter is suspended (PTRACE_O_SUSPEND_SECCOMP); when we are
 * killed it is not. Should the filter kill for a call that the payload makes, our death would be
 * the target's. So the filter is asked.
 */

/*
 * Pure: runs a classic BPF program as the kernel does for seccomp (seccomp(2), kernel/seccomp.c:
 * seccomp_check_filter lists the instructions). 0 with the action, -EINVAL for a program that the
 * kernel would not have taken.
 */
HM_MUST_CHECK int seccomp_run(const struct sock_filter *f, size_t n,
			      const struct seccomp_data *data, uint32_t *action);
/* What would come of a call of ours if we were killed at it. */
enum seccomp_harm {
	SECCOMP_NO_HARM,
	SECCOMP_KILLS,	     /* the process or its thread */
	SECCOMP_FATAL_ERROR, /* the call fails, where glibc or the payload cannot go on without it
			      */
};

struct seccomp_call {
	const char *name; /* static */
	long nr;
	enum seccomp_harm harm;
};

/* Pure: asks one filter for each system call that the payload makes in this mode, file: and a call
 * that writes a file (memfile.h); the first that would do harm is in *out. */
enum seccomp_harm seccomp_ask(const struct sock_filter *f, size_t n, enum hm_mode mode, bool file,
			      struct seccomp_call *out);
/*
 * Asks all filters of a stopped thread. 0: no call would do harm. -EACCES: *out would; else the
 * errno of PTRACE_SECCOMP_GET_FILTER or -ENOMEM, and nothing is known.
 */
HM_MUST_CHECK int seccomp_check(const struct tracee *t, enum hm_mode mode, bool file,
				struct seccomp_call *out);
#endif
