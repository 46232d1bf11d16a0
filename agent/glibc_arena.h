// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_ARENA_H
#define HM_GLIBC_ARENA_H
#include "glibc_fault.h"
#include "glibc_find.h"

/* One heap of a thread arena (heap_info); of the main arena, where that is one piece. */
struct glibc_heap {
	uint64_t at;	/* its start */
	uint64_t first; /* its first chunk */
	uint64_t end;	/* what can be read and written ends here */
	uint64_t peak;	/* bytes that once were */
};

/* An arena as it was at one moment. */
struct glibc_arena {
	unsigned index; /* in the ring, 0 is the main arena */
	uint64_t at;
	int mutex; /* 0 free, 1 held, 2 held and waited for */
	int flags;
	uint64_t top, top_size;	 /* 0: no top yet */
	uint64_t next, attached; /* attached: threads that use it; 0 where it is parked */
	uint64_t system_mem, max_system_mem;
	size_t len;
	unsigned char raw[GLIBC_STATE_MAX]; /* malloc_state, len bytes */
	struct glibc_heap *heap;	    /* by address */
	size_t heaps;
	bool open; /* the main arena is not known to be one piece: any memory may be its own */
};

/* The addresses of all arenas, in the order of the ring: the main arena first. */
struct glibc_ring {
	uint64_t *at;
	size_t n;
};

/*
 * All of these return 0; -EBADMSG when f was filled; -ENODATA when something that is needed is
 * swapped out; -EFAULT where libc's own memory is gone; -ESRCH, -ENOMEM.
 */
/* The caller ends *out with glibc_ring_free, also after an error: what was found before the fault
 * is in it. */
HM_MUST_CHECK int glibc_ring_read(const struct glibc_view *v, struct glibc_ring *out,
				  struct glibc_fault *f);
void glibc_ring_free(struct glibc_ring *r);
/* The fields of malloc_state; no heaps yet. *out begins zeroed, or as it was left by this. */
HM_MUST_CHECK int glibc_arena_read(const struct glibc_view *v, uint64_t at, unsigned index,
				   struct glibc_arena *out);
/* Heaps and top of an arena that was read. The caller ends a with glibc_arena_free, also after an
 * error. */
HM_MUST_CHECK int glibc_arena_heaps(const struct glibc_view *v, struct glibc_arena *a,
				    struct glibc_fault *f);
void glibc_arena_free(struct glibc_arena *a);
/*
 * Nobody was inside since a was read: its lock was free, and its header, read anew, is the same. 1,
 * 0 (also where it cannot be read any more), or -ESRCH.
 */
HM_MUST_CHECK int glibc_arena_still(const struct glibc_view *v, const struct glibc_arena *a);

/* Is [at, at + len) inside of the arena's heaps, behind what describes them? */
bool glibc_arena_holds(const struct glibc_view *v, const struct glibc_arena *a, uint64_t at,
		       uint64_t len);
/* What is at bin i (fd, then bk) and fastbin i of the header. */
uint64_t glibc_arena_bin_at(const struct glibc_view *v, const struct glibc_arena *a, unsigned i);
void glibc_arena_bin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i,
		     uint64_t *fd, uint64_t *bk);
uint64_t glibc_arena_fastbin(const struct glibc_view *v, const struct glibc_arena *a, unsigned i);
unsigned glibc_fastbins(const struct glibc_view *v); /* 0 since 2.43 */
/* Fills f and returns -EBADMSG. */
int glibc_fault_at(const struct glibc_arena *a, enum glibc_fault_kind kind, enum glibc_place place,
		   unsigned index, uint64_t at, uint64_t value, struct glibc_fault *f);
#endif
