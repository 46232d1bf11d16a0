// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MANUAL_H
#define HM_MANUAL_H
#include <stdio.h>

/* What is made of the tables of commands and options when the program is built, for `make install`.
 */

/* heapmedic(1) */
void manual_write(FILE *out, const char *date);
/* heapmedic-json(5) */
void manual_json(FILE *out, const char *date);
/* The keys of --json, one a line with tabs between command, path and type, for tests. */
void schema_table(FILE *out);
/* Completion of the command line in bash and in zsh. */
void completion_bash(FILE *out);
void completion_zsh(FILE *out);
#endif
