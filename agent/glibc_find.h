// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_FIND_H
#define HM_GLIBC_FIND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/reader.h"
#include "glibc_layout.h"

/* Addresses [start, end). */
struct span {
	uint64_t start, end;
};

/* mp_: what malloc works by. */
struct glibc_par {
	uint64_t at; /* 0: not found */
	const struct glibc_par_row *row;
	uint64_t trim_threshold, top_pad, mmap_threshold, arena_test, arena_max;
	uint64_t mmapped_mem, max_mmapped_mem;	 /* bytes in mmapped chunks, now and at most */
	uint64_t sbrk_base;			 /* where the main heap begins, 0 without one */
	uint64_t tcache_max_bytes, tcache_count; /* 0 before 2.26 */
	uint64_t thp_pagesize; /* top moves in steps of it: a power of two; 0: of pages */
	int n_mmaps, n_mmaps_max, max_n_mmaps;
	bool no_dyn_threshold;
};

enum glibc_links { LINKS_UNKNOWN, LINKS_PLAIN, LINKS_SAFE };

/* One glibc's malloc in one process: where it is and how it is laid out. */
struct glibc_view {
	const struct reader *r;
	int version; /* as the file says, a hint; else the first that has all that was found */
	uint64_t main_arena;
	const struct glibc_state_row *state;
	uint64_t heap_max;	 /* alignment of thread arenas' heaps; 0: no thread arena */
	unsigned heap_info_size; /* before the arena or the first chunk of a heap */
	enum glibc_links links;
	struct glibc_par par;
};

/*
 * Finds main_arena in libc's writable data by the shape of its list heads and of the ring of
 * arenas; what is at what offset follows from that, and from the version where the data fits
 * several. Needs no symbols. Pure but for r.
 *
 * data: libc's writable memory (of a static program: the program's), in address order; neighbours
 * are one piece. hint: where a symbol says that main_arena is, 0 without one; it is looked at only
 * where the shape is not found. version: 0 if unknown. The reader must stay valid while the view is
 * used.
 *
 * -ENOENT: nothing there has the shape; -ENODATA: there is an arena that nobody has used yet;
 * -ENOMEM and the reader's -ESRCH.
 */
HM_MUST_CHECK int glibc_find(const struct reader *r, const struct span *data, size_t n, int version,
			     uint64_t hint, struct glibc_view *out);
/* mp_ is read again: its numbers change. 0 also where it was not found. */
HM_MUST_CHECK int glibc_par_read(const struct glibc_view *v, struct glibc_par *out);

/* The heap that addr lies in, if it lies in one: the address rounded down to the heaps' alignment.
 */
uint64_t glibc_heap_of(const struct glibc_view *v, uint64_t addr);
#endif
