// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_STATUS_H
#define HM_STATUS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/* What /proc/PID/status says (also of one thread). Absent fields are 0, nspid_len 0. */
struct proc_status {
	char name[64]; /* escaped */
	char state;    /* R S D Z T t X I */
	pid_t tgid, pid, ppid, tracer;
	uid_t uid[4]; /* real, effective, saved, file system */
	gid_t gid[4];
	int threads;
	uint64_t sig_pending, shd_pending, sig_blocked, sig_ignored,
		sig_caught; /* bit n-1 is signal n */
	uint64_t cap_eff, cap_prm, cap_bnd;
	uint64_t vm_size, vm_locked, vm_data; /* bytes; RLIMIT_AS, _MEMLOCK, _DATA bound them */
	int seccomp;			      /* 0 off, 1 strict, 2 filter */
	bool no_new_privs;
	bool kthread;	   /* the Kthread line (Linux 6.8); see stat_is_kthread for older ones */
	bool shadow_stack; /* x86_Thread_features: shstk */
	pid_t nspid[16];   /* outermost first */
	size_t nspid_len;
};

/*
 * Pure parsers over the file's text, and the reader that uses them. path is "status" or
 * "task/TID/status", relative to procfd. -EINVAL if State, Tgid or Pid is missing or damaged.
 */
HM_MUST_CHECK int status_parse(const char *text, struct proc_status *out);
HM_MUST_CHECK int status_read(int procfd, const char *path, struct proc_status *out);
/*
 * Start time (field 22), state and minor faults (field 10) from the text of a stat file; comm may
 * hold spaces and parentheses. Each out pointer may be NULL.
 */
HM_MUST_CHECK int stat_parse(const char *text, char *state, uint64_t *start_time, uint64_t *minflt);
/*
 * Which program it executes: where its code and its stack begin (fields 26 and 28). execve(2)
 * changes neither pid nor start time, but these, unless addresses are not randomised and it is the
 * same program again. Zeros where we may not trace the process.
 */
struct program_mark {
	uint64_t code, stack;
};
/* minflt: as minflt_read, of the same reading. 0 or a negative errno. */
HM_MUST_CHECK int program_read(int procfd, struct program_mark *out, uint64_t *minflt);
/* Minor faults of all threads so far, those that have ended too. 0 or a negative errno. */
HM_MUST_CHECK int minflt_read(int procfd, uint64_t *minflt);
/* The comm of a stat file, escaped. */
HM_MUST_CHECK int stat_comm(const char *text, char *dst, size_t size);
/* The wait status of a process that has ended (field 52). The kernel shows 0 to who may not trace
 * it, and nobody else has its maps open. -EINVAL. */
HM_MUST_CHECK int stat_exit_code(const char *text, int *status);
/* PF_KTHREAD in the flags of a stat file (field 9): a thread of the kernel, without user memory. */
bool stat_is_kthread(const char *text);
/* From the same field: the task is in do_exit (PF_EXITING). */
bool stat_is_exiting(const char *text);

/* Copies a string of the target with control characters and non-ASCII escaped (\n, \x1b); never
 * overflows. */
void escape_copy(char *dst, size_t size, const char *src, size_t len);
#endif
