// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TLS_H
#define HM_TLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "maps.h"
#include "modules.h"

/*
 * glibc's thread_arena: the thread-local pointer to the arena that a thread allocates from, NULL
 * until its first malloc. It has no symbol; it is the word of libc's TLS block that points to an
 * arena in every thread that has one.
 */
struct tls_layout {
	uint32_t tid_offset;  /* of tid in struct pthread */
	uint64_t stack_list;  /* _dl_stack_user, see tcb_find_listed; 0 unknown */
	uint64_t stack_used;  /* _dl_stack_used: stacks that glibc has made; 0 unknown */
	uint64_t stack_cache; /* _dl_stack_cache: of threads that have ended; known with stack_used
			       */
	uint32_t link_offset; /* of the list entry in struct pthread */
	uint64_t block_off;   /* libc's TLS block begins at thread pointer - block_off; 0 unknown */
	size_t block_len;     /* bytes, a multiple of 8, at most TLS_BLOCK_MAX */
	uint64_t lo, hi;      /* libc's addresses */
	uint64_t rw_lo, rw_hi; /* the writable ones: main_arena lies there */
	bool in_program;       /* a static program: its own variables are in the block too */
};
#define TLS_BLOCK_MAX ((size_t)4096)

/* Reads what the target says about itself (_thread_db_*, link map, PT_TLS). Unknown things stay 0;
 * tid_offset always gets a value. mods may be NULL. */
void tls_layout_read(pid_t pid, const struct modules *mods, struct tls_layout *out);

/* Reads len bytes at addr of the target: 0 or a negative errno. */
typedef int (*tls_read_fn)(void *ctx, uint64_t addr, void *buf, size_t len);

/*
 * Pure but for read: true if v points to a malloc_state: a thread arena, that is the first thing
 * in a heap (heap_info, aligned to the heap's size, whose ar_ptr points back), or, for v in
 * [rw_lo, rw_hi), main_arena, whose ring of arenas (next) leads to itself or to such a one.
 */
bool tls_is_arena(uint64_t v, uint64_t rw_lo, uint64_t rw_hi, tls_read_fn read, void *ctx);

/*
 * Byte offset of thread_arena from the thread pointer, downwards (address = tp - *out), by a vote
 * over the threads. Pure but for read. -ENOENT if no word qualifies or two do equally.
 */
HM_MUST_CHECK int tls_arena_offset(const struct tls_layout *l, const uint64_t *tps, size_t n,
				   tls_read_fn read, void *ctx, uint64_t *out);
#endif
