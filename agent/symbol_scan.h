// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOL_SCAN_H
#define HM_SYMBOL_SCAN_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/elf.h"
#include "names.h"

/*
 * The functions that many addresses lie in, found in one pass over each symbol table: the tables
 * are read piece by piece and nothing of them is kept, so what it costs is about 200 bytes for each
 * address, not the size of the table. Pure: bytes of files in, names out; any bytes.
 *
 * Which name: the innermost symbol with a size that covers the address; else the nearest label
 * without a size before it, in the same section, if no sized symbol has ended in between. Of
 * several names of one function the plainest: exported, few underscores in front, short. "@VERSION"
 * is cut off. Names of 16 KiB and more are none.
 */
struct symbol_hit {
	const char *name; /* NULL: none; in names */
	uint64_t start;	  /* of the function, as in the file */
};

struct symbol_scan;

/* at: n addresses as in the file, ascending, all different; they must stay. -ENOMEM. The caller
 * ends *out with symbol_scan_free. */
HM_MUST_CHECK int symbol_scan_new(const uint64_t *at, size_t n, struct symbol_scan **out);
/*
 * Reads the .symtab of e, or .dynsym. e must stay open until symbol_scan_end. -ENOENT if it has no
 * such table, -E2BIG behind the eighth table, the errno of reading. What was read before an error
 * counts.
 */
HM_MUST_CHECK int symbol_scan_table(struct symbol_scan *s, struct elf_file *e, bool dynamic);
/* Fills hit[i] for at[i]. The names go to names; where that is full they are missing. -ENOMEM. */
HM_MUST_CHECK int symbol_scan_end(struct symbol_scan *s, struct names *names,
				  struct symbol_hit *hit);
void symbol_scan_free(struct symbol_scan *s); /* s may be NULL */
#endif
