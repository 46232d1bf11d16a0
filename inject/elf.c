// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_symtab.h"

#define SEGMENTS_MAX  4096
#define SECTIONS_MAX  65536
#define BUILD_ID_MAX  64
#define NOTES_MAX     ((size_t)64 * 1024)
#define DYNAMIC_MAX   ((size_t)64 * 1024)
#define HASH_READ_MAX ((size_t)32 * 1024 * 1024)
#define STRTAB_MAX    ((size_t)256 * 1024 * 1024)

struct elf_file {
	int fd;
	Elf *elf;
	uint64_t size; /* of the file */
	uint16_t type;
	struct elf_segment *seg;
	size_t n_seg;
	unsigned char build_id[BUILD_ID_MAX];
	size_t build_id_len;
	struct symtab dyn, sym; /* their bytes belong to elf, or to owned */
	bool dyn_read, sym_read, has_symtab;
	void *owned[4];		/* tables read through PT_DYNAMIC */
	struct elf_file *debug; /* separate debug file */
};

static int pread_all(int fd, void *buf, size_t len, uint64_t off)
{
	char *p = buf;
	ssize_t n;

	if (off > INT64_MAX - len)
		return -EBADMSG;
	while (len) {
		n = pread(fd, p, len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		p += n;
		len -= (size_t)n;
		off += (uint64_t)n;
	}
	return 0;
}

/* Before libelf sees the file: is it ours at all? */
static int check_ident(int fd, Elf64_Ehdr *eh)
{
	int err = pread_all(fd, eh, sizeof(*eh), 0);

	if (err == -EBADMSG)
		return -ENOEXEC; /* shorter than a header */
	if (err)
		return err;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != EM_X86_64)
		return -ENOEXEC;
	if (eh->e_ident[EI_VERSION] != EV_CURRENT)
		return -EBADMSG;
	return 0;
}

static int load_segments(struct elf_file *e)
{
	const Elf64_Phdr *ph;
	size_t n = 0, i;

	if (elf_getphdrnum(e->elf, &n) || n > SEGMENTS_MAX)
		return -EBADMSG;
	if (!n)
		return 0;
	ph = elf64_getphdr(e->elf);
	if (!ph)
		return -EBADMSG;
	e->seg = calloc(n, sizeof(*e->seg));
	if (!e->seg)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		e->seg[i] = (struct elf_segment){
			.type = ph[i].p_type,
			.flags = ph[i].p_flags,
			.offset = ph[i].p_offset,
			.vaddr = ph[i].p_vaddr,
			.filesz = ph[i].p_filesz,
			.memsz = ph[i].p_memsz,
			.align = ph[i].p_align,
		};
	e->n_seg = n;
	return 0;
}

size_t elf_note_build_id(const void *notes, size_t len, size_t align, const unsigned char **out)
{
	const unsigned char *p = notes;
	size_t pad = align == 8 ? 8 : 4, at = 0, name, desc;
	Elf64_Nhdr nh;

	/* Each round moves on by a header at least. */
	while (len - at >= sizeof(nh)) {
		memcpy(&nh, p + at, sizeof(nh));
		name = at + sizeof(nh);
		if (nh.n_namesz > len - name)
			return 0;
		desc = (name + nh.n_namesz + pad - 1) & ~(pad - 1);
		if (desc > len || nh.n_descsz > len - desc)
			return 0;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    !memcmp(p + name, "GNU", 4) && nh.n_descsz) {
			*out = p + desc;
			return nh.n_descsz;
		}
		at = (desc + nh.n_descsz + pad - 1) & ~(pad - 1);
		if (at > len)
			return 0;
	}
	return 0;
}

static bool take_build_id(struct elf_file *e, const void *notes, size_t len, size_t align)
{
	const unsigned char *id;
	size_t n = elf_note_build_id(notes, len, align, &id);

	if (!n || n > sizeof(e->build_id))
		return false;
	memcpy(e->build_id, id, n);
	e->build_id_len = n;
	return true;
}

static void build_id_from_segments(struct elf_file *e)
{
	char buf[4096];
	size_t i;

	for (i = 0; i < e->n_seg && !e->build_id_len; i++) {
		const struct elf_segment *s = &e->seg[i];

		if (s->type != PT_NOTE || !s->filesz || s->filesz > sizeof(buf))
			continue;
		if (!pread_all(e->fd, buf, (size_t)s->filesz, s->offset))
			take_build_id(e, buf, (size_t)s->filesz, (size_t)s->align);
	}
}

/* A section's bytes; libelf reads them into a buffer of its own that lives as long as e->elf. */
static const void *section_bytes(struct elf_file *e, Elf_Scn *scn, size_t *len)
{
	Elf64_Shdr *sh = elf64_getshdr(scn);
	Elf_Data *d;

	if (!sh || sh->sh_type == SHT_NOBITS || !sh->sh_size || sh->sh_size > e->size ||
	    sh->sh_offset > e->size - sh->sh_size)
		return NULL;
	d = elf_rawdata(scn, NULL);
	if (!d || !d->d_buf || (uintptr_t)d->d_buf % sizeof(uint64_t))
		return NULL;
	*len = d->d_size;
	return d->d_buf;
}

/* Debug files have program headers that point nowhere: there the note is found by its section. */
static void build_id_from_sections(struct elf_file *e)
{
	Elf_Scn *scn = NULL;
	const void *p;
	size_t len;
	unsigned n = 0;

	while (n++ < SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh || sh->sh_type != SHT_NOTE || sh->sh_size > NOTES_MAX)
			continue;
		p = section_bytes(e, scn, &len);
		if (p && take_build_id(e, p, len, (size_t)sh->sh_addralign))
			return;
	}
}

int elf_file_open(int fd, struct elf_file **out)
{
	struct elf_file *e;
	Elf64_Ehdr eh;
	struct stat st;
	int err;

	err = fstat(fd, &st) ? -errno : check_ident(fd, &eh);
	if (err)
		goto close_fd;
	err = -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		goto close_fd;
	e->fd = fd;
	e->size = (uint64_t)st.st_size;
	e->type = eh.e_type;
	err = -EBADMSG;
	if (elf_version(EV_CURRENT) == EV_NONE)
		goto close_file;
	e->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF)
		goto close_file;
	err = load_segments(e);
	if (err)
		goto close_file;
	build_id_from_segments(e);
	if (!e->build_id_len)
		build_id_from_sections(e);
	*out = e;
	return 0;
close_file:
	elf_file_close(e);
	return err;
close_fd:
	close(fd);
	return err;
}

void elf_file_close(struct elf_file *e)
{
	size_t i;

	if (!e)
		return;
	elf_file_close(e->debug);
	symtab_drop(&e->dyn);
	symtab_drop(&e->sym);
	for (i = 0; i < sizeof(e->owned) / sizeof(*e->owned); i++)
		free(e->owned[i]);
	free(e->seg);
	elf_end(e->elf);
	close(e->fd);
	free(e);
}

uint16_t elf_file_type(const struct elf_file *e)
{
	return e->type;
}

size_t elf_file_segments(const struct elf_file *e, const struct elf_segment **out)
{
	*out = e->seg;
	return e->n_seg;
}

size_t elf_file_build_id(const struct elf_file *e, const unsigned char **out)
{
	*out = e->build_id;
	return e->build_id_len;
}

/* The PT_LOAD that holds vaddr, with the distance from its start. */
static const struct elf_segment *segment_at(const struct elf_file *e, uint64_t vaddr, uint64_t *in)
{
	size_t i;

	for (i = 0; i < e->n_seg; i++) {
		const struct elf_segment *s = &e->seg[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz) {
			*in = vaddr - s->vaddr;
			return s;
		}
	}
	return NULL;
}

int elf_file_read(const struct elf_file *e, uint64_t vaddr, void *buf, size_t len)
{
	const struct elf_segment *s;
	char *p = buf;
	uint64_t in, now;
	int err;

	while (len) {
		s = segment_at(e, vaddr, &in);
		if (!s)
			return -EFAULT;
		now = s->memsz - in;
		if (in < s->filesz && now > s->filesz - in)
			now = s->filesz - in;
		if (now > len)
			now = len;
		if (in >= s->filesz) {
			memset(p, 0, (size_t)now);
		} else {
			if (s->offset > UINT64_MAX - in)
				return -EFAULT;
			err = pread_all(e->fd, p, (size_t)now, s->offset + in);
			if (err)
				return err == -EBADMSG ? -EFAULT : err;
		}
		p += now;
		vaddr += now;
		len -= (size_t)now;
	}
	return 0;
}

/* What PT_DYNAMIC says about the symbols; addresses as in the file. */
struct dynamic {
	uint64_t symtab, strtab, strsz, gnu, sysv, versym;
};

/* Calls fn for each entry up to DT_NULL; -ENOENT without PT_DYNAMIC. */
static int dynamic_each(const struct elf_file *e, int (*fn)(const Elf64_Dyn *d, void *arg),
			void *arg)
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

	s = vaddr ? segment_at(e, vaddr, &in) : NULL;
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

static int dyn_from_segments(struct elf_file *e)
{
	struct symtab *t = &e->dyn;
	struct dynamic d = { 0 };
	const void *p;
	size_t len, n;
	int err = dynamic_each(e, dynamic_take, &d);

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
	t->sym = read_owned(e, 1, d.symtab, n * sizeof(Elf64_Sym), &len);
	t->n = len / sizeof(Elf64_Sym);
	p = read_owned(e, 2, d.strtab, d.strsz < STRTAB_MAX ? (size_t)d.strsz : STRTAB_MAX, &len);
	if (!t->sym || !p) {
		t->n = 0;
		return 0;
	}
	symtab_set_strings(t, p, len);
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
	sym = section_bytes(e, scn, &sym_len);
	str = section_bytes(e, strscn, &str_len);
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

	while (n++ < SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh)
			continue;
		if (sh->sh_type == SHT_DYNSYM && !t->n)
			table_from_section(e, t, scn);
		if (sh->sh_type != SHT_GNU_HASH && sh->sh_type != SHT_HASH &&
		    sh->sh_type != SHT_GNU_versym)
			continue;
		p = section_bytes(e, scn, &len);
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

static int need_dyn(struct elf_file *e)
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
	while (n++ < SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
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
	int err = need_dyn(e);

	return err ? err : symtab_lookup(&e->dyn, name, out);
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
	int err = need_dyn(e);

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
	int64_t tag;
	const char *str;
	size_t len;
	int (*fn)(const char *s, void *arg);
	void *arg;
};

static int dynstr_take(const Elf64_Dyn *d, void *arg)
{
	struct dynstr *ds = arg;

	if (d->d_tag != ds->tag || d->d_un.d_val >= ds->len)
		return 0;
	return ds->fn(ds->str + d->d_un.d_val, ds->arg);
}

int elf_file_dynstr(struct elf_file *e, int64_t tag, int (*fn)(const char *s, void *arg), void *arg)
{
	struct dynstr ds = { .tag = tag, .fn = fn, .arg = arg };
	struct symtab strings = { 0 };
	struct dynamic d = { 0 };
	size_t len;
	char *buf;
	int err = dynamic_each(e, dynamic_take, &d);

	if (err)
		return err;
	len = file_avail(e, d.strtab, d.strsz < STRTAB_MAX ? (size_t)d.strsz : STRTAB_MAX);
	if (!len)
		return -ENOENT;
	buf = malloc(len);
	if (!buf)
		return -ENOMEM;
	err = elf_file_read(e, d.strtab, buf, len);
	if (!err) {
		symtab_set_strings(&strings, buf, len);
		ds.str = strings.str;
		ds.len = strings.str_len;
		err = dynamic_each(e, dynstr_take, &ds);
	}
	free(buf);
	return err;
}

int elf_file_section(struct elf_file *e, const char *name, uint64_t *vaddr, uint64_t *size)
{
	Elf_Scn *scn = NULL;
	size_t strndx;
	unsigned n = 0;

	if (elf_getshdrstrndx(e->elf, &strndx))
		return -ENOENT;
	while (n++ < SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *have;

		if (!sh || !(sh->sh_flags & SHF_ALLOC) || sh->sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(e->elf, strndx, sh->sh_name);
		if (!have || strcmp(have, name))
			continue;
		*vaddr = sh->sh_addr;
		*size = sh->sh_size;
		return 0;
	}
	return -ENOENT;
}

int elf_file_add_debug(struct elf_file *e, struct elf_file *dbg)
{
	if (e->debug || !e->build_id_len || e->build_id_len != dbg->build_id_len ||
	    memcmp(e->build_id, dbg->build_id, e->build_id_len) || dbg->debug)
		return -EINVAL;
	e->debug = dbg;
	return 0;
}
