// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MIMALLOC_H
#define HM_MIMALLOC_H
#include "allocator.h"

extern const struct allocator_ops mimalloc_ops;

/* What it counts of the process; bytes. What is in use is not among it. */
struct mimalloc_figures {
	bool known; /* 1.7 and later */
	uint64_t committed, committed_peak;
};
HM_MUST_CHECK int mimalloc_figures_read(struct process *p, const struct allocator *a,
					struct mimalloc_figures *out, struct diag *d);
/*
 * Pure: the number that the code of mi_version returns, where it does nothing else: 209 for 2.0.9.
 * 0 where it is other code.
 */
unsigned mimalloc_version_decode(const unsigned char *code, size_t len);
/* Pure: "2.0.9" of 209; "" for what is no such number. */
void mimalloc_version_format(unsigned number, char *buf, size_t size);
#endif
