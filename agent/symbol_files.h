// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SYMBOL_FILES_H
#define HM_SYMBOL_FILES_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"
#include "../inject/elf.h"
#include "names.h"
#include "symbol_scan.h"
#include "symbols.h"

/* A mapped file, and the files that know more about it; NULL where there is none. */
struct symbol_files {
	struct elf_file *main; /* the caller's */
	struct elf_file *debug;
	struct elf_file *mini;
	struct elf_file *alt; /* that the debug information is shared with */
};

/*
 * Looks for the separate debug file of main, which is mapped as path: by its build id below
 * /usr/lib/debug/.build-id, then by the name in .gnu_debuglink beside path, in .debug beside it and
 * below /usr/lib/debug (gdb's manual, "Separate Debug Files"). It is the right one if it has the
 * same build id, or where main has none the checksum that the link names. Else the symbols that
 * main carries compressed (.gnu_debugdata). The caller ends f with symbol_files_close.
 */
void symbol_files_find(struct elf_file *main, const char *path, symbol_open_fn open, void *arg,
		       struct symbol_files *f);
void symbol_files_close(struct symbol_files *f);
/*
 * Names for n addresses (see symbol_scan_new), from the tables of all of them. *state becomes
 * SYMBOLS_NONE, SYMBOLS_EXPORTED or SYMBOLS_NAMES, by what was there; SYMBOLS_BAD if it could not
 * be read. -ENOMEM.
 */
HM_MUST_CHECK int symbol_files_names(const struct symbol_files *f, const uint64_t *at, size_t n,
				     struct names *names, struct symbol_hit *hit,
				     enum symbols_state *state);
/* The one of them that has debug information; NULL: none. */
struct elf_file *symbol_files_lines(const struct symbol_files *f);
#endif
