// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_DEBUGDATA_H
#define HM_DEBUGDATA_H
#include "../inject/elf.h"

/*
 * The ELF file that e carries in its section .gnu_debugdata, compressed with xz: a .symtab of the
 * functions that are not exported (gdb's manual, "Debugging information in a special section"). It
 * is unpacked to a memory file of at most 64 MiB. NULL: none, damaged, larger, or no memory. The
 * caller closes it.
 */
struct elf_file *debugdata_open(struct elf_file *e);
#endif
