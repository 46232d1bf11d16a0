// SPDX-License-Identifier: GPL-3.0-or-later
#include "jemalloc_detect.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golang.h"
#include "process.h"

#define SEARCH_STEP   ((size_t)256 << 10)
#define SEARCH_RELOCS ((size_t)16 << 20)

/* Prefixes of builds that are met: none (the default, and distributions), that of many bundled
 * ones, those of Rust's crates, memkind's; the code map (codemap_names.c) has the same. Others are
 * told by the name of the build's environment variable. */
static const char *const prefixes[] = { "", "je_", "_rjem_", "_rjem_je_", "jemalloc_", "jemk_" };

/* ---- strings */

/* All that is wanted is known: of one whose symbol was found the name of its variable is not, and a
 * plain name may be followed by one with a prefix. */
static bool signs_whole(const struct jemalloc_signs *s, bool by_symbol)
{
	return s->messages && s->version[0] && (by_symbol || s->prefix[0]);
}

/* Pieces overlap, so that a string on a border is whole in one of them. */
static void segment_read(const struct module *mod, const struct elf_segment *seg, char *piece,
			 size_t *budget, bool by_symbol, struct jemalloc_signs *out)
{
	for (uint64_t at = 0; at < seg->filesz && *budget; at += SEARCH_STEP - JEMALLOC_SIGN_MAX) {
		size_t n =
			seg->filesz - at < SEARCH_STEP ? (size_t)(seg->filesz - at) : SEARCH_STEP;

		if (n > *budget)
			n = *budget;
		*budget -= n;
		if (elf_file_read(mod->elf, seg->vaddr + at, piece, n) < 0)
			return;
		jemalloc_signs_add(piece, n, out);
		if (signs_whole(out, by_symbol))
			return;
	}
}

/* Read-only data first, then text: old linkers put both into one segment. */
static void signs_read(const struct module *mod, struct allocator_search *s, bool by_symbol,
		       struct jemalloc_signs *out)
{
	static const unsigned flags[] = { PF_R, PF_R | PF_X, PF_R | PF_W | PF_X };
	const struct elf_segment *seg;
	char *piece = malloc(SEARCH_STEP);
	size_t n = elf_file_segments(mod->elf, &seg);

	*out = (struct jemalloc_signs){ 0 };
	for (size_t k = 0; piece && k < 3 && !out->messages; k++)
		for (size_t i = 0; i < n && !signs_whole(out, by_symbol); i++)
			if (seg[i].type == PT_LOAD && seg[i].flags == flags[k])
				segment_read(mod, &seg[i], piece, &s->budget, by_symbol, out);
	free(piece);
}

/* ---- symbols */

typedef int (*look_up)(const struct module *mod, const char *name, struct symbol *out);

static bool is_listed(const struct allocator *v, size_t n, const struct module *mod, uint64_t addr,
		      look_up find)
{
	for (size_t i = 0; i < n; i++) {
		char name[48];
		struct symbol s;

		snprintf(name, sizeof(name), "%smallctl", v[i].prefix);
		if (find(mod, name, &s) == 0 && s.addr == addr)
			return true;
	}
	return false;
}

/* Adds the jemalloc of that prefix, if its mallctl is there under no other name yet. */
static size_t add_prefix(const struct module *mod, const char *prefix, look_up find,
			 struct allocator *v, size_t n, size_t max)
{
	char name[48];
	struct symbol s;

	snprintf(name, sizeof(name), "%smallctl", prefix);
	if (n == max || find(mod, name, &s) < 0 || is_listed(v, n, mod, s.addr, find))
		return n;
	snprintf(v[n].prefix, sizeof(v[n].prefix), "%s", prefix);
	if (module_function(mod, name, &s) < 0)
		v[n].reach = ALLOCATOR_NO_CODE;
	return n + 1;
}

static size_t add_known(const struct module *mod, look_up find, struct allocator *v, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		n = add_prefix(mod, prefixes[i], find, v, n, max);
	return n;
}

/* ---- without symbols */

/*
 * Worth reading its strings: what jemalloc of every version needs of a libc (madvise to purge,
 * readlink for /etc/malloc.conf, a key for the end of threads), or whose malloc is nobody's that is
 * known. A static program needs nothing from anywhere: there it is the missing symbols.
 */
static bool may_hold(const struct module *mod, const struct allocator_search *s)
{
	struct elf_file *e = mod->elf;

	if (!e || mod->is_vdso || mod->is_ldso || mod == s->glibc)
		return false;
	if (mod->is_main && !mod->has_interp)
		return !elf_file_has_symtab(e) && !golang_module(mod);
	return mod == s->owner ||
	       (elf_file_imports(e, "madvise") && elf_file_imports(e, "readlink") &&
		elf_file_imports(e, "pthread_key_create") &&
		(elf_file_imports(e, "mmap") || elf_file_imports(e, "mmap64")));
}

/* Found by its strings: now its separate debug file is worth a look, too. */
static size_t add_by_signs(const struct module *mod, const struct jemalloc_signs *signs,
			   struct allocator *v, size_t max)
{
	size_t n = add_known(mod, module_symbol, v, max);

	if (n)
		return n;
	/* by a name that is not known a thread inside of it would not be seen, and must not be held
	 * for a call */
	n = add_prefix(mod, signs->prefix, module_symbol, v, n, max);
	v[0].reach = n ? ALLOCATOR_STRANGE : ALLOCATOR_NO_SYMBOL;
	snprintf(v[0].prefix, sizeof(v[0].prefix), "%s", signs->prefix);
	return 1;
}

/* ---- what it is to the program */

static int take_soname(const char *name, void *arg)
{
	bool *own = arg;

	*own = strstr(name, "jemalloc") != NULL;
	return 1;
}

/* A library of its own, and not a part of something else. */
static bool is_library(const struct module *mod)
{
	const char *base = strrchr(mod->path, '/');
	bool own = false;

	if (mod->is_main)
		return false;
	if (elf_file_dynstr(mod->elf, DT_SONAME, take_soname, &own) == 1)
		return own;
	return strstr(base ? base : mod->path, "jemalloc") != NULL;
}

static int is_slot(uint64_t vaddr, void *arg)
{
	(void)vaddr;
	(void)arg;
	return 1;
}

/* Has ld bound its own calls of it already (-Bsymbolic-functions)? A library of jemalloc itself has
 * none. */
static bool is_bound_by_linker(const struct module *mod)
{
	size_t budget = SEARCH_RELOCS;

	return !is_library(mod) && elf_file_slots(mod->elf, "malloc", &budget, is_slot, NULL) == 0;
}

/*
 * Not the malloc that a plain reference reaches: is it the module's own all the same? One that is
 * not exported is what the linker has bound the module's own calls to; one that is exported only
 * where the module looks into itself first, or has been bound to it before.
 */
static bool binds_itself(const struct module *mod)
{
	struct elf_sym s;

	return elf_file_lookup_dynamic(mod->elf, "malloc", &s) < 0 ||
	       elf_file_is_symbolic(mod->elf) || is_bound_by_linker(mod);
}

static void place(const struct module *mod, const struct allocator_search *s, bool sure,
		  struct allocator *a)
{
	if (!mod->preloaded && !is_library(mod))
		a->linkage = LINK_STATIC;
	/* its symbols are there, and nothing else that all jemallocs have */
	if (!sure && a->reach == ALLOCATOR_CALLABLE)
		a->reach = ALLOCATOR_NOTHING_ELSE;
	if (*a->prefix)
		return;
	a->in_use = sure && binds_itself(mod);
	/* a static program has one malloc, whatever it is called by now */
	if (sure && mod->is_main && !mod->has_interp && !s->owner)
		a->owns_malloc = true;
}

size_t jemalloc_detect(const struct process *p, const struct module *mod,
		       struct allocator_search *s, struct allocator *v, size_t max)
{
	struct jemalloc_signs signs;
	size_t n = max && mod->elf ? add_known(mod, module_own_symbol, v, max) : 0;

	(void)p;
	if (!n && !may_hold(mod, s))
		return 0;
	signs_read(mod, s, n > 0, &signs);
	if (!n && (!signs.messages || !signs.conf))
		return 0;
	if (!n)
		n = add_by_signs(mod, &signs, v, max);
	for (size_t i = 0; i < n; i++) {
		snprintf(v[i].version, sizeof(v[i].version), "%s", signs.version);
		/* what could not be read to its end speaks against nobody */
		place(mod, s, signs.messages || !s->budget, &v[i]);
	}
	return n;
}

bool jemalloc_detect_by_maps(const struct process *p, struct allocator *out)
{
	static const char name[] = "[anon:jemalloc_pg";
	const struct module *prog = NULL;
	bool named = false;

	for (size_t i = 0; i < p->maps.n && !named; i++)
		named = strncmp(p->maps.v[i].name, name, sizeof(name) - 1) == 0;
	for (size_t i = 0; i < p->mods.n && !prog; i++)
		if (p->mods.v[i].is_main)
			prog = &p->mods.v[i];
	if (!named || !prog)
		return false;
	out->mod = prog;
	out->reach = ALLOCATOR_NO_SYMBOL;
	out->linkage = LINK_STATIC;
	out->in_use = true;
	return true;
}
