// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ELF_RANGE_H
#define HM_ELF_RANGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "elf.h"

/*
 * Where things lie in an ELF file, for a reader that takes them piece by piece: the symbols of a
 * large program are more than the memory that looking up a few of them is worth.
 */
struct elf_range {
	uint64_t offset, size; /* of the file; lies inside it */
};

struct elf_table {
	struct elf_range sym; /* whole Elf64_Sym */
	struct elf_range str;
};

bool elf_file_has_sections(const struct elf_file *e);
int elf_file_fd(const struct elf_file *e);	  /* stays e's */
uint64_t elf_file_size(const struct elf_file *e); /* bytes, when it was opened */
/* len bytes at offset off of the file. -EBADMSG if the file ends before, or the errno of pread(2).
 */
HM_MUST_CHECK int elf_file_pread(const struct elf_file *e, uint64_t off, void *buf, size_t len);
/* The first section of that name that has contents, allocated or not. *compressed (or NULL): by
 * SHF_COMPRESSED. -ENOENT. */
HM_MUST_CHECK int elf_file_range(struct elf_file *e, const char *name, struct elf_range *out,
				 bool *compressed);
/*
 * .dynsym, or .symtab. -ENOENT if there is none. In a file without section headers .dynsym is the
 * one of PT_DYNAMIC, as far as its hash table says how long it is. -ENOMEM.
 */
HM_MUST_CHECK int elf_file_table(struct elf_file *e, bool dynamic, struct elf_table *out);
/*
 * The address that the byte at offset off of the file is loaded to, of executable segments only
 * (two segments may share a page of the file, and that page is mapped twice). -EFAULT if no such
 * segment holds it.
 */
HM_MUST_CHECK int elf_file_code_at(const struct elf_file *e, uint64_t off, uint64_t *vaddr);
/*
 * The executable sections by address, at most max (beyond: left out). Returns how many were
 * written; addresses in offset, not places in the file.
 */
size_t elf_file_code_sections(struct elf_file *e, struct elf_range *out, size_t max);
#endif
