// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ELF_PRIVATE_H
#define HM_ELF_PRIVATE_H
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf.h"
#include "elf_range.h"
#include "elf_symtab.h"

/* Shared by elf.c (the file and its contents) and elf_symbols.c (what it defines). */
#define ELF_BUILD_ID_MAX 64
#define ELF_SECTIONS_MAX 65536
/* Of one section; a file with a hole in it has any size at no cost, and libelf reads it all. */
#define ELF_SECTION_MAX ((uint64_t)1 << 30)

struct elf_file {
	int fd;
	Elf *elf;
	uint64_t size; /* of the file */
	/* bytes of sections that may still be read: twice the file, since some are asked for twice
	 * but sound ones do not overlap */
	uint64_t section_budget;
	struct elf_segment *seg;
	size_t n_seg;
	unsigned char build_id[ELF_BUILD_ID_MAX];
	size_t build_id_len;
	struct symtab dyn, sym; /* their bytes belong to elf, or to owned */
	bool dyn_read, sym_read, has_symtab;
	void *owned[4];		 /* tables read through PT_DYNAMIC */
	struct elf_table dyn_at; /* where those lie; n is 0 when .dynsym has a section */
	struct elf_file *debug;	 /* separate debug file */
};

/* The PT_LOAD that holds vaddr, with the distance from its start; NULL if none. */
const struct elf_segment *elf_segment_at(const struct elf_file *e, uint64_t vaddr, uint64_t *in);
/* All of it or -EBADMSG (the file ends before), or the errno of pread(2). */
HM_MUST_CHECK int elf_pread(int fd, void *buf, size_t len, uint64_t off);
/* Calls fn for each entry of PT_DYNAMIC up to DT_NULL; -ENOENT without one, -ENOMEM. */
HM_MUST_CHECK int elf_dynamic_each(const struct elf_file *e,
				   int (*fn)(const Elf64_Dyn *d, void *arg), void *arg);
/* Reads .dynsym, its strings and hash tables. -ENOMEM. */
HM_MUST_CHECK int elf_need_dyn(struct elf_file *e);
/* A section's bytes; libelf reads them into a buffer of its own that lives as long as e->elf. NULL
 * if it has none in the file. */
const void *elf_section_bytes(struct elf_file *e, Elf_Scn *scn, size_t *len);
#endif
