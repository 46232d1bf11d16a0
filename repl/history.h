// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_HISTORY_H
#define HM_HISTORY_H
#include <stdbool.h>
#include <stddef.h>

/*
 * The shell's memory: $HEAPMEDIC_HISTORY (empty: none), else heapmedic/history below
 * $XDG_STATE_HOME or ~/.local/state. The file has mode 0600, its directory 0700; both are made only
 * below a home that is there and belongs to who runs us. Without a file the lines of this session
 * are remembered all the same.
 */
struct history;
struct history *history_open(void); /* NULL: no memory; lines that were saved are in readline */
/* Remembers line unless history_keeps says no. */
void history_remember(struct history *h, const char *line);
void history_close(struct history *h); /* NULL is allowed */

/* Pure: where the file is, from these values of the environment (NULL: unset). False: keep none. */
bool history_path(const char *own, const char *state_home, const char *home, char *buf,
		  size_t size);
/* Pure: not an empty line, not one that begins with a blank, not the one before it again. */
bool history_keeps(const char *line, const char *previous);
#endif
