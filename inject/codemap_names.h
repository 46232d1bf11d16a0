// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_CODEMAP_NAMES_H
#define HM_CODEMAP_NAMES_H
#include <stdbool.h>

/* What a function's name says about it: enum code_kind bits. */
struct name_kind {
	unsigned kinds;
	unsigned spread; /* those of kinds that the unnamed functions beside it share */
};

/* For functions of glibc (libc, libpthread, libdl, or a static program): 0 for all others. */
struct name_kind libc_name_kind(const char *name);

/* Families of names of an allocator inside a program or library that is more than the allocator. */
enum alloc_family {
	FAMILY_MALLOC = 1,   /* malloc and the rest of the standard interface */
	FAMILY_JEMALLOC = 2, /* jemalloc with any usual prefix */
	FAMILY_TCMALLOC = 4,
	FAMILY_MIMALLOC = 8,
};
/* True if name belongs to one of these families. */
bool alloc_name_is(const char *name, unsigned families);
/* Names whose presence tells that the family is in an object. Ends with a NULL name. */
struct alloc_marker {
	const char *name;
	enum alloc_family family;
};
extern const struct alloc_marker alloc_markers[];
#endif
