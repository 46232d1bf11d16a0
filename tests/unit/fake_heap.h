// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TEST_FAKE_HEAP_H
#define HM_TEST_FAKE_HEAP_H
#include "../../agent/glibc_find.h"
#include "../../agent/glibc_plan_read.h"

/*
 * A glibc heap in buffers, laid out as a given version has it: libc's data with mp_ and main_arena,
 * the main heap, and thread arenas of two heaps each. Analysers read it through its reader.
 */
#define FAKE_REGIONS 12
#define FAKE_ARENAS  4

struct fake_region {
	uint64_t at;
	size_t len;
	unsigned char *bytes;
};

/* The chunks of one arena, so that tests can damage them and know what a walk has to find. */
struct fake_arena {
	uint64_t at, heap; /* the arena; the heap that its chunks below are in */
	uint64_t tcache;   /* the struct, not its chunk; 0 before 2.26 */
	uint64_t used;	   /* a chunk in use, before `unsorted` */
	uint64_t unsorted, small, large[2], fast[2]; /* free chunks; fast 0 since 2.43 */
	uint64_t cached[3];			     /* blocks in the thread cache */
	uint64_t top, end;
	uint64_t system_mem, free_bytes, fast_bytes;
	unsigned chunks; /* in the heap, top not counted */
};

struct fake {
	int version;
	const struct glibc_state_row *state;
	const struct glibc_par_row *par;
	const struct glibc_tcache_row *tcache;
	unsigned info_size;
	struct fake_region region[FAKE_REGIONS];
	size_t regions;
	uint64_t data, data_len; /* libc's */
	uint64_t mp;
	struct fake_arena arena[FAKE_ARENAS]; /* in ring order, 0 is main */
	unsigned arenas;
	struct reader reader;
	unsigned refreshed;
	void (*on_refresh)(struct fake *m); /* NULL: none */
	uint64_t swapped;		    /* a page that is not to be had, 0: none */
};

#define FAKE_HEAP_MAX ((uint64_t)64 << 20)
#define FAKE_UNSORTED 0x110
#define FAKE_SMALL    0x90
#define FAKE_LARGE0   0x520
#define FAKE_LARGE1   0x510
#define FAKE_FAST     0x20

/* version is the minor number; threads is how many thread arenas there are, at most 3. */
void fake_build(struct fake *m, int version, unsigned threads);
void fake_free(struct fake *m);
/* Words of it; the test fails when there is no such place. */
uint64_t fake_get(const struct fake *m, uint64_t at);
void fake_put(struct fake *m, uint64_t at, uint64_t value);
/* glibc_find on it; hint 0 for an unknown version. Requires success. */
void fake_find(struct fake *m, int hint, struct glibc_view *v);
/* glibc_plan_read on it, with no page in memory. Requires success; the caller frees *out. */
void fake_plan(const struct glibc_view *v, const struct glibc_plan_opts *o,
	       const struct glibc_budget *b, struct glibc_plan *out);
#endif
