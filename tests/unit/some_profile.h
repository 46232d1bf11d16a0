// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef UNIT_SOME_PROFILE_H
#define UNIT_SOME_PROFILE_H
#include "../../agent/calls.h"

/*
 * A small profile in which every number is known, and a program for it: a function each 0x100 bytes
 * from 0x1000 on. Each block was sampled, so nothing is scaled.
 *
 *   stack (innermost first)                 bytes  objects
 *   malloc < a < main                         100        1
 *   malloc < b < a < main                     200        2
 *   malloc < operator new < b < b < main      400        4
 *   (no name) < main                           50        1
 *   malloc                                      8        1
 */
#define SOME_BYTES 758
extern const char some_text[];
/* Parses text (NULL: some_text) and resolves it; both are to be freed. */
struct calls *some_calls(const char *text, enum call_names names, struct profile **p);
void some_free(struct calls *c, struct profile *p);
#endif
