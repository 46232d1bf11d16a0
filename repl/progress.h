// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PROGRESS_H
#define HM_PROGRESS_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/phase.h"

/*
 * A line on stderr for a command that takes more than a second, where that is a terminal: what is
 * done now, how far it is, and since when. It is erased before anything else is written there, by
 * progress_end or progress_hide. A thread of its own shows it, which takes no signal.
 */
void progress_begin(const char *command); /* a literal */
void progress_end(void);		  /* also where none was begun */
/* Erases the line; it comes again. */
void progress_hide(void);

/* Pure: "trim: asking jemalloc, 12 of 64, 3 s", cut to columns - 1 (0: not cut). Returns its
 * length, less than size. */
size_t progress_text(const char *command, const struct phase *p, uint64_t seconds, unsigned columns,
		     char *buf, size_t size);
#endif
