// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PRELOAD_H
#define HM_PRELOAD_H
#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "elf.h"

/* An object of the base namespace, without the program, the dynamic linker and the vdso. */
struct preload_entry {
	char *name;	      /* as the dynamic linker has it; the caller's */
	struct elf_file *elf; /* for its DT_SONAME; may be NULL */
	size_t index;	      /* the caller's */
	bool preloaded;	      /* out */
};

/*
 * Tells preloaded objects (LD_PRELOAD, /etc/ld.so.preload, --preload) from the rest: ld.so lists
 * the program, then these in the order given, then the program's DT_NEEDED in their order, without
 * those that are there already (ld.so(8), elf/dl-deps.c). An object that the program needs anyway
 * does not count. v is in link order. -ENOMEM.
 */
HM_MUST_CHECK int preload_mark(struct elf_file *prog, struct preload_entry *v, size_t n);
#endif
