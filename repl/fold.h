// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_FOLD_H
#define HM_FOLD_H
#include <stddef.h>
#include <stdio.h>

/*
 * Pure: writes text to out with its long lines broken between words, where a terminal of so many
 * columns (0: without end) would break them anywhere. What goes on stands below what it belongs to:
 * behind the label of a line that has one, else two columns in. A row of a table, which more than
 * one gap of blanks shows, stays whole, and so does a word that is too long. A colour takes no
 * room.
 */
void fold_text(FILE *out, const char *text, size_t len, unsigned columns);
/* The same with as many columns as the terminal to has, and to it; unchanged where it is none. */
void fold_to(FILE *to, const char *text, size_t len);
#endif
