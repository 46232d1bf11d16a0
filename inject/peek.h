// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PEEK_H
#define HM_PEEK_H
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "maps.h"
#include "reader.h"
#include "target.h"

/*
 * A look into a process's writable private memory that leaves no trace: only pages that are present
 * are read (a read of any other makes the kernel put a page there: RSS grows, or swap is read). A
 * page that was never touched reads as zeros, as the process itself would find it; so does an
 * absent page of a file's private mapping. A swapped one is -ENODATA.
 *
 * What was read is kept, a page at a time, until reader.refresh: walking a list of small blocks
 * would else be a system call for each of them.
 */
struct peek;

/*
 * maps are copied. -ESRCH where the memory is gone, with the process or because it executes another
 * program right now: d is not filled then; -EPERM with d.
 */
HM_MUST_CHECK int peek_open(const struct target *t, const struct maps *maps, struct peek **out,
			    struct diag *d);
void peek_close(struct peek *p); /* may be NULL */
/* Valid as long as p. After a refresh the maps are read again where the known ones do not do. */
const struct reader *peek_reader(const struct peek *p);
#endif
