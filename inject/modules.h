// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MODULES_H
#define HM_MODULES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codemap.h"
#include "elf.h"
#include "maps.h"
#include "target.h"

/* One ELF object that is mapped in the target. */
struct module {
	char *path;		       /* as the maps say, escaped for printing by the user of it */
	uint64_t bias;		       /* added to the file's addresses */
	uint64_t start, end;	       /* lowest and highest mapped address */
	uint64_t text_start, text_end; /* executable part */
	uint64_t ro_start, ro_end;     /* leading pages that stay as they are in the file */
	uint64_t eh_frame_hdr;	       /* address of PT_GNU_EH_FRAME, 0 if none */
	uint64_t link_map;    /* address of its entry in the target's link map, 0 unknown */
	bool is_main;	      /* the program itself */
	bool is_ldso;	      /* the dynamic linker */
	bool preloaded;	      /* stands in front of the program's own libraries: LD_PRELOAD */
	bool has_interp;      /* a program that asks for a dynamic linker: not static */
	bool is_vdso;	      /* the kernel's own page of code */
	struct elf_file *elf; /* NULL if no file could be opened: then elf_error says why */
	int elf_error;
	bool from_memory;	   /* elf is a copy of what is mapped: dynamic symbols only */
	struct module_extra *more; /* private */
};

/*
 * All modules in the target's own link order (r_debug of the program's PT_DYNAMIC, the order in
 * which plain symbol lookup searches), those that the list does not know after them in address
 * order. Files are opened through map_files, else below /proc/PID/root with
 * openat2(RESOLVE_IN_ROOT), and checked by device and inode; where there is no such file any more,
 * symbols come from the memory. The first error of reading the target is returned with its diag.
 */
struct modules {
	struct module *v;
	size_t n;
	size_t base; /* so many at the front make up the base namespace, in link order; 0 without
			one */
	bool link_order; /* false: no link map could be read (static program), order is that of the
			    maps */
	bool linking;	 /* execve(2) or the dynamic linker is at work: modules may be missing */
	struct modules_private *priv;
};

struct symbol {
	uint64_t addr; /* in the target; for STT_TLS the offset in the module's TLS block */
	uint64_t size;
	unsigned char type;
	unsigned char bind;
	const struct module *mod;
};

HM_MUST_CHECK int modules_load(const struct target *t, const struct maps *maps, struct modules *out,
			       struct diag *d);
void modules_free(struct modules *m);
const struct module *modules_at(const struct modules *m, uint64_t addr);
/* First definition in link order, what a plain reference reaches (only .dynsym of each; .symtab of
 * the program). */
HM_MUST_CHECK int modules_symbol(const struct modules *m, const char *name, struct symbol *out);
/* In one module: .dynsym, .symtab, and for one without .symtab its separate debug file, which is
 * looked for once. -ENOENT. */
HM_MUST_CHECK int module_symbol(const struct module *mod, const char *name, struct symbol *out);
/* The same without its separate debug file. */
HM_MUST_CHECK int module_own_symbol(const struct module *mod, const char *name, struct symbol *out);
/*
 * As module_symbol, for what is going to be called. -EFAULT where the symbol is no function, or
 * lies where nothing of this module can be executed: a file says what it likes.
 */
HM_MUST_CHECK int module_function(const struct module *mod, const char *name, struct symbol *out);
/* The module that is glibc (defines gnu_get_libc_version, or is a static glibc program), or NULL.
 */
const struct module *modules_glibc(const struct modules *m);
/* The program is linked with musl (ld-musl mapped, or static musl). */
bool modules_musl(const struct modules *m);
/* glibc's version as text ("2.36"), read from the module's file; -ENOENT. */
HM_MUST_CHECK int modules_glibc_version(const struct module *libc, char *buf, size_t size);
/* The function that addr lies in, for printing; "" if no symbol covers it. off is the distance. */
void module_describe(const struct module *mod, uint64_t addr, char *name, size_t size,
		     uint64_t *off);
#endif
