// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ELF_H
#define HM_ELF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"

/* One ELF file, read through libelf from a descriptor (never mmapped: a file cut short under a map
 * kills the reader). */
struct elf_file;

struct elf_sym {
	uint64_t value; /* as in the file: not relocated */
	uint64_t size;
	unsigned char type; /* STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, STT_TLS */
	unsigned char bind; /* STB_GLOBAL, STB_WEAK, STB_LOCAL */
	bool dynamic;	    /* from .dynsym */
	bool scoped; /* a static of one source file: STB_LOCAL after a named STT_FILE in .symtab */
};

struct elf_segment {
	uint32_t type; /* PT_LOAD, PT_TLS, PT_GNU_EH_FRAME, PT_DYNAMIC ... */
	uint32_t flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

/* Takes fd over, also on error. Nothing of the symbols is read yet. -ENOEXEC if it is not a 64-bit
 * x86-64 ELF file, -EBADMSG if it is damaged. */
HM_MUST_CHECK int elf_file_open(int fd, struct elf_file **out);
void elf_file_close(struct elf_file *e);
size_t elf_file_segments(const struct elf_file *e, const struct elf_segment **out);
/* Build id bytes; returns the length, 0 if none. */
size_t elf_file_build_id(const struct elf_file *e, const unsigned char **out);
/*
 * Calls fn for each string that a dynamic tag names (DT_NEEDED in the file's order, DT_SONAME);
 * stops when fn returns non-zero and returns that. Strings of 4096 bytes and more are left out.
 * -ENOENT without a dynamic section.
 */
HM_MUST_CHECK int elf_file_dynstr(struct elf_file *e, int64_t tag,
				  int (*fn)(const char *s, void *arg), void *arg);
/* The file has a .symtab of its own (a debug file that was added does not count). */
bool elf_file_has_symtab(struct elf_file *e);
/* Pure: finds the GNU build id in the bytes of a PT_NOTE segment; returns its length, 0 if none. */
size_t elf_note_build_id(const void *notes, size_t len, size_t align, const unsigned char **out);
/*
 * Defined symbol by name: .dynsym by its GNU hash (or SysV hash, or linearly) first, the default
 * version of a versioned name; then .symtab if there is one. -ENOENT if undefined or absent.
 */
HM_MUST_CHECK int elf_file_lookup(struct elf_file *e, const char *name, struct elf_sym *out);
/* The same in .dynsym alone: what the dynamic linker sees. Never reads .symtab. */
HM_MUST_CHECK int elf_file_lookup_dynamic(struct elf_file *e, const char *name,
					  struct elf_sym *out);
/* Is it undefined in .dynsym: does the object want it from another one? False if that cannot be
 * read. */
bool elf_file_imports(struct elf_file *e, const char *name);
/*
 * Calls fn for each place (address as in the file) that the dynamic linker fills with the address
 * of that symbol: by relocations for calls and for pointers. Stops when fn returns non-zero and
 * returns that. *budget is how many bytes of relocations may still be read: -EFBIG; -ENOMEM.
 */
HM_MUST_CHECK int elf_file_slots(struct elf_file *e, const char *name, size_t *budget,
				 int (*fn)(uint64_t vaddr, void *arg), void *arg);
/* Does the dynamic linker look into the object itself first for what it needs (ld -Bsymbolic:
 * DT_SYMBOLIC, or DF_SYMBOLIC in DT_FLAGS)? */
bool elf_file_is_symbolic(const struct elf_file *e);
/* Calls fn for each defined function, object and TLS symbol (.dynsym, then .symtab without version
 * suffixes); stops when fn returns non-zero and returns that. */
HM_MUST_CHECK int elf_file_each(struct elf_file *e,
				int (*fn)(const char *name, const struct elf_sym *s, void *arg),
				void *arg);
/* Reads len bytes at a virtual address of the file's PT_LOAD contents; zeros past filesz. -EFAULT
 * outside. */
HM_MUST_CHECK int elf_file_read(const struct elf_file *e, uint64_t vaddr, void *buf, size_t len);
/* Address and size of an allocated section by name; -ENOENT. */
HM_MUST_CHECK int elf_file_section(struct elf_file *e, const char *name, uint64_t *vaddr,
				   uint64_t *size);
/* Adds a separate debug file's .symtab to lookups (build ids must agree: -EINVAL if not). Takes dbg
 * over on success. */
HM_MUST_CHECK int elf_file_add_debug(struct elf_file *e, struct elf_file *dbg);
#endif
