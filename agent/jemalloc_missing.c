// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_missing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where the file is looked for that `objcopy --only-keep-debug` makes; "" for one without an id. */
static void debug_path(const struct module *mod, char *path, size_t size)
{
	const unsigned char *id = NULL;
	size_t len = mod->elf ? elf_file_build_id(mod->elf, &id) : 0;
	int n = snprintf(path, size, "/usr/lib/debug/.build-id/");

	for (size_t i = 0; i < len; i++)
		n += snprintf(path + n, size - (size_t)n, i == 0 ? "%02x/" : "%02x", id[i]);
	snprintf(path + n, size - (size_t)n, ".debug");
	if (len < 2)
		path[0] = '\0';
}

static int not_it(const struct allocator *a, struct diag *d)
{
	return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "not-jemalloc",
			 "a jemalloc has its messages and its code in the same file: what is in "
			 "this one cannot be trusted; `trim` and `stats` ask the others",
			 "%s has a symbol %smallctl, but %s: nothing is called there", a->file,
			 a->prefix,
			 a->reach == ALLOCATOR_NO_CODE ? "it is no code of that file"
						       : "nothing else of jemalloc's");
}

int jemalloc_unreachable(const struct allocator *a, struct diag *d)
{
	char path[256] = "", hint[sizeof(d->hint)];

	if (a->reach == ALLOCATOR_STRANGE)
		return diag_fail(
			d, -ENOENT, HM_UNSUPPORTED, "unknown-prefix",
			"none, je_, _rjem_, _rjem_je_, jemalloc_ and jemk_ are known: build "
			"it with one of them (--with-jemalloc-prefix)",
			"jemalloc%s%s is in %s, by names that begin with %s: a thread that is "
			"inside of it would not be recognised",
			a->version[0] ? " " : "", a->version, a->file, a->prefix);
	/* Its keys of thread-specific data are those of a second libc: where the first one ends a
	 * thread that has called it, it would end what it does not know. */
	if (a->reach == ALLOCATOR_APART)
		return diag_fail(
			d, -ENOENT, HM_UNSUPPORTED, "other-namespace",
			"only the program itself can ask it: `maps` shows what it has from outside",
			"jemalloc%s%s in %s has a libc of its own (dlmopen): a thread that is not "
			"of that one must not call it",
			a->version[0] ? " " : "", a->version, a->file);
	if (a->reach != ALLOCATOR_NO_SYMBOL)
		return not_it(a, d);
	if (a->mod)
		debug_path(a->mod, path, sizeof(path));
	/* mallctl alone is not enough: where no name divides the code beside it, every thread looks
	 * as if it were inside of it */
	if (path[0])
		snprintf(hint, sizeof(hint),
			 "put its debug file at %s, here or below the process's root; or leave it "
			 "its symbol table: strip --strip-debug",
			 path);
	else
		snprintf(hint, sizeof(hint),
			 "it has no build id that a debug file could be found by: leave it its "
			 "symbol table (strip --strip-debug), or link it with -Wl,--build-id");
	return diag_fail(d, -ENOENT, HM_UNSUPPORTED, "no-mallctl", hint,
			 "jemalloc%s%s is in %s, but the symbol %smallctl is not: it was stripped",
			 a->version[0] ? " " : "", a->version, a->file, a->prefix);
}
