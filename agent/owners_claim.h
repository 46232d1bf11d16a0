// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_OWNERS_CLAIM_H
#define HM_OWNERS_CLAIM_H
#include "../inject/pages.h"
#include "glibc_live.h"
#include "owners_read.h"

#define CHUNKS_MAX 4096U /* of Go's */

/* What is needed to tell whose a process's memory is, while that is found out. */
struct claimer {
	const struct process *p;
	struct memory *m;
	struct pages pages;
	bool counts;		/* pages can be counted */
	struct peek *peek;	/* what is written there, where the heap was not found */
	size_t chunks;		/* of Go's that may still be claimed */
	struct glibc_live heap; /* peek is NULL without one */
	bool jvm, go;
	enum owner rest; /* as in struct owner_facts */
	uint64_t rest_min;
};

/*
 * Each enters what one kind of owner is known to have, by what the target says of itself, into
 * m->facts. 0, -ENOMEM, -ESRCH.
 */
/* A range that cannot be claims nothing. */
HM_MUST_CHECK int claim_range(struct claimer *b, enum claim_class class, const struct claim *c);
/* The zeroed data of libraries, and the loader's own small mappings. */
HM_MUST_CHECK int claim_modules(struct claimer *b);
/* Stacks of threads, the main thread's block of thread-local storage; fills d. */
HM_MUST_CHECK int claim_stacks(struct claimer *b, struct diag *d);
/* Its own list of arenas, and what the maps show beside that: of two claims of one heap the one
 * that knows its number counts. */
HM_MUST_CHECK int claim_arenas(struct claimer *b);
/* Extents of a jemalloc that does not own malloc: after all but the next. */
HM_MUST_CHECK int claim_jemalloc(struct claimer *b);
/* Blocks with a mapping of their own are looked for in what is nobody else's: after all others. */
HM_MUST_CHECK int claim_mmapped(struct claimer *b);
/* Go's and Java's; sets b->go and b->jvm. */
HM_MUST_CHECK int claim_runtimes(struct claimer *b);
#endif
