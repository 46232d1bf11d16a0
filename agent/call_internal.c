// SPDX-License-Identifier: GPL-3.0-or-later
#include "call_internal.h"

#include <stddef.h>
#include <string.h>

static const char *const functions[] = {
	"::do_malloc",
	"::do_malloc_or_cpp_alloc",
	"DoSampledAllocation",
	"__builtin_delete",
	"__builtin_new",
	"__builtin_vec_delete",
	"__builtin_vec_new",
	"__libc_calloc",
	"__libc_malloc",
	"__libc_memalign",
	"__libc_realloc",
	"__malloc_alloc_template::allocate",
	"aligned_alloc",
	"calloc",
	"cfree",
	"dallocx",
	"do_malloc",
	"free",
	"mallocx",
	"malloc",
	"memalign",
	"newImpl",
	"operator new",
	"operator new[]",
	"posix_memalign",
	"pvalloc",
	"rallocx",
	"realloc",
	"sdallocx",
	"sdallocx_noflags",
	"simple_alloc::allocate",
	"tc_calloc",
	"tc_cfree",
	"tc_delete",
	"tc_deletearray",
	"tc_free",
	"tc_malloc",
	"tc_memalign",
	"tc_new",
	"tc_new_nothrow",
	"tc_newarray",
	"tc_newarray_nothrow",
	"tc_posix_memalign",
	"tc_pvalloc",
	"tc_realloc",
	"tc_valloc",
	"valloc",
	"void* newImpl",
	"xallocx",
};

/* A name that begins so is none of the program's own: jemalloc's private names with the prefixes
 * that builds give them, and what Rust's compiler makes of an allocation. */
static const char *const prefixes[] = {
	"je_",		"_rjem_",	  "jemalloc_", "tcmalloc::",
	"__rust_alloc", "__rust_realloc", "__rdl_",    "__rg_",
};

static const char *const files[] = { "libjemalloc.so", "libtcmalloc.so", "libtcmalloc_minimal.so" };

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

/* Up to its parameters and the version that a symbol may carry. */
static size_t bare_length(const char *name)
{
	return strcspn(name, "(@");
}

bool call_internal(const char *name)
{
	size_t len = bare_length(name);

	for (size_t i = 0; i < COUNT(functions); i++)
		if (strlen(functions[i]) == len && memcmp(functions[i], name, len) == 0)
			return true;
	for (size_t i = 0; i < COUNT(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return strstr(name, "TCMalloc") != NULL;
}

bool call_internal_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < COUNT(files); i++) {
		size_t len = strlen(files[i]);

		if (strncmp(base, files[i], len) == 0 && (base[len] == '\0' || base[len] == '.'))
			return true;
	}
	return false;
}
