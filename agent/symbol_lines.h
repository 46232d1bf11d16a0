// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOL_LINES_H
#define HM_SYMBOL_LINES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/elf.h"
#include "names.h"
#include "symbols.h"

/* Frames of many addresses, from debug information. */
struct symbol_lines {
	struct symbol_line {
		uint32_t first;	 /* of its frames, innermost first */
		uint16_t frames; /* 0: debug information has nothing for it */
		bool unscoped; /* the name of the last one is worth less than that of its symbol */
	} * at;		       /* one for each address */
	struct symbol_frame *frame;
	size_t frames, cap;
};

bool symbol_lines_there(struct elf_file *e); /* e has debug information */
/*
 * Reads the debug information of e for n addresses (see dwarf_lines.h), in a process of its own.
 * alt is the file that e's is shared with, or NULL. Without places there are no files and lines.
 * Names go to names. -EBADMSG if the debug information is damaged or more than that process may
 * cope with: what came before counts. -ENOMEM. The caller ends out with symbol_lines_free, also
 * after an error.
 */
HM_MUST_CHECK int symbol_lines_find(const struct elf_file *e, const struct elf_file *alt,
				    const uint64_t *at, size_t n, bool places, struct names *names,
				    struct symbol_lines *out);
void symbol_lines_free(struct symbol_lines *l);
#endif
