// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ELF_SYMTAB_H
#define HM_ELF_SYMTAB_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "elf.h"

/*
 * One symbol table with what belongs to it, as bytes that somebody else owns. All of it comes from
 * an untrusted file: every index is checked at the place where it is used.
 */
struct symtab {
	const Elf64_Sym *sym;
	size_t n;
	const char *str; /* its last byte is NUL: see symtab_set_strings */
	size_t str_len;
	const uint16_t *ver; /* one per symbol, or NULL */
	size_t ver_n;
	const uint32_t *gnu; /* DT_GNU_HASH, in words */
	size_t gnu_n;
	const uint32_t *sysv; /* DT_HASH, in words */
	size_t sysv_n;
	uint32_t *index; /* own hash, made when there is none in the file: heads, then links */
	uint32_t heads;
	bool dynamic;
};

/* Cuts str so that each name in it ends inside. */
void symtab_set_strings(struct symtab *t, const char *str, size_t len);
/* Frees what the table itself has made (its index). */
void symtab_drop(struct symtab *t);
/* The best definition of name: the default version before hidden ones, global before weak before
 * local. -ENOENT, -ENOMEM. */
HM_MUST_CHECK int symtab_lookup(struct symtab *t, const char *name, struct elf_sym *out);
/* Does an undefined symbol of that name refer to another object? Of a dynamic table. */
bool symtab_refers(const struct symtab *t, const char *name);
/* See elf_file_each. */
HM_MUST_CHECK int symtab_each(const struct symtab *t,
			      int (*fn)(const char *name, const struct elf_sym *s, void *arg),
			      void *arg);
/* The number of symbols that a GNU hash table covers, at most max: the table of symbols itself has
 * no length in a file without section headers. 0 if the table is damaged. */
size_t gnu_hash_count(const uint32_t *gnu, size_t words, size_t max);
#endif
