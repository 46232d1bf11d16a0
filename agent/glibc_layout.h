// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_LAYOUT_H
#define HM_GLIBC_LAYOUT_H
#include <stddef.h>
#include <stdint.h>

/*
 * Where glibc's malloc keeps what, on 64-bit machines: offsets in its private structures, from
 * malloc/malloc.c and malloc/arena.c of the releases 2.17 to 2.43. A version is its minor number:
 * 36 is 2.36; 0 is unknown. Distributions ship branch tips and backports, so a version is a hint:
 * what the memory itself shows comes first.
 */
#define GLIBC_FIRST 17
#define GLIBC_LAST  43

#define GLIBC_BINS	128U /* list heads; 0 does not exist, 1 holds unsorted chunks */
#define GLIBC_BIN_WORDS 254U
#define GLIBC_SMALL	64U /* first bin of large chunks */
#define GLIBC_FASTBINS	10U
#define GLIBC_ALIGN	16U
#define GLIBC_MINSIZE	32U
#define GLIBC_STATE_MAX 2304U /* no malloc_state is larger */
#define GLIBC_NEXT	2048U /* next stands so far behind the first word of the bins */

#define GLIBC_NONE UINT16_MAX /* the field does not exist */

/* malloc_state: the mutex is an int at 0, flags an int at 4. */
struct glibc_state_row {
	uint8_t first, last; /* releases that have it */
	uint16_t fastbins, top, last_remainder, bins, next, next_free, attached, system_mem, size;
	/* max_system_mem follows system_mem */
};
#define GLIBC_FLAGS	    4
#define GLIBC_NONCONTIGUOUS 2 /* in flags: the main heap is not one piece */

/* mp_: trim_threshold at 0, top_pad 8, mmap_threshold 16, arena_test 24, arena_max 32. */
struct glibc_par_row {
	uint8_t first, last;
	uint16_t thp_pagesize; /* hp_pagesize follows */
	uint16_t n_mmaps;      /* int; n_mmaps_max, max_n_mmaps and no_dyn_threshold follow */
	uint16_t mmapped_mem;  /* max_mmapped_mem follows */
	uint16_t sbrk_base;
	uint16_t tcache_bins; /* tcache_max_bytes and tcache_count follow */
	uint16_t size;
};

/* tcache_perthread_struct. */
struct glibc_tcache_row {
	uint8_t first, last;
	uint8_t count_size; /* bytes of one counter */
	uint16_t bins;	    /* lists */
	uint16_t small;	    /* lists of one size each: 32 + 16 * index */
	uint16_t entries;   /* offset of the list heads */
	uint16_t size;
};

size_t glibc_state_rows(const struct glibc_state_row **out);
size_t glibc_par_rows(const struct glibc_par_row **out);
size_t glibc_tcache_rows(const struct glibc_tcache_row **out);

/* sizeof(heap_info) of a version: 32, since 2.35 48. */
unsigned glibc_heap_info_size(int version);
/* Links of thread caches and fastbins are stored as (address of the field >> 12) ^ pointer. */
#define GLIBC_SAFE_LINKING 32
/* The minor number in a version text ("2.36", "2.36-9"); 0 if it is none of 2.x. */
int glibc_version_minor(const char *text);

/* malloc_chunk: prev_size at 0, size 8, fd 16, bk 24, fd_nextsize 32, bk_nextsize 40. */
struct glibc_chunk {
	uint64_t prev_size, size, fd, bk, fd_nextsize, bk_nextsize;
};
#define GLIBC_CHUNK_HEADER 16U
enum { CHUNK_PREV_INUSE = 1, CHUNK_MMAPPED = 2, CHUNK_NON_MAIN = 4, CHUNK_BITS = 7 };

/* The bin that a free chunk of that size belongs to once it is sorted (2 to 126). */
unsigned glibc_bin_index(uint64_t size);
/* The size of the chunks in fastbin i. */
uint64_t glibc_fastbin_size(unsigned i);
#endif
