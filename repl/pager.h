// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PAGER_H
#define HM_PAGER_H
#include <stddef.h>
#include <stdio.h>

/*
 * Shows text on the terminal that out is. What has more rows than that goes through $PAGER (none
 * where it is empty or "cat"), else less, else a pager of our own: a screen for a blank, a line for
 * Enter, q or Ctrl-C for the end. Where out is no terminal, text is written as it is. Returns when
 * the person has seen enough; a Ctrl-C meanwhile was for the pager alone.
 */
void pager_show(FILE *out, const char *text, size_t len);

/*
 * Pure: how many of the terminal's rows text takes, each as wide as columns (0: without end). A
 * colour takes no room, a tab goes to the next eighth column, a character of several bytes takes
 * one column.
 */
size_t pager_rows(const char *text, size_t len, unsigned columns);
/* Pure: the length of the first rows of text that fill max rows, whole lines but for one that is
 * longer than that. */
size_t pager_part(const char *text, size_t len, unsigned columns, size_t max);
#endif
