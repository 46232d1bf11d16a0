// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TARGET_H
#define HM_TARGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

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

/* What /proc/PID/status says (also of one thread). Absent fields are 0, nspid_len 0. */
struct proc_status {
	char name[64];
	char state; /* R S D Z T t X I */
	pid_t tgid, pid, ppid, tracer;
	uid_t uid[4]; /* real, effective, saved, file system */
	gid_t gid[4];
	int threads;
	uint64_t sig_pending, shd_pending, sig_blocked, sig_ignored,
		sig_caught; /* bit n-1 is signal n */
	uint64_t cap_eff, cap_prm;
	int seccomp; /* 0 off, 1 strict, 2 filter */
	bool no_new_privs;
	bool kthread;
	bool shadow_stack; /* x86_Thread_features: shstk */
	pid_t nspid[16];   /* outermost first */
	size_t nspid_len;
};

/*
 * Opens pid. Errors, each with its own diag: no such process (3), a kernel thread (5), a zombie
 * (3), ourselves (2), /proc not mounted or hidden (4). On error nothing stays open. The caller owns
 * t and ends it with target_close.
 */
HM_MUST_CHECK int target_open(pid_t pid, struct target *t, struct diag *d);
void target_close(struct target *t);

/* True while the process opened is still there and not a zombie: same pid, same start time. */
bool target_alive(const struct target *t);

/* Fills d with exit 3 "gone" and returns -ESRCH. */
int target_gone(const struct target *t, struct diag *d);

/*
 * Reads the whole of a /proc file (path relative to dirfd) of at most max bytes into a malloc'ed,
 * NUL-terminated buffer that the caller frees. -EFBIG over max, else the errno of open or read.
 */
HM_MUST_CHECK int proc_read(int dirfd, const char *path, size_t max, char **out, size_t *len);

/* Pure parsers over the file's text, and the readers that use them. path is "status" or
 * "task/TID/status". */
HM_MUST_CHECK int status_parse(const char *text, struct proc_status *out);
HM_MUST_CHECK int status_read(int procfd, const char *path, struct proc_status *out);
/* Start time (field 22) and state from the text of a stat file; comm may hold spaces and
 * parentheses. */
HM_MUST_CHECK int stat_parse(const char *text, char *state, uint64_t *start_time, uint64_t *minflt);

/* Copies a string of the target with control characters and non-ASCII escaped (\n, \x1b); never
 * overflows. */
void escape_copy(char *dst, size_t size, const char *src, size_t len);
#endif
