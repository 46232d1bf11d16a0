// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../agent/symbol_scan.h"
#include "../../inject/elf.h"

/* An ELF file of one executable section and a symbol table, made here. */
#define TEXT	 0x1000ULL
#define TEXT_END 0x40000000ULL
#define TEXT_TWO 0x20000000ULL /* where the second section begins */

struct made {
	int fd;
	size_t syms, sym_cap, str_len, str_cap;
	Elf64_Sym *sym;
	char *str;
};

static void add(struct made *m, const char *name, uint64_t at, uint64_t size, unsigned info,
		unsigned shndx)
{
	size_t len = strlen(name) + 1;

	if (m->syms + 2 > m->sym_cap) {
		m->sym_cap = m->sym_cap ? 2 * m->sym_cap : 1024;
		m->sym = realloc(m->sym, m->sym_cap * sizeof(*m->sym));
	}
	if (m->str_len + len + 1 > m->str_cap) {
		m->str_cap = 2 * m->str_cap + len + 65536;
		m->str = realloc(m->str, m->str_cap);
	}
	if (!m->syms) {
		m->sym[m->syms++] = (Elf64_Sym){ 0 };
		m->str[m->str_len++] = 0;
	}
	m->sym[m->syms++] = (Elf64_Sym){ .st_name = (Elf64_Word)m->str_len,
					 .st_value = at,
					 .st_size = size,
					 .st_info = (unsigned char)info,
					 .st_shndx = (Elf64_Section)shndx };
	memcpy(m->str + m->str_len, name, len);
	m->str_len += len;
}

#define FUNC  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define LOCAL ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define WEAK  ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define LABEL ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)
#define DATA  ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)

static void put(int fd, const void *p, size_t len, uint64_t at)
{
	cr_assert_eq(pwrite(fd, p, len, (off_t)at), (ssize_t)len);
}

static struct elf_file *finish(struct made *m)
{
	uint64_t sym_len = m->syms * sizeof(*m->sym), at = 4096 + sym_len + m->str_len;
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 5,
			  .e_shoff = (at + 7) & ~7ULL };
	Elf64_Shdr sh[5] = {
		[1] = { .sh_type = SHT_NOBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = TEXT,
			.sh_size = TEXT_TWO - TEXT },
		[2] = { .sh_type = SHT_SYMTAB,
			.sh_offset = 4096,
			.sh_size = sym_len,
			.sh_link = 3,
			.sh_entsize = sizeof(Elf64_Sym) },
		[3] = { .sh_type = SHT_STRTAB, .sh_offset = 4096 + sym_len, .sh_size = m->str_len },
		[4] = { .sh_type = SHT_NOBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = TEXT_TWO,
			.sh_size = TEXT_END - TEXT_TWO },
	};
	struct elf_file *e;

	m->fd = memfd_create("made", MFD_CLOEXEC);
	cr_assert_geq(m->fd, 0);
	put(m->fd, &eh, sizeof(eh), 0);
	put(m->fd, m->sym, sym_len, 4096);
	put(m->fd, m->str, m->str_len, 4096 + sym_len);
	put(m->fd, sh, sizeof(sh), eh.e_shoff);
	free(m->sym);
	free(m->str);
	cr_assert_eq(elf_file_open(m->fd, &e), 0);
	return e;
}

static struct symbol_hit *look_up(struct elf_file *e, const uint64_t *at, size_t n,
				  struct names *names)
{
	struct symbol_hit *hit = calloc(n, sizeof(*hit));
	struct symbol_scan *s;

	cr_assert(hit && names);
	cr_assert_eq(symbol_scan_new(at, n, &s), 0);
	cr_assert_eq(symbol_scan_table(s, e, false), 0);
	cr_assert_eq(symbol_scan_table(s, e, true), -ENOENT);
	cr_assert_eq(symbol_scan_end(s, names, hit), 0);
	symbol_scan_free(s);
	return hit;
}

static void check(struct made *m, const uint64_t *at, const char *const *want, size_t n)
{
	struct names *names = names_new((size_t)1 << 20);
	struct elf_file *e = finish(m);
	struct symbol_hit *hit = look_up(e, at, n, names);

	for (size_t i = 0; i < n; i++)
		cr_assert(want[i] ? hit[i].name && !strcmp(hit[i].name, want[i]) : !hit[i].name,
			  "0x%llx: %s, not %s", (unsigned long long)at[i],
			  hit[i].name ? hit[i].name : "none", want[i] ? want[i] : "none");
	free(hit);
	names_free(names);
	elf_file_close(e);
}

Test(symbol_scan, innermost_function)
{
	static const uint64_t at[] = { 0x0fff, 0x1000, 0x10ff, 0x1100, 0x117f,	  0x1180,
				       0x11ff, 0x1200, 0x12ff, 0x1300, UINT64_MAX };
	static const char *const want[] = { NULL,    "outer", "outer", "inner", "inner", "outer",
					    "outer", NULL,    NULL,    "next",	NULL };
	struct made m = { 0 };

	add(&m, "next", 0x1300, 0x10, FUNC, 1);
	add(&m, "inner", 0x1100, 0x80, LOCAL, 1);
	add(&m, "outer", 0x1000, 0x200, FUNC, 1);
	/* none of these is a function that covers anything */
	add(&m, "data", 0x1200, 0x100, DATA, 1);
	add(&m, "undefined", 0x1200, 0x100, FUNC, SHN_UNDEF);
	add(&m, "absolute", 0x1200, 0x100, LABEL, SHN_ABS);
	add(&m, "wraps", 0x1280, UINT64_MAX, FUNC, 1);
	check(&m, at, want, sizeof(at) / sizeof(at[0]));
}

Test(symbol_scan, plainest_name)
{
	static const uint64_t at[] = { 0x1000, 0x1010, 0x1020, 0x1030, 0x1040 };
	static const char *const want[] = { "malloc", "read", "shown", "at", "smaller" };
	struct made m = { 0 };

	add(&m, "__libc_malloc", 0x1000, 16, FUNC, 1);
	add(&m, "malloc@@GLIBC_2.2.5", 0x1000, 16, FUNC, 1);
	add(&m, "zzz", 0x1000, 16, LOCAL, 1);
	add(&m, "__read", 0x1010, 16, FUNC, 1);
	add(&m, "read", 0x1010, 16, WEAK, 1);
	add(&m, "a", 0x1020, 16, LOCAL, 1);
	add(&m, "shown", 0x1020, 16, FUNC, 1);
	add(&m, "at@X", 0x1030, 16, FUNC, 1);
	add(&m, "larger", 0x1040, 17, FUNC, 1);
	add(&m, "smaller", 0x1040, 16, LOCAL, 1);
	check(&m, at, want, sizeof(at) / sizeof(at[0]));
}

/* Assembler code often has no sizes. */
Test(symbol_scan, labels)
{
	static const uint64_t at[] = { 0x0fff, 0x1000, 0x1050, 0x1060,	     0x1070,
				       0x1100, 0x1110, 0x1200, TEXT_TWO - 1, TEXT_TWO + 8 };
	static const char *const want[] = { NULL,  "one", "one",   "typed", "two",
					    "fun", NULL,  "three", "three", NULL };
	struct made m = { 0 };

	add(&m, "three", 0x1200, 0, LABEL, 1);
	add(&m, "one", 0x1000, 0, LABEL, 1);
	add(&m, "two", 0x1068, 0, LABEL, 1);
	add(&m, "label", 0x1058, 0, LABEL, 1);
	add(&m, "typed", 0x1058, 0, FUNC, 1);
	add(&m, "fun", 0x1100, 0x10, FUNC, 1);
	add(&m, "inside", 0x1104, 0, LABEL, 1);
	check(&m, at, want, sizeof(at) / sizeof(at[0]));
}

/* A million symbols, of which every address is looked up by the definition: the slow way. */
Test(symbol_scan, many)
{
	enum { SYMS = 1000000, PCS = 20000 };
	struct names *names = names_new((size_t)64 << 20);
	uint64_t *at = calloc(PCS, sizeof(*at)), *start = calloc(SYMS, sizeof(*start)), p = TEXT;
	struct made m = { 0 };
	struct elf_file *e;
	struct symbol_hit *hit;
	struct rusage before, after;
	char name[32], want[32];
	size_t n = 0;

	cr_assert(at && start && names);
	for (size_t i = 0; i < SYMS; i++) {
		start[i] = p;
		p += 16 * (1 + i % 7);
	}
	/* not in the order of their addresses */
	for (size_t k = 0; k < SYMS; k++) {
		size_t i = (k * 611953) % SYMS;

		snprintf(name, sizeof(name), "function_%zu", i);
		add(&m, name, start[i], 16 * (1 + i % 7) - 4, k % 2 ? FUNC : LOCAL, 1);
	}
	for (size_t i = 0; i < SYMS && n < PCS; i += SYMS / PCS)
		at[n++] = start[i] + i % 19;
	e = finish(&m);
	getrusage(RUSAGE_SELF, &before);
	hit = look_up(e, at, n, names);
	getrusage(RUSAGE_SELF, &after);
	for (size_t k = 0; k < n; k++) {
		size_t i = k * (SYMS / PCS);
		bool covered = i % 19 < 16 * (1 + i % 7) - 4;

		snprintf(want, sizeof(want), "function_%zu", i);
		if (i % 19 >= 16 * (1 + i % 7)) /* in the next one already */
			snprintf(want, sizeof(want), "function_%zu", i + 1), covered = true;
		cr_assert(covered ? hit[k].name && !strcmp(hit[k].name, want) : !hit[k].name,
			  "%zu: %s", k, hit[k].name ? hit[k].name : "none");
	}
#if !defined(__SANITIZE_ADDRESS__)
	/* 24 MB of symbols and 16 MB of names are not copied: 200 bytes an address, and its name */
	cr_assert_lt(after.ru_maxrss - before.ru_maxrss, 10 * 1024, "%ld KiB",
		     after.ru_maxrss - before.ru_maxrss);
#endif
	free(hit);
	free(at);
	free(start);
	names_free(names);
	elf_file_close(e);
}

/* All symbols cover all addresses. */
Test(symbol_scan, hostile_overlap, .timeout = 60)
{
	enum { SYMS = 200000, PCS = 50000 };
	struct names *names = names_new((size_t)1 << 20);
	uint64_t *at = calloc(PCS, sizeof(*at));
	struct made m = { 0 };
	struct elf_file *e;
	struct symbol_hit *hit;

	cr_assert(at);
	for (size_t i = 0; i < SYMS; i++)
		add(&m, i % 2 ? "even" : "odd", TEXT + i % 4096, TEXT_END - TEXT - i % 8192, FUNC,
		    1);
	for (size_t i = 0; i < PCS; i++)
		at[i] = TEXT + 8192 + i * 16;
	e = finish(&m);
	hit = look_up(e, at, PCS, names);
	for (size_t i = 0; i < PCS; i++)
		cr_assert(hit[i].name && hit[i].start == TEXT + 4095);
	free(hit);
	free(at);
	names_free(names);
	elf_file_close(e);
}

/* Names that lie nowhere, have no end, or are longer than anybody's. */
Test(symbol_scan, hostile_names)
{
	static const uint64_t at[] = { 0x1000, 0x1010, 0x1020, 0x1030 };
	static char huge[40000];
	struct names *names = names_new((size_t)1 << 20);
	struct made m = { 0 };
	struct symbol_hit *hit;
	struct elf_file *e;

	memset(huge, 'n', sizeof(huge) - 1);
	add(&m, "nowhere", 0x1000, 16, FUNC, 1);
	add(&m, huge, 0x1010, 16, FUNC, 1);
	add(&m, "good", 0x1020, 16, FUNC, 1);
	add(&m, "endless", 0x1030, 16, FUNC, 1);
	m.sym[1].st_name = 0xfffffff0;
	m.str_len--;
	e = finish(&m);
	hit = look_up(e, at, 4, names);
	cr_assert(!hit[0].name && !hit[1].name && !hit[3].name);
	cr_assert_str_eq(hit[2].name, "good");
	free(hit);
	/* no room for a name: then there is none */
	names_free(names);
	names = names_new(3);
	hit = look_up(e, at, 4, names);
	cr_assert(!hit[2].name);
	free(hit);
	names_free(names);
	elf_file_close(e);
}

/* The file gets shorter while it is read. */
Test(symbol_scan, cut_short)
{
	static const uint64_t at[] = { 0x1000 };
	struct made m = { 0 };
	struct symbol_scan *s;
	struct elf_file *e;

	for (size_t i = 0; i < 1000; i++)
		add(&m, "f", 0x1000, 16, FUNC, 1);
	e = finish(&m);
	cr_assert_eq(ftruncate(m.fd, 8192), 0);
	cr_assert_eq(symbol_scan_new(at, 1, &s), 0);
	cr_assert_eq(symbol_scan_table(s, e, false), -EBADMSG);
	symbol_scan_free(s);
	elf_file_close(e);
}
