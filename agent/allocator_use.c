// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_use.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "process.h"

#define SONAME_MAX 256

static int take_soname(const char *name, void *arg)
{
	snprintf(arg, SONAME_MAX, "%s", name);
	return 1;
}

/* By the name that it was linked under, else by its file's. */
static bool is_library(const struct module *mod, const char *word)
{
	const char *base = strrchr(mod->path, '/');
	char soname[SONAME_MAX] = "";

	if (mod->is_main)
		return false;
	if (elf_file_dynstr(mod->elf, DT_SONAME, take_soname, soname) != 1)
		snprintf(soname, sizeof(soname), "%s", base ? base + 1 : mod->path);
	return strncmp(soname, "lib", 3) == 0 && strncmp(soname + 3, word, strlen(word)) == 0;
}

static bool is_asked_for(const struct process *p, const struct module *mod,
			 const char *const *names)
{
	for (size_t i = 0; i < p->mods.n; i++)
		for (size_t k = 0; names[k]; k++)
			if (&p->mods.v[i] != mod && p->mods.v[i].elf &&
			    elf_file_imports(p->mods.v[i].elf, names[k]))
				return true;
	return false;
}

void allocator_use(const struct process *p, const struct module *mod, const char *word,
		   const char *const *names, struct allocator *a)
{
	struct elf_sym s;

	if (!mod->preloaded && !is_library(mod, word))
		a->linkage = LINK_STATIC;
	a->in_use = elf_file_lookup_dynamic(mod->elf, "malloc", &s) < 0 ||
		    elf_file_is_symbolic(mod->elf) || is_asked_for(p, mod, names);
}
