// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_CHECK_H
#define HM_GLIBC_CHECK_H
#include "glibc_walk.h"

/*
 * Is the heap such that malloc_trim, malloc_info and their kin get through it? Looked at is what
 * they touch: the ring of arenas, heaps and top, all lists of free chunks with their neighbours.
 *
 * A target runs on while it is read, so what looks damaged is a suspicion. It is called damage only
 * after the very same was read again several times, with the arena's lock free and its header the
 * same before and after each reading.
 */
struct glibc_check_opts {
	bool every_chunk;    /* all chunks of all heaps too, in use or not, and the thread caches */
	uint64_t max_chunks; /* 0: no limit */
	uint64_t limit_ns;   /* of CPU time, five times as much of time; 0: no limit */
	/* Called between two readings; NULL: they follow at once. */
	void (*wait)(void *ctx, uint64_t ns);
	/*
	 * A process with one thread takes no locks: only the caller knows whether it may be in the
	 * middle of a change all the time (preempted, stopped). begin is true before the first
	 * reading again; later: has every thread got on, or been outside, since? NULL: nothing
	 * runs.
	 */
	bool (*at_rest)(void *ctx, bool begin);
	void *ctx;
};

struct glibc_check {
	struct glibc_fault fault; /* kind FAULT_NONE: no damage */
	bool complete;	  /* all was looked at; else the limit, or what is below, was in the way */
	bool limited;	  /* the limit was reached */
	unsigned moving;  /* parts that changed during each reading, or looked wrong but were in use
			   */
	unsigned swapped; /* parts that are swapped out */
	unsigned readings_again; /* for suspicions */
	unsigned arenas;
	uint64_t chunks; /* looked at */
};

/* 0, also where damage was found; -ESRCH, -ENOMEM. Pure but for what opts call and the clock. */
HM_MUST_CHECK int glibc_check_run(const struct glibc_view *v, const struct glibc_check_opts *opts,
				  struct glibc_check *out);
#endif
