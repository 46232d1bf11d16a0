// SPDX-License-Identifier: GPL-3.0-or-later
#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "elf_private.h"

#define DYNAMIC_MAX   ((size_t)64 * 1024)
#define HASH_READ_MAX ((size_t)32 * 1024 * 1024)
#define DYNSTR_MAX    ((size_t)4096) /* of one name */
#define STRTAB_MAX    ((size_t)256 * 1024 * 1024)
/* A table without a section has no length of its own, and its file may be one large hole. */
#define SYMS_MAX ((size_t)4 * 1024 * 1024)

/* What PT_DYNAMIC says about the symbols; addresses as in the file. */
struct dynamic {
	uint64_t symtab, strtab, strsz, gnu, sysv, versym;
};

int elf_dynamic_each(const struct elf_file *e, int (*fn)(const Elf64_Dyn *d, void *arg), void *arg)
{
	const struct elf_segment *s = NULL;
	Elf64_Dyn *d;
	size_t i, n;
	int err;

	for (i = 0; i < e->n_seg && !s; i++)
		if (e->seg[i].type == PT_DYNAMIC)
			s = &e->seg[i];
	if (!s || s->filesz < sizeof(*d))
		return -ENOENT;
	n = (size_t)(s->filesz < DYNAMIC_MAX ? s->filesz : DYNAMIC_MAX) / sizeof(*d);
	d = calloc(n, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = elf_file_read(e, s->vaddr, d, n * sizeof(*d));
	for (i = 0; !err && i < n && d[i].d_tag != DT_NULL; i++)
		err = fn(&d[i], arg);
	free(d);
	return err;
}

static int dynamic_take(const Elf64_Dyn *d, void *arg)
{
	struct dynamic *out = arg;

	switch (d->d_tag) {
	case DT_SYMTAB:
		out->symtab = d->d_un.d_ptr;
		break;
	case DT_STRTAB:
		out->strtab = d->d_un.d_ptr;
		break;
	case DT_STRSZ:
		out->strsz = d->d_un.d_val;
		break;
	case DT_GNU_HASH:
		out->gnu = d->d_un.d_ptr;
		break;
	case DT_HASH:
		out->sysv = d->d_un.d_ptr;
		break;
	case DT_VERSYM:
		out->versym = d->d_un.d_ptr;
		break;
	default:
		break;
	}
	return 0;
}

/* Bytes of file contents from vaddr to the end of its segment, never more than the file has. */
static size_t file_avail(const struct elf_file *e, uint64_t vaddr, size_t max)
{
	const struct elf_segment *s;
	uint64_t in, n;

	s = vaddr ? elf_segment_at(e, vaddr, &in) : NULL;
	if (!s || in >= s->filesz || s->offset > e->size || in >= e->size - s->offset)
		return 0;
	n = s->filesz - in;
	if (n > e->size - s->offset - in)
		n = e->size - s->offset - in;
	return n < max ? (size_t)n : max;
}

/* Reads at most max bytes at vaddr into a buffer that e owns. */
static void *read_owned(struct elf_file *e, unsigned slot, uint64_t vaddr, size_t max, size_t *len)
{
	size_t n = file_avail(e, vaddr, max);
	void *p = n ? malloc(n) : NULL;

	*len = 0;
	if (!p)
		return NULL;
	if (elf_file_read(e, vaddr, p, n)) {
		free(p);
		return NULL;
	}
	e->owned[slot] = p;
	*len = n;
	return p;
}

/* Both have been read from there, so they lie in a PT_LOAD. */
static void table_at(struct elf_file *e, const struct dynamic *d, size_t n, size_t str_len)
{
	uint64_t in_sym, in_str;
	const struct elf_segment *sym = elf_segment_at(e, d->symtab, &in_sym);
	const struct elf_segment *str = elf_segment_at(e, d->strtab, &in_str);

	if (sym && str)
		e->dyn_at = (struct elf_table){
			.sym = { sym->offset + in_sym, n * sizeof(Elf64_Sym) },
			.str = { str->offset + in_str, str_len },
		};
}

static int dyn_from_segments(struct elf_file *e)
{
	struct symtab *t = &e->dyn;
	struct dynamic d = { 0 };
	const void *p;
	size_t len, n;
	int err = elf_dynamic_each(e, dynamic_take, &d);

	if (err)
		return err == -ENOMEM ? err : 0;
	p = read_owned(e, 0, d.gnu ? d.gnu : d.sysv, HASH_READ_MAX, &len);
	if (!p)
		return 0;
	if (d.gnu) {
		t->gnu = p;
		t->gnu_n = len / 4;
		n = gnu_hash_count(t->gnu, t->gnu_n, (size_t)(e->size / sizeof(Elf64_Sym)));
	} else {
		t->sysv = p;
		t->sysv_n = len / 4;
		n = t->sysv_n >= 2 ? t->sysv[1] : 0;
	}
	if (n > e->size / sizeof(Elf64_Sym))
		n = (size_t)(e->size / sizeof(Elf64_Sym));
	if (n > SYMS_MAX)
		n = SYMS_MAX;
	t->sym = read_owned(e, 1, d.symtab, n * sizeof(Elf64_Sym), &len);
	t->n = len / sizeof(Elf64_Sym);
	p = read_owned(e, 2, d.strtab, d.strsz < STRTAB_MAX ? (size_t)d.strsz : STRTAB_MAX, &len);
	if (!t->sym || !p) {
		t->n = 0;
		return 0;
	}
	symtab_set_strings(t, p, len);
	table_at(e, &d, t->n, len);
	t->ver = read_owned(e, 3, d.versym, t->n * sizeof(uint16_t), &len);
	t->ver_n = len / sizeof(uint16_t);
	return 0;
}

static void table_from_section(struct elf_file *e, struct symtab *t, Elf_Scn *scn)
{
	const Elf64_Shdr *sh = elf64_getshdr(scn);
	Elf_Scn *strscn = sh ? elf_getscn(e->elf, sh->sh_link) : NULL;
	const void *sym, *str;
	size_t sym_len, str_len;

	if (!strscn)
		return;
	sym = elf_section_bytes(e, scn, &sym_len);
	str = elf_section_bytes(e, strscn, &str_len);
	if (!sym || !str)
		return;
	t->sym = sym;
	t->n = sym_len / sizeof(Elf64_Sym);
	symtab_set_strings(t, str, str_len);
}

static void dyn_from_sections(struct elf_file *e)
{
	struct symtab *t = &e->dyn;
	Elf_Scn *scn = NULL;
	const void *p;
	size_t len;
	unsigned n = 0;

	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh)
			continue;
		if (sh->sh_type == SHT_DYNSYM && !t->n)
			table_from_section(e, t, scn);
		if (sh->sh_type != SHT_GNU_HASH && sh->sh_type != SHT_HASH &&
		    sh->sh_type != SHT_GNU_versym)
			continue;
		p = elf_section_bytes(e, scn, &len);
		if (!p)
			continue;
		if (sh->sh_type == SHT_GNU_HASH) {
			t->gnu = p;
			t->gnu_n = len / 4;
		} else if (sh->sh_type == SHT_HASH) {
			t->sysv = p;
			t->sysv_n = len / 4;
		} else {
			t->ver = p;
			t->ver_n = len / 2;
		}
	}
}

int elf_need_dyn(struct elf_file *e)
{
	if (e->dyn_read)
		return 0;
	e->dyn_read = true;
	e->dyn.dynamic = true;
	dyn_from_sections(e);
	if (e->dyn.n)
		return 0;
	e->dyn = (struct symtab){ .dynamic = true };
	return dyn_from_segments(e);
}

static void need_sym(struct elf_file *e)
{
	Elf_Scn *scn = NULL;
	unsigned n = 0;

	if (e->sym_read)
		return;
	e->sym_read = true;
	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh || sh->sh_type != SHT_SYMTAB)
			continue;
		table_from_section(e, &e->sym, scn);
		e->has_symtab = e->sym.n > 0;
		return;
	}
}

bool elf_file_has_symtab(struct elf_file *e)
{
	need_sym(e);
	return e->has_symtab;
}

int elf_file_lookup_dynamic(struct elf_file *e, const char *name, struct elf_sym *out)
{
	int err = elf_need_dyn(e);

	return err ? err : symtab_lookup(&e->dyn, name, out);
}

bool elf_file_imports(struct elf_file *e, const char *name)
{
	return !elf_need_dyn(e) && symtab_refers(&e->dyn, name);
}

static int symbolic_take(const Elf64_Dyn *d, void *arg)
{
	bool *symbolic = arg;

	*symbolic |=
		d->d_tag == DT_SYMBOLIC || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_SYMBOLIC);
	return 0;
}

bool elf_file_is_symbolic(const struct elf_file *e)
{
	bool symbolic = false;

	return !elf_dynamic_each(e, symbolic_take, &symbolic) && symbolic;
}

int elf_file_lookup(struct elf_file *e, const char *name, struct elf_sym *out)
{
	int err = elf_file_lookup_dynamic(e, name, out);

	if (err != -ENOENT)
		return err;
	need_sym(e);
	err = symtab_lookup(&e->sym, name, out);
	if (err != -ENOENT || !e->debug)
		return err;
	need_sym(e->debug);
	return symtab_lookup(&e->debug->sym, name, out);
}

struct each {
	int (*fn)(const char *name, const struct elf_sym *s, void *arg);
	void *arg;
};

static int each_typed(const char *name, const struct elf_sym *s, void *arg)
{
	struct each *each = arg;

	if (s->type != STT_FUNC && s->type != STT_GNU_IFUNC && s->type != STT_OBJECT &&
	    s->type != STT_TLS)
		return 0;
	return each->fn(name, s, each->arg);
}

int elf_file_each(struct elf_file *e, int (*fn)(const char *name, const struct elf_sym *s, void *),
		  void *arg)
{
	struct each each = { .fn = fn, .arg = arg };
	int err = elf_need_dyn(e);

	if (!err)
		err = symtab_each(&e->dyn, each_typed, &each);
	if (err)
		return err;
	need_sym(e);
	err = symtab_each(&e->sym, each_typed, &each);
	if (err || !e->debug)
		return err;
	need_sym(e->debug);
	return symtab_each(&e->debug->sym, each_typed, &each);
}

struct dynstr {
	const struct elf_file *e;
	int64_t tag;
	uint64_t strtab, strsz;
	int (*fn)(const char *s, void *arg);
	void *arg;
};

/* Only the string is read, not its table: that may be of any size. */
static int dynstr_take(const Elf64_Dyn *d, void *arg)
{
	const struct dynstr *ds = arg;
	char buf[DYNSTR_MAX];
	size_t len;

	if (d->d_tag != ds->tag || d->d_un.d_val >= ds->strsz ||
	    d->d_un.d_val > UINT64_MAX - ds->strtab)
		return 0;
	len = ds->strsz - d->d_un.d_val < sizeof(buf) ? (size_t)(ds->strsz - d->d_un.d_val)
						      : sizeof(buf);
	len = file_avail(ds->e, ds->strtab + d->d_un.d_val, len);
	if (!len || elf_file_read(ds->e, ds->strtab + d->d_un.d_val, buf, len) ||
	    !memchr(buf, '\0', len))
		return 0;
	return ds->fn(buf, ds->arg);
}

int elf_file_dynstr(struct elf_file *e, int64_t tag, int (*fn)(const char *s, void *arg), void *arg)
{
	struct dynstr ds = { .e = e, .tag = tag, .fn = fn, .arg = arg };
	struct dynamic d = { 0 };
	int err = elf_dynamic_each(e, dynamic_take, &d);

	if (err)
		return err;
	if (!file_avail(e, d.strtab, 1))
		return -ENOENT;
	ds.strtab = d.strtab;
	ds.strsz = d.strsz;
	return elf_dynamic_each(e, dynstr_take, &ds);
}
