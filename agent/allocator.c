// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator.h"

#include <string.h>

#include "../inject/status.h"
#include "allocator_other.h"
#include "process.h"

/* glibc last: in a static program that brings its own malloc, that one is the owner. */
static const struct allocator_ops *const kinds[] = {
	&jemalloc_ops,
	&tcmalloc_ops,
	&mimalloc_ops,
	&glibc_ops,
};

const char *linkage_name(enum linkage l)
{
	static const char *const names[] = {
		[LINK_DYNAMIC] = "dynamic", [LINK_PRELOAD] = "preload", [LINK_STATIC] = "static"
	};

	return (unsigned)l < sizeof(names) / sizeof(names[0]) ? names[l] : "";
}

const struct allocator *allocators_get(const struct allocators *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].in_use && !strcmp(v->v[i].ops->name, name))
			return &v->v[i];
	return NULL;
}

static enum linkage linkage_of(const struct module *mod)
{
	if (mod->is_main)
		return LINK_STATIC;
	return mod->preloaded ? LINK_PRELOAD : LINK_DYNAMIC;
}

/*
 * The object whose malloc a plain reference reaches. NULL if there is none, or if free comes from
 * another one: then nobody can say whose blocks there are.
 */
static const struct module *malloc_owner(const struct modules *mods)
{
	struct symbol m, f;

	if (modules_symbol(mods, "malloc", &m) < 0 || modules_symbol(mods, "free", &f) < 0)
		return NULL;
	return m.mod == f.mod ? m.mod : NULL;
}

static bool has_owner(const struct allocators *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].owns_malloc)
			return true;
	return false;
}

static void find_in_module(const struct process *p, const struct module *mod,
			   const struct module *owner, struct allocators *out)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct allocator a = { .ops = kinds[k], .mod = mod, .linkage = linkage_of(mod) };

		if (out->n == MAX_ALLOCATORS || !kinds[k]->detect(p, mod, &a))
			continue;
		a.owns_malloc |= mod == owner && !*a.prefix;
		a.owns_malloc &= !has_owner(out);
		a.in_use = a.owns_malloc || *a.prefix;
		out->v[out->n++] = a;
	}
}

static void add_unknown(const struct module *owner, struct allocators *out)
{
	struct allocator *a = &out->v[out->n];
	const char *path = owner->path ? owner->path : "";
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (out->n == MAX_ALLOCATORS)
		return;
	*a = (struct allocator){ .ops = &unknown_ops,
				 .mod = owner,
				 .linkage = linkage_of(owner),
				 .owns_malloc = true,
				 .in_use = true };
	escape_copy(a->version, sizeof(a->version), base, strlen(base));
	out->n++;
}

int allocators_find(const struct process *p, struct allocators *out, struct diag *d)
{
	const struct module *owner = malloc_owner(&p->mods);

	(void)d;
	*out = (struct allocators){ 0 };
	for (size_t i = 0; i < p->mods.n; i++)
		find_in_module(p, &p->mods.v[i], owner, out);
	if (owner && !has_owner(out))
		add_unknown(owner, out);
	return 0;
}
