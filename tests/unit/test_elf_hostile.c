// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * ELF files that are small, or one large hole, and ask for much: what is spent on a file is bounded
 * by its size and by constants, not by its numbers. Each of these took minutes or gigabytes.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../inject/eh_table.h"
#include "../../inject/elf.h"
#include "../../inject/elf_symtab.h"
#include "../../inject/modules.h"
#include "../../inject/pagecache.h"

#define MIB ((size_t)1 << 20)

static long peak_mib(void)
{
	struct rusage ru;

	cr_assert_eq(getrusage(RUSAGE_SELF, &ru), 0);
	return ru.ru_maxrss / 1024;
}

static void put(int fd, const void *p, size_t len, size_t at)
{
	cr_assert_eq(pwrite(fd, p, len, (off_t)at), (ssize_t)len);
}

/* A memory file of that size with a header; program headers follow it, sections are at sh. */
static int new_file(size_t size, unsigned phnum, unsigned shnum, size_t sh)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = phnum ? sizeof(eh) : 0,
			  .e_shoff = sh,
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = (uint16_t)phnum,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = (uint16_t)shnum };
	int fd = memfd_create("elf", MFD_CLOEXEC);

	cr_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	put(fd, &eh, sizeof(eh), 0);
	return fd;
}

static void put_ph(int fd, unsigned i, uint32_t type, uint32_t flags, size_t at, size_t len)
{
	Elf64_Phdr ph = { .p_type = type,
			  .p_flags = flags,
			  .p_offset = at,
			  .p_vaddr = at,
			  .p_filesz = len,
			  .p_memsz = len };

	put(fd, &ph, sizeof(ph), sizeof(Elf64_Ehdr) + i * sizeof(ph));
}

static struct elf_file *open_file(int fd)
{
	struct elf_file *e;

	cr_assert_eq(elf_file_open(fd, &e), 0);
	return e;
}

Test(elf_hostile, sections_of_the_same_bytes, .timeout = 120)
{
	enum { SECTIONS = 4000, LEN = 60 * 1024 };
	Elf64_Shdr sh = { .sh_type = SHT_NOTE, .sh_size = LEN };
	int fd = new_file(MIB, 0, SECTIONS, 512 * 1024);
	long before = peak_mib();

	for (size_t i = 1; i < SECTIONS; i++)
		put(fd, &sh, sizeof(sh), 512 * 1024 + i * sizeof(sh));
	elf_file_close(open_file(fd));
	cr_expect_lt(peak_mib() - before, 64, "%ld MiB", peak_mib() - before);
}

Test(elf_hostile, number_of_sections_in_the_first_section, .timeout = 120)
{
	Elf64_Shdr sh = { .sh_size = MIB };
	int fd = new_file(4096 * MIB, 0, 0, 4096);
	struct elf_file *e;
	long before = peak_mib();

	put(fd, &sh, sizeof(sh), 4096);
	cr_expect_eq(elf_file_open(fd, &e), -EBADMSG);
	cr_expect_lt(peak_mib() - before, 64, "%ld MiB", peak_mib() - before);
}

/* DT_GNU_HASH whose symbols begin at the last number that there is. */
static int dynamic_file(const Elf64_Dyn *d, size_t n)
{
	const uint32_t gnu[] = { 1, UINT32_MAX, 1, 0, 0, 0, 0 };
	int fd = new_file(256 * 1024 * MIB, 2, 0, 0);

	put_ph(fd, 0, PT_LOAD, PF_R, 0, 256 * 1024 * MIB);
	put_ph(fd, 1, PT_DYNAMIC, PF_R, 4096, n * sizeof(*d));
	put(fd, d, n * sizeof(*d), 4096);
	put(fd, gnu, sizeof(gnu), 98304);
	return fd;
}

Test(elf_hostile, symbols_in_a_hole, .timeout = 120)
{
	const Elf64_Dyn d[] = { { DT_GNU_HASH, { 98304 } },
				{ DT_SYMTAB, { 65536 } },
				{ DT_STRTAB, { 16384 } },
				{ DT_STRSZ, { 4096 } },
				{ DT_NULL, { 0 } } };
	struct elf_file *e = open_file(dynamic_file(d, 5));
	long before = peak_mib();
	struct elf_sym s;

	cr_expect_eq(elf_file_lookup(e, "malloc", &s), -ENOENT);
	cr_expect_lt(peak_mib() - before, 512, "%ld MiB", peak_mib() - before);
	elf_file_close(e);
}

static int count(const char *s, void *arg)
{
	cr_expect_eq(strlen(s), 5);
	++*(unsigned *)arg;
	return 0;
}

/* The table of strings is as large as the file; of 4000 names one is longer than any name. */
Test(elf_hostile, strings_in_a_hole, .timeout = 120)
{
	enum { N = 4000 };
	Elf64_Dyn d[N] = { { DT_STRTAB, { 131072 } }, { DT_STRSZ, { 128 * 1024 * MIB } } };
	char name[5000];
	unsigned n = 0;
	struct elf_file *e;
	int fd;

	for (size_t i = 2; i < N - 1; i++)
		d[i] = (Elf64_Dyn){ DT_NEEDED, { i == 2 ? 8192 : 16 } };
	memset(name, 'x', sizeof(name));
	fd = dynamic_file(d, N);
	put(fd, "libx.", 5, 131072 + 16);
	put(fd, name, sizeof(name), 131072 + 8192);
	e = open_file(fd);
	cr_expect_eq(elf_file_dynstr(e, DT_NEEDED, count, &n), 0);
	cr_expect_eq(n, N - 4);
	elf_file_close(e);
}

Test(elf_hostile, segments_of_the_same_bytes, .timeout = 120)
{
	enum { SEGMENTS = 4000 };
	int fd = new_file(128 * MIB, SEGMENTS, 0, 0);
	struct module mod = { 0 };
	char version[16];

	for (unsigned i = 0; i < SEGMENTS; i++)
		put_ph(fd, i, PT_LOAD, PF_R, 0, 128 * MIB);
	mod.elf = open_file(fd);
	cr_expect_eq(modules_glibc_version(&mod, version, sizeof(version)), -ENOENT);
	elf_file_close(mod.elf);
}

/* Many entries, and a CIE with an augmentation string that each of them is asked to look through.
 */
Test(elf_hostile, long_augmentation, .timeout = 120)
{
	enum { CIE = 2 * 1024 * 1024, AT = 4096, N = 65536, LEN = CIE + N * 16 };
	static const char names[] = "\0.eh_frame\0.shstrtab";
	Elf64_Shdr sh[3] = { { 0 },
			     { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC },
			     { .sh_name = 11, .sh_type = SHT_STRTAB } };
	int fd = new_file(8 * MIB, 1, 3, 7 * MIB);
	unsigned char *p = calloc(1, LEN);
	struct module mod = { .start = 0x10000, .end = 0x10000 + 8 * MIB, .bias = 0x10000 };
	struct eh_table t = { 0 };
	struct pagecache *pages;
	uint16_t strndx = 2;
	uint32_t v;

	cr_assert(p);
	v = CIE - 4;
	memcpy(p, &v, 4);
	p[8] = 1;
	memset(p + 9, 'S', CIE - 32);
	p[9] = 'z';
	for (uint32_t i = 0; i < N; i++) {
		unsigned char *e = p + CIE + 16 * i;

		v = 12;
		memcpy(e, &v, 4);
		v = CIE + 16 * i + 4;
		memcpy(e + 4, &v, 4);
	}
	put_ph(fd, 0, PT_LOAD, PF_R, 0, 8 * MIB);
	put(fd, p, LEN, AT);
	put(fd, names, sizeof(names), 6 * MIB);
	sh[1].sh_addr = sh[1].sh_offset = AT;
	sh[1].sh_size = LEN;
	sh[2].sh_offset = 6 * MIB;
	sh[2].sh_size = sizeof(names);
	put(fd, sh, sizeof(sh), 7 * MIB);
	put(fd, &strndx, 2, offsetof(Elf64_Ehdr, e_shstrndx));
	mod.elf = open_file(fd);
	cr_assert_eq(pagecache_new(getpid(), &pages), 0);
	cr_expect_eq(eh_table_need(&t, &mod, pages), -ENOENT);
	eh_table_free(&t);
	pagecache_free(pages);
	elf_file_close(mod.elf);
	free(p);
}

static int no_empty_name(const char *name, const struct elf_sym *s, void *arg)
{
	(void)s;
	cr_expect(name[0]);
	++*(unsigned *)arg;
	return 0;
}

Test(elf_hostile, names_without_a_character)
{
	const Elf64_Sym sym[] = { { .st_name = 3, .st_shndx = 1, .st_value = 1 },
				  { .st_name = 1, .st_shndx = 1, .st_value = 1 },
				  { .st_name = 9, .st_shndx = 1, .st_value = 1 } };
	struct symtab t = { .sym = sym, .n = 3 };
	unsigned n = 0;

	symtab_set_strings(&t, "\0ab\0", 4);
	t.sym = (const Elf64_Sym[]){ sym[0], sym[1], sym[2] };
	cr_expect_eq(symtab_each(&t, no_empty_name, &n), 0);
	cr_expect_eq(n, 1);
}
