// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_private.h"

#define CHUNK	  4096 /* relocations that are read at once */
#define NAMES_MAX 8    /* symbols of one name: of several versions */

/* DT_RELA and DT_JMPREL, in which the second may be the end of the first. */
struct relocs {
	uint64_t at[2], size[2];
};

static int relocs_take(const Elf64_Dyn *d, void *arg)
{
	struct relocs *r = arg;

	switch (d->d_tag) {
	case DT_RELA:
		r->at[0] = d->d_un.d_ptr;
		break;
	case DT_RELASZ:
		r->size[0] = d->d_un.d_val;
		break;
	case DT_JMPREL:
		r->at[1] = d->d_un.d_ptr;
		break;
	case DT_PLTRELSZ:
		r->size[1] = d->d_un.d_val;
		break;
	default:
		break;
	}
	return 0;
}

struct wanted {
	uint32_t index[NAMES_MAX];
	size_t n;
	int (*fn)(uint64_t vaddr, void *arg);
	void *arg;
};

static void find_names(const struct symtab *t, const char *name, struct wanted *w)
{
	size_t len = strlen(name) + 1;

	for (size_t i = 0; i < t->n && i <= UINT32_MAX && w->n < NAMES_MAX; i++) {
		size_t at = t->sym[i].st_name;

		if (at < t->str_len && t->str_len - at >= len && !memcmp(t->str + at, name, len))
			w->index[w->n++] = (uint32_t)i;
	}
}

/* The whole address of the symbol is what these leave behind (psABI, R_X86_64_*). */
static bool is_slot(const Elf64_Rela *r, const struct wanted *w)
{
	uint64_t type = ELF64_R_TYPE(r->r_info);

	if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
	    (type != R_X86_64_64 || r->r_addend))
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (ELF64_R_SYM(r->r_info) == w->index[i])
			return true;
	return false;
}

static int scan(const struct elf_file *e, uint64_t at, uint64_t size, Elf64_Rela *buf,
		size_t *budget, const struct wanted *w)
{
	int err = 0;

	for (size = at ? size / sizeof(*buf) : 0; !err && size;) {
		size_t n = size < CHUNK ? (size_t)size : CHUNK;

		if (n * sizeof(*buf) > *budget)
			return -EFBIG;
		*budget -= n * sizeof(*buf);
		if (elf_file_read(e, at, buf, n * sizeof(*buf)))
			return 0;
		for (size_t i = 0; i < n && !err; i++)
			if (is_slot(&buf[i], w))
				err = w->fn(buf[i].r_offset, w->arg);
		at += n * sizeof(*buf);
		size -= n;
	}
	return err;
}

int elf_file_slots(struct elf_file *e, const char *name, size_t *budget,
		   int (*fn)(uint64_t vaddr, void *arg), void *arg)
{
	struct wanted w = { .fn = fn, .arg = arg };
	struct relocs r = { .at = { 0 } };
	Elf64_Rela *buf;
	int err = elf_need_dyn(e);

	if (!err)
		find_names(&e->dyn, name, &w);
	if (err || !w.n)
		return err;
	err = elf_dynamic_each(e, relocs_take, &r);
	if (err)
		return err == -ENOENT ? 0 : err;
	buf = calloc(CHUNK, sizeof(*buf));
	if (!buf)
		return -ENOMEM;
	for (int i = 0; i < 2 && !err; i++)
		err = scan(e, r.at[i], r.size[i], buf, budget, &w);
	free(buf);
	return err;
}
