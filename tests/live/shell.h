// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_SHELL_H
#define LIVE_SHELL_H
#include "program.h"

/*
 * Other programs, asked about the files in scripts/. Scripts are run by sh in the directory of the
 * sources, with $D, a directory of the test's own, $HEAPMEDIC, and $ASK, which asks automation.py.
 */
void shell_begin(void);
/* Removes $D with what is in it. */
void shell_end(void);
const char *shell_dir(void);
/* Skips the test where a program is missing, and says which package brings it. */
void shell_need(const char *program, const char *package);
void shell(struct run *r, const char *script);
/* Requires exit 0, and not a word on stderr. */
void shell_ok(const char *script);
/* Requires another exit, and this on stdout or stderr: what finds nothing wrong is no check. */
void shell_fails(const char *script, const char *said);
/* The lines that a script prints as the words of a command, behind what is there (*n); at most max
 * in all with the NULL at their end. They stay until the next call. */
void shell_words(const char *script, const char **words, size_t *n, size_t max);
#endif
