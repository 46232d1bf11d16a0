// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CFA_H
#define HM_CFA_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Pure: may libunwind be given this call frame program (DWARF 5, 6.4.2)? It runs what the target's
 * tables say in our own process, and its evaluator of expressions divides with the processor's
 * instruction: -2^63 / -1 is a SIGFPE. Only what compilers and libcs emit passes: no division, no
 * jumps (which could lead to one outside of what was looked at), no unknown operations.
 */
bool cfa_program_ok(const unsigned char *p, size_t len);
#endif
