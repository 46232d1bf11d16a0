// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TARGET_H
#define HM_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "status.h"

/*
 * One process, held by a pidfd, a directory fd of /proc/PID and its start time, so that a reused
 * pid is never mistaken for it (pidfd_open(2), proc(5) field 22 of stat). Nothing here stops or
 * changes the process.
 */
struct target {
	pid_t pid;	     /* in our pid namespace */
	int pidfd;	     /* -1 where the kernel has no pidfd (before 5.3) */
	int procfd;	     /* O_PATH|O_DIRECTORY on /proc/PID */
	uint64_t start_time; /* clock ticks since boot */
	char comm[64];	     /* control characters escaped */
};

/*
 * Opens pid. Errors, each with its own diag: no such process (3), a kernel thread (5), a zombie
 * (3), ourselves (2), /proc not mounted or hidden (4). On error nothing stays open. The caller owns
 * t and ends it with target_close.
 */
HM_MUST_CHECK int target_open(pid_t pid, struct target *t, struct diag *d);
void target_close(struct target *t);
/* 0 if /proc is mounted and of our pid namespace; else exit 4. */
HM_MUST_CHECK int target_check_proc(struct diag *d);

/* True while the process opened is still there and not a zombie: same pid, same start time. */
bool target_alive(const struct target *t);

/*
 * True if the process is gone, or is being torn down and gone within a moment: the end of a process
 * is not instant (exit_group(2) kills its threads one by one, and its memory goes first), and what
 * fails in between fails for that reason. Waits for it only when the kernel shows the main thread
 * as exiting, or when suspected is set.
 */
bool target_ending(const struct target *t, bool suspected);

/* Fills d with exit 3 "gone" and returns -ESRCH. */
int target_gone(const struct target *t, struct diag *d);
/* What has become of a process that is not the program that was looked at. */
enum target_change {
	TARGET_IS_ANOTHER,	  /* seen before anything was done to it */
	TARGET_CHANGED_MEANWHILE, /* what was done to it before is gone with that program */
	TARGET_CHANGES_ALWAYS,	  /* at each look it was another one */
};
/*
 * Fills d with exit 6 "program-changed" and returns -ESTALE: it has executed another program
 * (execve(2) changes neither pid nor start time), or loaded a library.
 */
int target_changed(const struct target *t, enum target_change how, struct diag *d);
/*
 * A file of it ("/status") could not be read: it is gone, or we have no descriptor or memory left,
 * which must never be taken for its end. Fills d, returns a negative errno.
 */
int target_unreadable(const struct target *t, const char *name, int err, struct diag *d);
/* Fills d with exit 5 "kernel-thread" and returns -EINVAL. */
int target_kernel_thread(pid_t pid, const char *name, struct diag *d);

/*
 * Reads the whole of a /proc file (path relative to dirfd) of at most max bytes into a malloc'ed,
 * NUL-terminated buffer that the caller frees. -EFBIG over max, else the errno of open or read.
 */
HM_MUST_CHECK int proc_read(int dirfd, const char *path, size_t max, char **out, size_t *len);
#endif
