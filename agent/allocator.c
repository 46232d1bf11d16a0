// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator.h"

#include <errno.h>
#include <string.h>

#include "../inject/mem.h"
#include "../inject/status.h"
#include "allocator_other.h"
#include "glibc_live.h"
#include "jemalloc_detect.h"
#include "mimalloc.h"
#include "module_text.h"
#include "process.h"
#include "tcmalloc.h"

#define SEARCH_MAX    ((size_t)256 << 20) /* bytes that are read of files, over all */
#define SLOTS_MAX     ((size_t)64 << 20)  /* of relocations, likewise */
#define MAX_OF_A_KIND 6			  /* in one module */

/* glibc last: in a static program that brings its own malloc, that one is the owner. */
static const struct allocator_ops *const kinds[] = {
	&jemalloc_ops, &tcmalloc_ops, &mimalloc_ops, &musl_ops, &glibc_ops,
};

const char *linkage_name(enum linkage l)
{
	static const char *const names[] = {
		[LINK_DYNAMIC] = "dynamic", [LINK_PRELOAD] = "preload", [LINK_STATIC] = "static"
	};

	return (unsigned)l < sizeof(names) / sizeof(names[0]) ? names[l] : "";
}

const char *allocator_reach_name(enum allocator_reach r)
{
	static const char *const names[] = {
		[ALLOCATOR_CALLABLE] = "callable", [ALLOCATOR_NO_SYMBOL] = "no-symbol",
		[ALLOCATOR_NO_CODE] = "no-code",   [ALLOCATOR_NOTHING_ELSE] = "nothing-else",
		[ALLOCATOR_STRANGE] = "strange",   [ALLOCATOR_APART] = "other-namespace",
	};

	return (unsigned)r < sizeof(names) / sizeof(names[0]) ? names[r] : "";
}

const char *allocator_base(const struct allocator *a)
{
	const char *slash = strrchr(a->file, '/');

	return slash && slash[1] ? slash + 1 : a->file;
}

bool allocator_callable(const struct allocator *a)
{
	return a->in_use && a->ops->callable && a->reach == ALLOCATOR_CALLABLE;
}

/* What is asked first, and what is kept where not all can be. */
static int weight(const struct allocator *a)
{
	return (a->in_use ? 4 : 0) + (a->reach == ALLOCATOR_CALLABLE ? 2 : 0) +
	       (a->owns_malloc ? 1 : 0);
}

const struct allocator *allocators_get(const struct allocators *v, const char *name)
{
	const struct allocator *best = NULL;

	for (size_t i = 0; i < v->n; i++) {
		const struct allocator *a = &v->v[i];

		if (a->in_use && !strcmp(a->ops->name, name) && (!best || weight(a) > weight(best)))
			best = a;
	}
	return best;
}

static enum linkage linkage_of(const struct module *mod)
{
	if (mod->is_main)
		return LINK_STATIC;
	return mod->preloaded ? LINK_PRELOAD : LINK_DYNAMIC;
}

/* In a static program the name may be in its separate debug file only. */
static int find_plain(const struct modules *mods, const char *name, struct symbol *out)
{
	int err = modules_symbol(mods, name, out);

	for (size_t i = 0; err == -ENOENT && !mods->link_order && i < mods->n; i++)
		if (mods->v[i].is_main)
			err = module_symbol(&mods->v[i], name, out);
	return err;
}

/*
 * The object whose malloc a plain reference reaches. NULL if there is none, or if free comes from
 * another one: then nobody can say whose blocks there are.
 */
static const struct module *malloc_owner(const struct modules *mods)
{
	struct symbol m, f;

	if (find_plain(mods, "malloc", &m) < 0 || find_plain(mods, "free", &f) < 0)
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

static void take_file(struct allocator *a)
{
	const char *path = a->mod->path ? a->mod->path : "";
	size_t len = strlen(path);

	/* of a long one the end: that is what tells it from others */
	if (len >= sizeof(a->file))
		path += len - (sizeof(a->file) - 1);
	escape_copy(a->file, sizeof(a->file), path, strlen(path));
}

static int worth(const struct allocator *a)
{
	return weight(a) + (a->owns_malloc ? 8 : 0);
}

/* Where there is no room, the last one of those that matter least goes. */
static void put(struct allocators *out, struct allocator *a)
{
	size_t least = 0;

	take_file(a);
	if (out->n < MAX_ALLOCATORS) {
		out->v[out->n++] = *a;
		return;
	}
	out->more++;
	for (size_t i = 1; i < out->n; i++)
		if (worth(&out->v[i]) <= worth(&out->v[least]))
			least = i;
	if (worth(a) <= worth(&out->v[least]))
		return;
	memmove(&out->v[least], &out->v[least + 1], (out->n - least - 1) * sizeof(out->v[0]));
	out->v[out->n - 1] = *a;
}

/* Loaded by dlmopen: none of the program's own libraries (before 2.35 glibc lists only these). */
static bool is_apart(const struct process *p, const struct module *mod)
{
	return p->mods.link_order && mod >= p->mods.v + p->mods.base;
}

static void find_in_module(const struct process *p, const struct module *mod,
			   struct allocator_search *s, struct allocators *out)
{
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct allocator v[MAX_OF_A_KIND];
		size_t n;

		for (size_t i = 0; i < MAX_OF_A_KIND; i++)
			v[i] = (struct allocator){ .ops = kinds[k],
						   .mod = mod,
						   .linkage = linkage_of(mod) };
		n = kinds[k]->detect(p, mod, s, v, MAX_OF_A_KIND);
		for (size_t i = 0; i < n; i++) {
			if (v[i].reach == ALLOCATOR_CALLABLE && is_apart(p, mod))
				v[i].reach = ALLOCATOR_APART;
			v[i].owns_malloc |= mod == s->owner && !*v[i].prefix;
			v[i].owns_malloc &= !has_owner(out);
			v[i].in_use |= v[i].owns_malloc || *v[i].prefix;
			put(out, &v[i]);
		}
	}
}

/* None of its functions has a name that is known: texts that it has nevertheless. */
static const struct {
	const struct allocator_ops *ops;
	const char *text;
} signs[] = {
	{ &tcmalloc_ops, "tcmalloc.pageheap_free_bytes" },
	{ &mimalloc_ops, "mimalloc: error: " },
};

static void add_unknown(struct allocator_search *s, struct allocators *out)
{
	struct allocator a = { .ops = &unknown_ops,
			       .mod = s->owner,
			       .linkage = linkage_of(s->owner),
			       .owns_malloc = true,
			       .in_use = true };
	const char *path = s->owner->path ? s->owner->path : "";
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char rest[8];

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && a.ops == &unknown_ops; i++)
		if (!module_text_find(s->owner, signs[i].text, &s->budget, rest, sizeof(rest)))
			a.ops = signs[i].ops;
	if (a.ops == &unknown_ops)
		escape_copy(a.version, sizeof(a.version), base, strlen(base));
	else
		a.reach = ALLOCATOR_NO_SYMBOL;
	put(out, &a);
}

/*
 * Whoever it is may hand on to glibc's (tools that count or record allocations do). That shows in
 * glibc's own heap, which is not made before it is first asked.
 */
static void look_behind(const struct process *p, struct allocators *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct glibc_live live;
		struct diag d = { 0 };

		if (v->v[i].ops != &glibc_ops || glibc_live_open(p, &v->v[i], &live, &d))
			continue;
		glibc_live_close(&live);
		v->v[i].in_use = true;
	}
}

/* Mappings that are named after it, and nothing else to tell where it is. */
static void add_by_maps(const struct process *p, struct allocators *out)
{
	struct allocator a = { .ops = &jemalloc_ops };

	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].ops == &jemalloc_ops)
			return;
	if (!jemalloc_detect_by_maps(p, &a))
		return;
	a.owns_malloc = !has_owner(out);
	put(out, &a);
}

/* ---- malloc that only some objects reach */

struct reach {
	pid_t pid;
	uint64_t bias, malloc_at;
};

/* What stands there; not resolved yet it is the way to the dynamic linker. */
static int is_bound(uint64_t vaddr, void *arg)
{
	const struct reach *r = arg;
	uint64_t value;

	return mem_read(r->pid, r->bias + vaddr, &value, sizeof(value)) == 0 &&
	       value == r->malloc_at;
}

/*
 * Objects of another namespace (dlmopen), and those that look among their own libraries first
 * (RTLD_DEEPBIND), may reach another malloc than a plain reference does: the slots say which.
 */
static bool is_reached(const struct process *p, const struct allocator *a, size_t *budget)
{
	struct reach r = { .pid = p->t.pid };
	struct elf_sym s;

	if (!a->mod->elf || elf_file_lookup_dynamic(a->mod->elf, "malloc", &s))
		return false;
	r.malloc_at = s.value + a->mod->bias;
	for (size_t i = 0; i < p->mods.n; i++) {
		r.bias = p->mods.v[i].bias;
		if (p->mods.v[i].elf &&
		    elf_file_slots(p->mods.v[i].elf, "malloc", budget, is_bound, &r) > 0)
			return true;
	}
	return false;
}

static void find_reached(const struct process *p, struct allocators *out)
{
	size_t budget = SLOTS_MAX;

	for (size_t i = 0; i < out->n; i++) {
		struct allocator *a = &out->v[i];

		if (!a->in_use && !*a->prefix &&
		    (a->reach <= ALLOCATOR_NO_SYMBOL || a->reach == ALLOCATOR_APART))
			a->in_use = is_reached(p, a, &budget);
	}
}

int allocators_find(const struct process *p, struct allocators *out, struct diag *d)
{
	struct allocator_search s = {
		.owner = malloc_owner(&p->mods),
		.glibc = modules_glibc(&p->mods),
		.budget = SEARCH_MAX,
	};

	(void)d;
	*out = (struct allocators){ 0 };
	for (size_t i = 0; i < p->mods.n; i++)
		find_in_module(p, &p->mods.v[i], &s, out);
	if (s.owner && !has_owner(out)) {
		add_unknown(&s, out);
		look_behind(p, out);
	}
	find_reached(p, out);
	add_by_maps(p, out);
	return 0;
}
