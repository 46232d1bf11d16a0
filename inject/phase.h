// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PHASE_H
#define HM_PHASE_H
#include <stdint.h>

/*
 * What is being done, for somebody who waits: set by whoever does it, and read by another thread of
 * ours, which shows it. No part of any result, and the only state here that belongs to nobody.
 */
struct phase {
	const char *what;     /* NULL: nothing in particular */
	uint64_t done, total; /* steps; total 0: not known */
};

/* what must stay valid: a literal. One without a total is left out inside one that is counted,
 * which tells more, and lasts until phase_end. */
void phase_begin(const char *what, uint64_t total);
void phase_step(uint64_t done);
void phase_end(void);
/* What was set last; the members may be of two phases, where one has just begun. */
struct phase phase_read(void);
#endif
