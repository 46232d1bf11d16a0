// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CODEMAP_H
#define HM_CODEMAP_H
#include <stdbool.h>
#include <stdint.h>

#include "diag.h"

struct modules;

/* What code must not be on a borrowed thread's stack. */
enum code_kind {
	CODE_ALLOC =
		1, /* the allocator: every object that defines malloc or is a known allocator */
	CODE_LOADER = 2, /* ld.so, dlopen and kin */
	CODE_THREADS =
		4, /* pthread_create, thread exit, fork, setuid and kin: glibc's stack-cache lock */
	CODE_STDIO = 8,	   /* holds FILE locks */
	CODE_SIGNAL = 16,  /* the signal trampoline (restorer) */
	CODE_LIBC = 32,	   /* anywhere in libc (also set together with the above) */
	CODE_WRAPPER = 64, /* a system-call wrapper of libc (also set together with CODE_LIBC) */
};
struct code_map;
/*
 * Classifies code addresses. An internal function without a symbol belongs to the kinds of the
 * exported functions around it: the range of a kind reaches from the end of the symbol before the
 * group to the start of the one after, so that static functions of the same object are never
 * missed.
 */
HM_MUST_CHECK int code_map_build(const struct modules *m, struct code_map **out);
void code_map_free(struct code_map *c);
/* enum code_kind bits, 0 elsewhere. CODE_WRAPPER is set in the functions that wait by their name,
 * and right behind any `syscall` instruction of libc. */
unsigned code_map_kind(const struct code_map *c, uint64_t addr);
/*
 * The same for a word found on a stack: 0 also where no call instruction ends at addr, so that it
 * cannot be a return address (a pointer to a function, a number). What pushes return addresses
 * without a call is a signal only, and its trampoline keeps its CODE_SIGNAL.
 */
unsigned code_map_return(const struct code_map *c, uint64_t addr);
/* The span of all code that has a kind: a fast first filter for scans. */
void code_map_span(const struct code_map *c, uint64_t *lo, uint64_t *hi);
/*
 * Addresses in [lo, hi) lose the kinds that forbid borrowing (not CODE_LIBC, CODE_WRAPPER,
 * CODE_SIGNAL). code_map_build does so by itself for the places at the bottom of every thread's
 * stack (see codemap_bottom in codemap_build.c); this adds what a caller has seen there. -ENOSPC
 * after CODE_EXEMPT_MAX ranges.
 */
#define CODE_EXEMPT_MAX 64
HM_MUST_CHECK int code_map_exempt(struct code_map *c, uint64_t lo, uint64_t hi);
#endif
