// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOL_NAMES_H
#define HM_SYMBOL_NAMES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/elf.h"
#include "../inject/elf_range.h"
#include "names.h"
#include "symbol_scan.h"

/* The strings of one symbol table. */
struct symbol_strings {
	struct elf_file *e;
	struct elf_range str;
	bool versions; /* "@VERSION" behind a name is no part of it */
};

/* A name by its place: which table, and where in its strings. */
static inline uint64_t symbol_name(size_t table, uint32_t offset)
{
	return (uint64_t)table << 32 | offset;
}

struct symbol_wanted {
	uint64_t name;
	uint32_t hit; /* that it is a name for */
};

/*
 * Reads these names, of which v is sorted on the way, and leaves in hit[].name the plainest of
 * those that are meant for it. What cannot be read is left out, and so is what names has no room
 * for. -ENOMEM.
 */
HM_MUST_CHECK int symbol_names_read(const struct symbol_strings *table, struct symbol_wanted *v,
				    size_t n, struct names *names, struct symbol_hit *hit);
#endif
