// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codemap_names.h"
#include "codemap_private.h"
#include "modules.h"

#define SYMS_MAX ((size_t)4 * 1024 * 1024)
#define TEXT_MAX ((uint64_t)64 * 1024 * 1024)
/* A program that holds an allocator is mostly not allocator: unnamed code beside it counts so far.
 */
#define PROGRAM_GAP_MAX ((uint64_t)256 * 1024)

/* ---- what kind of object a module is */

enum role {
	ROLE_NONE,
	ROLE_LDSO,	/* all of it is the loader */
	ROLE_LIBC,	/* by names */
	ROLE_ALLOCATOR, /* an allocator library: all of it */
	ROLE_STATIC,	/* a program with glibc in it: by names */
	ROLE_PROGRAM,	/* a program or library with an allocator in it: by names */
};

struct building {
	const struct modules *mods;
	const struct module *glibc;
	struct code_map *map;
};

static bool defines(const struct module *mod, const char *name, bool symtab)
{
	struct elf_sym s;

	if (!mod->elf)
		return false;
	return symtab ? !elf_file_lookup(mod->elf, name, &s)
		      : !elf_file_lookup_dynamic(mod->elf, name, &s);
}

/* libpthread and libdl are objects of their own up to glibc 2.33, and musl's libc is its ld.so. */
static bool is_libc_part(const struct module *mod)
{
	const char *slash = strrchr(mod->path, '/'), *base = slash ? slash + 1 : mod->path;

	return !strncmp(base, "libpthread", 10) || !strncmp(base, "libdl.", 6) ||
	       !strncmp(base, "libdl-", 6) || !strncmp(base, "librt.", 6) ||
	       !strncmp(base, "librt-", 6) || !strncmp(base, "libthr.", 7);
}

/*
 * An allocator that was linked into a library may have its names in .symtab only; none of them does
 * without madvise, and most libraries do.
 */
static unsigned families_of(const struct module *mod)
{
	bool symtab = mod->is_main || elf_file_imports(mod->elf, "madvise");
	const struct alloc_marker *m;
	unsigned families = 0;

	for (m = alloc_markers; m->name; m++)
		if (defines(mod, m->name, symtab))
			families |= m->family;
	return families;
}

static enum role role_of(const struct building *b, const struct module *mod, unsigned *families)
{
	*families = 0;
	if (!mod->elf || mod->is_vdso)
		return mod->is_ldso ? ROLE_LDSO : ROLE_NONE;
	if (mod == b->glibc)
		return mod->is_main ? ROLE_STATIC : ROLE_LIBC;
	if (mod->is_ldso)
		return defines(mod, "pthread_create", false) ? ROLE_LIBC : ROLE_LDSO;
	/* the second: another glibc, in a namespace of dlmopen */
	if (is_libc_part(mod) || defines(mod, "gnu_get_libc_version", false))
		return ROLE_LIBC;
	*families = families_of(mod);
	if (!*families)
		return ROLE_NONE;
	/* A library that exports malloc is there for that; one with only a prefix is something else
	 * that has brought its own. */
	if (!mod->is_main && defines(mod, "malloc", false))
		return ROLE_ALLOCATOR;
	return ROLE_PROGRAM;
}

/* ---- functions by name */

/* Functions that overlap are one cluster. */
struct func {
	uint64_t lo, hi;
	unsigned kinds, spread;
};

struct funcs {
	struct func *v;
	size_t n, cap;
	const struct module *mod;
	enum role role;
	unsigned families;
};

static struct name_kind kind_of(const struct funcs *f, const char *name)
{
	struct name_kind k = { 0 };

	if (f->role == ROLE_LIBC || f->role == ROLE_STATIC)
		k = libc_name_kind(name);
	if (f->families && alloc_name_is(name, f->families)) {
		k.kinds |= CODE_ALLOC;
		k.spread |= CODE_ALLOC;
	}
	return k;
}

static int add_func(const char *name, const struct elf_sym *s, void *arg)
{
	struct funcs *f = arg;
	struct name_kind k;
	struct func *v;
	uint64_t lo = s->value + f->mod->bias;

	if (s->type != STT_FUNC && s->type != STT_GNU_IFUNC)
		return 0;
	/* In a library only what it exports divides: its .symtab, if there is one, tells no more of
	 * which object a static function came from. */
	if (!s->dynamic && f->role == ROLE_LIBC)
		return 0;
	k = kind_of(f, name);
	if (s->scoped && !k.kinds)
		return 0;
	if (lo < f->mod->text_start || lo >= f->mod->text_end || f->n >= SYMS_MAX)
		return 0;
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 4096;
		v = realloc(f->v, f->cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		f->v = v;
	}
	v = &f->v[f->n++];
	*v = (struct func){ .lo = lo, .hi = lo + 1, .kinds = k.kinds, .spread = k.spread };
	if (s->size > 1 && s->size <= f->mod->text_end - lo)
		v->hi = lo + s->size;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct func *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void merge_overlaps(struct funcs *f)
{
	size_t i, n = 0;

	if (!f->n)
		return;
	qsort(f->v, f->n, sizeof(*f->v), by_address);
	for (i = 1; i < f->n; i++) {
		if (f->v[i].lo >= f->v[n].hi) {
			f->v[++n] = f->v[i];
			continue;
		}
		f->v[n].kinds |= f->v[i].kinds;
		f->v[n].spread |= f->v[i].spread;
		if (f->v[i].hi > f->v[n].hi)
			f->v[n].hi = f->v[i].hi;
	}
	f->n = n + 1;
}

/* ---- cuts */

/* From `from` on the kind is kind. */
static int cut(struct span *s, uint64_t from, unsigned kind)
{
	unsigned char *k;
	uint64_t *v;

	if (s->n && s->kind[s->n - 1] == kind)
		return 0;
	if (s->n && s->cut[s->n - 1] == from) {
		s->kind[s->n - 1] = (unsigned char)kind;
		return 0;
	}
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		v = realloc(s->cut, s->cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->cut = v;
		k = realloc(s->kind, s->cap);
		if (!k)
			return -ENOMEM;
		s->kind = k;
	}
	s->cut[s->n] = from;
	s->kind[s->n++] = (unsigned char)kind;
	return 0;
}

/* Code between two named functions belongs to the objects of both. */
static int cut_gap(struct span *s, const struct funcs *f, uint64_t from, uint64_t to,
		   unsigned before, unsigned after, unsigned base)
{
	uint64_t max = f->role == ROLE_PROGRAM ? PROGRAM_GAP_MAX : UINT64_MAX;
	int err;

	if (from >= to)
		return 0;
	if (to - from <= max || (before & after))
		return cut(s, from, base | before | after);
	err = cut(s, from, base | before);
	if (!err && to - from > 2 * max)
		err = cut(s, from + max, base);
	if (!err)
		err = cut(s, to - max, base | after);
	return err;
}

static int cut_by_names(struct span *s, const struct funcs *f, unsigned base)
{
	uint64_t at = s->lo;
	unsigned before = 0;
	size_t i;
	int err;

	for (i = 0; i < f->n; i++) {
		err = cut_gap(s, f, at, f->v[i].lo, before, f->v[i].spread, base);
		if (!err)
			err = cut(s, f->v[i].lo, base | f->v[i].kinds);
		if (err)
			return err;
		at = f->v[i].hi;
		before = f->v[i].spread;
	}
	return cut_gap(s, f, at, s->hi, before, 0, base);
}

/* ---- the bottom of each stack */

/* The offset of start_routine in glibc's struct pthread, which glibc exports for debuggers:
 * {bits, count, offset} (nptl_db/db_info.c). */
static uint32_t start_routine_offset(const struct module *mod)
{
	uint32_t desc[3];
	struct elf_sym s;

	if (elf_file_lookup(mod->elf, "_thread_db_pthread_start_routine", &s) ||
	    elf_file_read(mod->elf, s.value, desc, sizeof(desc)) || desc[2] >= 65536)
		return 0;
	return desc[2];
}

/*
 * Every thread but the first has on its stack the return address of the call of its start routine,
 * in start_thread: a static function of the object that pthread_create is in, so it takes that
 * kind, and with it no thread could ever be borrowed. The rest of start_thread, which is the way
 * out of a thread, shall keep the kind. The call is an indirect one, so the place behind each
 * indirect call in start_thread is exempt. Where start_thread is: by its own name (.symtab is kept
 * in libpthread for debuggers, and in static programs); else in the unnamed code in front of
 * pthread_create, where calls through a register, and calls through the field start_routine of
 * struct pthread, count. Tried on glibc 2.31, 2.36, 2.41 and 2.43. The first thread's
 * __libc_start_main and
 * __libc_start_call_main, and clone, have no kind and lie between functions without one.
 */
static int codemap_bottom(struct code_map *c, const struct span *s, const struct funcs *f)
{
	struct elf_sym sym;
	uint64_t lo, hi, call, start, before;
	uint32_t field = start_routine_offset(f->mod);
	size_t i;
	int err = 0;

	if (!elf_file_lookup(f->mod->elf, "start_thread", &sym) && sym.size) {
		lo = sym.value + f->mod->bias;
		hi = lo + sym.size;
	} else {
		if (elf_file_lookup(f->mod->elf, "pthread_create", &sym))
			return 0;
		start = sym.value + f->mod->bias;
		before = s->lo;
		for (i = 0; i < f->n && f->v[i].hi <= start; i++)
			before = f->v[i].hi;
		lo = before;
		hi = start;
	}
	while (!err && code_text_next_indirect(&s->text, &lo, hi, field, &call))
		err = code_map_exempt(c, call, lo + 1);
	return err == -ENOSPC ? 0 : err;
}

/* ---- all together */

static struct span *new_span(struct code_map *c, const struct module *mod)
{
	struct span *s;

	s = &c->v[c->n++];
	*s = (struct span){ .lo = mod->text_start, .hi = mod->text_end };
	return s;
}

/* The restorer that a handler returns to is a kind of its own, wherever it lies. */
static int cut_trampolines(struct span *s)
{
	uint64_t at = s->lo, found;
	struct range r[8];
	size_t n = 0, i, k;
	unsigned old;
	struct span t;
	int err = 0;

	while (n < 8 && code_text_next_trampoline(&s->text, &at, s->hi, &found))
		r[n++] = (struct range){ .lo = found, .hi = found + CODE_TRAMPOLINE_LEN };
	for (i = 0; i < n && !err; i++) {
		t = (struct span){ .lo = s->lo, .hi = s->hi };
		old = 0;
		for (k = 0; k < s->n && s->cut[k] < r[i].lo && !err; k++) {
			old = s->kind[k];
			err = cut(&t, s->cut[k], old);
		}
		if (!err)
			err = cut(&t, r[i].lo, old | CODE_SIGNAL);
		for (; k < s->n && s->cut[k] < r[i].hi; k++)
			old = s->kind[k];
		if (!err)
			err = cut(&t, r[i].hi, old);
		for (; k < s->n && !err; k++)
			err = cut(&t, s->cut[k], s->kind[k]);
		free(s->cut);
		free(s->kind);
		s->cut = t.cut;
		s->kind = t.kind;
		s->n = t.n;
		s->cap = t.cap;
	}
	return err;
}

static int add_by_names(struct code_map *c, struct span *s, struct funcs *f)
{
	/* in a static program nothing tells where libc ends */
	unsigned base = f->role == ROLE_PROGRAM ? 0 : CODE_LIBC;
	int err = elf_file_each(f->mod->elf, add_func, f);

	if (err)
		return err;
	merge_overlaps(f);
	err = cut_by_names(s, f, base);
	if (!err && (f->role == ROLE_LIBC || f->role == ROLE_STATIC))
		err = codemap_bottom(c, s, f);
	return err;
}

static int add_module(struct building *b, const struct module *mod)
{
	struct funcs f = { .mod = mod };
	struct code_map *c = b->map;
	struct span *s;
	int err;

	f.role = role_of(b, mod, &f.families);
	if (f.role == ROLE_NONE)
		return 0;
	if (mod->text_end <= mod->text_start)
		return 0;
	if (c->n == SPANS_MAX)
		return -E2BIG;
	s = new_span(c, mod);
	if (mod->elf && s->hi - s->lo <= TEXT_MAX) {
		err = code_text_read(&s->text, mod, s->lo, s->hi);
		if (err)
			return err;
	}
	if (f.role == ROLE_LDSO)
		err = cut(s, s->lo, CODE_LOADER | CODE_LIBC);
	else if (f.role == ROLE_ALLOCATOR)
		err = cut(s, s->lo, CODE_ALLOC);
	else
		err = add_by_names(c, s, &f);
	if (!err)
		err = cut_trampolines(s);
	free(f.v);
	return err;
}

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void take_extent(struct code_map *c)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (!i || c->v[i].lo < c->lo)
			c->lo = c->v[i].lo;
		if (c->v[i].hi > c->hi)
			c->hi = c->v[i].hi;
	}
	qsort(c->v, c->n, sizeof(*c->v), span_order);
}

int code_map_build(const struct modules *m, struct code_map **out)
{
	struct building b = { .mods = m, .glibc = modules_glibc(m) };
	size_t i;
	int err = 0;

	b.map = calloc(1, sizeof(*b.map));
	if (!b.map)
		return -ENOMEM;
	for (i = 0; i < m->n && !err; i++)
		err = add_module(&b, &m->v[i]);
	if (err) {
		code_map_free(b.map);
		return err;
	}
	take_extent(b.map);
	*out = b.map;
	return 0;
}
