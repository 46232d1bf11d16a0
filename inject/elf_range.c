// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf_range.h"

#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "elf_private.h"

/* Of the section names: libelf reads them all, and that section's size is the file's claim. */
#define SECTION_NAMES_MAX ((uint64_t)16 << 20)

bool elf_file_has_sections(const struct elf_file *e)
{
	size_t n;

	return !elf_getshdrnum(e->elf, &n) && n > 0;
}

int elf_file_fd(const struct elf_file *e)
{
	return e->fd;
}

uint64_t elf_file_size(const struct elf_file *e)
{
	return e->size;
}

int elf_file_pread(const struct elf_file *e, uint64_t off, void *buf, size_t len)
{
	return elf_pread(e->fd, buf, len, off);
}

static bool inside(const struct elf_file *e, const Elf64_Shdr *sh)
{
	return sh->sh_type != SHT_NOBITS && sh->sh_size && sh->sh_size <= e->size &&
	       sh->sh_offset <= e->size - sh->sh_size;
}

/* The section that has the names of all; 0 if it is none to be read. */
static size_t names_section(struct elf_file *e)
{
	const Elf64_Shdr *sh;
	Elf_Scn *scn;
	size_t at;

	if (elf_getshdrstrndx(e->elf, &at))
		return 0;
	scn = elf_getscn(e->elf, at);
	sh = scn ? elf64_getshdr(scn) : NULL;
	return sh && inside(e, sh) && sh->sh_size <= SECTION_NAMES_MAX ? at : 0;
}

int elf_file_range(struct elf_file *e, const char *name, struct elf_range *out, bool *compressed)
{
	Elf_Scn *scn = NULL;
	size_t strndx = names_section(e);
	unsigned n = 0;

	if (!strndx)
		return -ENOENT;
	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *have;

		if (!sh || !inside(e, sh))
			continue;
		have = elf_strptr(e->elf, strndx, sh->sh_name);
		if (!have || strcmp(have, name))
			continue;
		*out = (struct elf_range){ sh->sh_offset, sh->sh_size };
		if (compressed)
			*compressed = (sh->sh_flags & SHF_COMPRESSED) != 0;
		return 0;
	}
	return -ENOENT;
}

static int table_of(struct elf_file *e, const Elf64_Shdr *sh, struct elf_table *out)
{
	Elf_Scn *scn = elf_getscn(e->elf, sh->sh_link);
	const Elf64_Shdr *str = scn ? elf64_getshdr(scn) : NULL;

	if (!str || str->sh_type != SHT_STRTAB || !inside(e, sh) || !inside(e, str))
		return -ENOENT;
	out->sym.offset = sh->sh_offset;
	out->sym.size = sh->sh_size - sh->sh_size % sizeof(Elf64_Sym);
	out->str = (struct elf_range){ str->sh_offset, str->sh_size };
	return 0;
}

int elf_file_table(struct elf_file *e, bool dynamic, struct elf_table *out)
{
	uint32_t type = dynamic ? SHT_DYNSYM : SHT_SYMTAB;
	Elf_Scn *scn = NULL;
	unsigned n = 0;
	int err;

	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (sh && sh->sh_type == type && !table_of(e, sh, out))
			return 0;
	}
	if (!dynamic)
		return -ENOENT;
	err = elf_need_dyn(e);
	if (err)
		return err;
	if (!e->dyn_at.sym.size)
		return -ENOENT;
	*out = e->dyn_at;
	return 0;
}

int elf_file_code_at(const struct elf_file *e, uint64_t off, uint64_t *vaddr)
{
	size_t i;

	for (i = 0; i < e->n_seg; i++) {
		const struct elf_segment *s = &e->seg[i];

		if (s->type != PT_LOAD || !(s->flags & PF_X) || off < s->offset ||
		    off - s->offset >= s->filesz)
			continue;
		*vaddr = s->vaddr + (off - s->offset);
		return 0;
	}
	return -EFAULT;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

size_t elf_file_code_sections(struct elf_file *e, struct elf_range *out, size_t max)
{
	Elf_Scn *scn = NULL;
	size_t have = 0;
	unsigned n = 0;

	while (have < max && n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (sh &&
		    (sh->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR) &&
		    sh->sh_size && sh->sh_addr <= UINT64_MAX - sh->sh_size)
			out[have++] = (struct elf_range){ sh->sh_addr, sh->sh_size };
	}
	if (have)
		qsort(out, have, sizeof(*out), by_start);
	return have;
}
