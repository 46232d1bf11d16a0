// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_EH_TABLE_H
#define HM_EH_TABLE_H
#include <stdint.h>

#include "modules.h"
#include "pagecache.h"

/*
 * Where a module's sorted table of unwind entries is: pairs of 32-bit offsets from segbase
 * (function, entry in .eh_frame), as .eh_frame_hdr has them (LSB core, 10.6.2).
 */
struct eh_table {
	int state;	  /* 0 not looked at yet, 1 usable, -1 there is none */
	uint64_t segbase; /* in the target */
	uint64_t entries; /* in the target, or an overlay of the page cache */
	uint64_t count;
	void *own; /* the overlay's memory */
};

/*
 * Fills t once. A static program often has no .eh_frame_hdr: then a table is made from .eh_frame of
 * its file, and given to pages under an address outside of the target. -ENOENT if the module has no
 * unwind information that can be searched.
 */
HM_MUST_CHECK int eh_table_need(struct eh_table *t, const struct module *mod,
				struct pagecache *pages);
void eh_table_free(struct eh_table *t);
#endif
