// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAIRS_H
#define HM_PAIRS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * Numbers pairs of numbers from 0 on, in the order in which they come. What the pairs are may be
 * somebody's who wants it to be slow: where they lie in the table is seeded.
 */
struct pair {
	uint64_t a, b;
};
struct pairs {
	struct pair *v; /* by number */
	size_t n, cap;
	uint32_t *slot; /* number + 1; 0: empty */
	size_t slots;
};

/* The number of (a, b); *fresh says whether it is a new one. -ENOMEM; -EOVERFLOW beyond 2^31. */
HM_MUST_CHECK int pairs_add(struct pairs *p, uint64_t a, uint64_t b, uint32_t *number, bool *fresh);
void pairs_free(struct pairs *p);
/* A 64-bit value of one that nobody outside can foresee. */
uint64_t pairs_hash(uint64_t v);
#endif
