// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define NAME_LEN 48

int fuzz_library(const char *const *names, size_t n)
{
	const size_t sym_at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
	const size_t str_at = sym_at + (n + 1) * sizeof(Elf64_Sym);
	const size_t size = str_at + 1 + n * NAME_LEN;
	char *f = calloc(1, size);
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3 };
	Elf64_Shdr sh[3] = {
		{ 0 },
		{ .sh_type = SHT_DYNSYM,
		  .sh_offset = sym_at,
		  .sh_size = (n + 1) * sizeof(Elf64_Sym),
		  .sh_entsize = sizeof(Elf64_Sym),
		  .sh_link = 2 },
		{ .sh_type = SHT_STRTAB, .sh_offset = str_at, .sh_size = size - str_at }
	};
	int fd;

	FUZZ_CHECK(f != NULL);
	memcpy(f, &eh, sizeof(eh));
	memcpy(f + sizeof(eh), sh, sizeof(sh));
	for (size_t i = 0; i < n; i++) {
		Elf64_Sym sym = { .st_name = (Elf64_Word)(1 + i * NAME_LEN),
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 1,
				  .st_value = FUZZ_SYMBOL(i) };

		FUZZ_CHECK(strlen(names[i]) < NAME_LEN);
		memcpy(f + sym_at + (i + 1) * sizeof(sym), &sym, sizeof(sym));
		strcpy(f + str_at + sym.st_name, names[i]);
	}
	fd = fuzz_file(f, size);
	free(f);
	return fd;
}
