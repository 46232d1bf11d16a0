// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_THREADS_H
#define HM_GLIBC_THREADS_H
#include "../inject/threads.h"
#include "../inject/tls.h"
#include "glibc_find.h"
#include "process.h"

/* What a thread has of glibc's malloc: two pointers in libc's thread-local storage lead to it. */
struct glibc_thread {
	bool slot;	/* its pointer to an arena could be read */
	long arena;	/* number in the ring; -1: it has none, or that is not known (slot) */
	bool cache;	/* what its thread cache holds is known */
	uint64_t bytes; /* in that cache, chunk headers included; 0 without one */
	uint64_t blocks;
};

/*
 * Reads this of each thread of list (ranked: threads_rank and threads_locate have found their
 * thread pointers) into out, which has room for as many. What cannot be found is not known, never
 * guessed: where two words of the storage could be the pointer, where in a static program no cache
 * holds anything, or where a cache changes during each reading. 0; else with d.
 */
HM_MUST_CHECK int glibc_threads_read(const struct process *p, const struct allocator *a,
				     const struct threads *list, struct glibc_thread *out,
				     struct diag *d);

/*
 * Pure but for v's reader: the offset below the thread pointer (address = tp - *out) of the pointer
 * to the thread cache, by a vote over the blocks of libc's storage: n of words words each. -ENOENT
 * where no word leads to a cache or two do equally. In a static program it has to be one that holds
 * something.
 */
HM_MUST_CHECK int glibc_tcache_offset(const struct glibc_view *v, const struct tls_layout *l,
				      const uint64_t *blocks, size_t n, uint64_t *out);
#endif
