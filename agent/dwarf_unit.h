// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DWARF_UNIT_H
#define HM_DWARF_UNIT_H
#include <elfutils/libdw.h>

#include "dwarf_lines.h"

struct dwarf_at {
	uint64_t at;
	uint32_t i;    /* for take */
	uint32_t node; /* private */
};

/*
 * Lines and functions at v, n addresses of one compilation unit, ascending. *lines grows by the
 * number of lines that libdw keeps decoded now; NULL: no files and lines are wanted, which spares
 * it decoding the line table. What is damaged is left out. -ENOMEM, or what take has returned.
 */
HM_MUST_CHECK int dwarf_unit_find(Dwarf_Die *unit, struct dwarf_at *v, size_t n, size_t *lines,
				  dwarf_take_fn take, void *arg);
#endif
