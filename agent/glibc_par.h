// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_PAR_H
#define HM_GLIBC_PAR_H
#include "glibc_find.h"

/*
 * Finds mp_ in len bytes of libc's data that begin at start, and fills v->par; par.at stays 0 if
 * nothing fits. Pure but for v's reader, which is asked for the main arena.
 */
void glibc_par_find(struct glibc_view *v, const unsigned char *bytes, size_t len, uint64_t start);
#endif
