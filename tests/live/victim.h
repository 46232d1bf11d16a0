// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_VICTIM_H
#define LIVE_VICTIM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A process that heapmedic is tried on. Nothing here returns an error: what goes wrong fails the
 * running test. A victim dies with its test, whatever becomes of that.
 */
struct victim {
	pid_t pid;
	int in, out, err; /* our ends of its standard streams; in is -1 once closed */
};

/* How to start one. */
struct victim_plan {
	const char *argv[24]; /* "@NAME" means NAME in the directory of built victims */
	const char *env;      /* one NAME=VALUE to add, or NULL; "@NAME" at its end as in argv */
	bool silent;	      /* it does not say "ready": the caller waits by other means */
};

/* Starts it and waits until it has said "ready". Where victims are of another release
 * ($VICTIM_ROOT) and it is none of those, the test is skipped. */
void victim_start(struct victim *v, const struct victim_plan *plan);
/* The plain case: a program of the victims directory with at most two arguments (may be NULL). */
void victim_start_named(struct victim *v, const char *name, const char *arg1, const char *arg2);
/* Does this kernel start programs of that one's kind (32 bits: CONFIG_IA32_EMULATION,
 * ia32_emulation=)? */
bool victim_can_run(const char *name);
/* Is there, not stopped, not a zombie, and has said nothing since it was ready. */
void victim_check(struct victim *v);
/* victim_check, then closes its standard input and requires exit 0 and not a word on the way. */
void victim_stop(struct victim *v);
/* Ends it without looking. */
void victim_kill(struct victim *v);
/*
 * Waits until it has come to rest: the first turns of its threads bring pages of files in. Returns
 * its RSS in kB.
 */
long victim_settle(struct victim *v);
/* Waits for its end and requires this exit status. */
void victim_wait_exit(struct victim *v, int status);
/* The version of jemalloc that victims have: of Debian 12, or that of their root. */
const char *victim_jemalloc(void);
/* The path of a built victim, in a static buffer. */
const char *victim_path(const char *name);

/* A number from /proc/PID/NAME, such as ("smaps_rollup", "Rss:") in kB; -1 without such a line. */
long proc_number(pid_t pid, const char *file, const char *key);
/* The state letter in /proc/PID/status, 0 if there is no such process. */
char proc_state(pid_t pid);
/* Waits up to 10 s until proc_state is one of letters. */
void proc_wait_state(pid_t pid, const char *letters);
/* Waits as long until it executes the program of that name and sleeps. */
void proc_wait_name(pid_t pid, const char *name);
/* The process's threads; returns how many, at most max. */
size_t proc_tids(pid_t pid, pid_t *tid, size_t max);
uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
/*
 * Asks for a report (victims/victim.h) and waits for it: every thread of the victim has made a
 * whole turn with its checks since. Returns how many early EINTR it has forgiven. more (may be
 * NULL) gets what else it says.
 */
unsigned victim_report(struct victim *v, char *more, size_t size);

#include "state.h"
#endif
