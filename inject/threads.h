// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_THREADS_H
#define HM_THREADS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "maps.h"
#include "modules.h"
#include "syscalls.h"
#include "target.h"

/* One thread as /proc/PID/task/TID shows it: nothing is stopped. */
struct thread {
	pid_t tid;
	char state;    /* R S D Z T t X I */
	char name[64]; /* escaped */
	bool in_syscall;
	long nr; /* system call, -1 if not in one */
	uint64_t arg[6];
	uint64_t sp, pc; /* 0 while running */
	uint64_t tcb;	 /* struct pthread found at the end of its stack, 0 if not found */
	uint64_t tp;	 /* thread pointer as far as it is known, 0 if not: threads_locate */
	uint64_t stack_lo, stack_hi; /* the mapping that holds sp, 0 if none */
	bool has_arena;		     /* thread_arena of glibc is set: it has called malloc */
	int rank;		     /* smaller is better; see threads_rank */
	bool anew;	    /* it waits with a timeout that would begin anew (socket_wait.h) */
	const char *reason; /* why it is not usable, or what it is waiting in; static text */
	bool usable;
};

struct threads {
	struct thread *v;
	size_t n;
	uint64_t arena_off; /* thread_arena lies so far below a thread pointer; 0 unknown */
};

/* All threads, unranked: tid, state, name, system call, sp, pc. Threads that end meanwhile are left
 * out. */
HM_MUST_CHECK int threads_read(const struct target *t, struct threads *out, struct diag *d);
/* One of them. -ESRCH if there is none of that tid, or another errno. */
HM_MUST_CHECK int thread_read(const struct target *t, pid_t tid, struct thread *out);
/* tid as the target's innermost pid namespace counts (NSpid, proc(5)); tid itself where it is ours,
 * or cannot be read. */
pid_t thread_inner_tid(const struct target *t, pid_t tid);
void threads_free(struct threads *t);
/*
 * Ranks and sorts, best candidate first: threads that own a glibc arena before those that do not;
 * among them first one asleep in a call that the kernel restarts by itself, then one in a call
 * whose EINTR we heal, each first without a timeout, last a running one. Behind all of them come
 * waits whose timeout would begin anew. Never usable: D, Z, X, t, T; a stack that is neither the
 * main stack nor one with a TCB at its end. mods may be NULL: then has_arena stays false. Fills
 * arena_off.
 */
HM_MUST_CHECK int threads_rank(const struct target *t, const struct maps *maps,
			       const struct modules *mods, struct threads *list);
/*
 * Looks for the thread pointers that threads_rank has not found, as those of threads that run: in
 * glibc's lists of stacks (2.34 and newer), for some dozens of threads at most. mods may be NULL.
 */
HM_MUST_CHECK int threads_locate(const struct target *t, const struct modules *mods,
				 struct threads *list);
/* Not this one, for that reason (static text): it sorts behind all that are usable. */
void threads_refuse(struct thread *th, const char *why);
void threads_sort(struct threads *list);
/*
 * How many at the front of a ranked list own an arena and may be borrowed at no cost to anybody.
 * Whoever else starts a thread may make a new arena for that: its 64 MiB of address space stay
 * (arena_get2 in glibc's malloc/arena.c).
 */
size_t threads_at_no_cost(const struct threads *list);
#endif
