// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SANDBOX_H
#define HM_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../inject/diag.h"

/*
 * A part of this program that is run where it can do no harm: a child that may compute, read the
 * descriptors it was given and write to a pipe, and nothing else. It opens nothing and sends no
 * signal (a seccomp filter), has 512 MiB of memory of its own and 60 s of CPU, leaves no core, ends
 * with its parent, and is what the kernel kills first when memory runs out.
 */
struct sandbox {
	pid_t pid;
	int out; /* the end of the pipe that is read */
	bool at_end;
};

/* A writer to the pipe, inside. */
struct sandbox_out {
	int fd;
	size_t used;
	char buf[16384];
};

/*
 * Runs fn(out, arg) in the child; it returns 0 if all went well. keep: the n descriptors that stay
 * open there. The errno of pipe(2) or fork(2), -EPERM where it cannot be restricted so. The caller
 * ends s with sandbox_end.
 */
HM_MUST_CHECK int sandbox_start(int (*fn)(struct sandbox_out *out, void *arg), void *arg,
				const int *keep, size_t n, struct sandbox *s);
/* Inside: queues bytes; a reader that is gone ends the process. */
void sandbox_write(struct sandbox_out *out, const void *p, size_t len);
/*
 * All len bytes that it has written. -ENODATA at the end, -EBADMSG at an end in between or when
 * nothing comes for 60 s, or the errno of read(2).
 */
HM_MUST_CHECK int sandbox_read(struct sandbox *s, void *buf, size_t len);
/* Ends it; true if fn has returned 0, for which it has a moment once sandbox_read
 * has said -ENODATA. */
bool sandbox_end(struct sandbox *s);
#endif
