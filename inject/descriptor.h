// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DESCRIPTOR_H
#define HM_DESCRIPTOR_H
#include "target.h"

/* What code of ours in the target opens: nothing else is ever opened for a number that stands in
 * the target's memory or registers. */
enum descriptor_kind {
	DESCRIPTOR_PIPE,   /* pipe2(2) */
	DESCRIPTOR_MEMORY, /* memfd_create(2) */
};

/*
 * Opens what descriptor fd of thread tid is, once more (/proc/PID/task/TID/fd), with flags and
 * O_CLOEXEC. 0 with the caller's own *out; -EPROTO if it is nothing of this kind that the thread
 * can have made; else the errno of open(2) or fstat(2).
 */
HM_MUST_CHECK int descriptor_open(const struct target *t, pid_t tid, int fd,
				  enum descriptor_kind kind, int flags, int *out);
#endif
