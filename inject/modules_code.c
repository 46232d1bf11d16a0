// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "modules_private.h"

/* The first mapping that ends behind addr. */
static size_t map_from(const struct maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (maps->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is_of(const struct map *m, const struct map *head)
{
	return !m->inode || (m->inode == head->inode && m->dev_major == head->dev_major &&
			     m->dev_minor == head->dev_minor);
}

int modules_take_code(struct modules *m, const struct maps *maps)
{
	/* modules do not overlap: a mapping is counted once */
	struct code_range *at = calloc(maps->n + 1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	m->priv->code = at;
	for (size_t i = 0; i < m->n; i++) {
		const struct module *mod = &m->v[i];
		struct module_extra *more = mod->more;
		size_t first = map_from(maps, mod->start);

		more->code = at;
		for (size_t k = first; k < maps->n && maps->v[k].end <= mod->end; k++)
			if (maps->v[k].prot & PROT_EXEC && is_of(&maps->v[k], &maps->v[first]))
				at[more->codes++] = (struct code_range){ .start = maps->v[k].start,
									 .end = maps->v[k].end };
		at += more->codes;
	}
	return 0;
}

int module_own_symbol(const struct module *mod, const char *name, struct symbol *out)
{
	struct elf_sym s;
	int err = mod->elf ? elf_file_lookup(mod->elf, name, &s) : -ENOENT;

	if (!err)
		module_symbol_fill(mod, &s, out);
	return err;
}

static bool is_code(const struct module *mod, uint64_t addr)
{
	for (size_t i = 0; mod->more && i < mod->more->codes; i++)
		if (addr >= mod->more->code[i].start && addr < mod->more->code[i].end)
			return true;
	return false;
}

int module_function(const struct module *mod, const char *name, struct symbol *out)
{
	int err = module_symbol(mod, name, out);

	if (err)
		return err;
	return out->type == STT_FUNC && is_code(mod, out->addr) ? 0 : -EFAULT;
}
