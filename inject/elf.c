// SPDX-License-Identifier: GPL-3.0-or-later
#include "elf.h"

#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_private.h"

#define SEGMENTS_MAX 4096
#define NOTES_MAX    ((size_t)64 * 1024)

int elf_pread(int fd, void *buf, size_t len, uint64_t off)
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
	int err = elf_pread(fd, eh, sizeof(*eh), 0);

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

/*
 * More sections than the header has room to count are counted by the first one (System V ABI,
 * chapter 4, "ELF Header"). libelf sets up as many as that says, and a file with a hole may say
 * millions.
 */
static int check_sections(int fd, const Elf64_Ehdr *eh)
{
	Elf64_Shdr first;
	int err;

	if (eh->e_shnum || !eh->e_shoff)
		return 0;
	err = elf_pread(fd, &first, sizeof(first), eh->e_shoff);
	if (err)
		return err == -EBADMSG ? 0 : err; /* outside: there are none */
	return first.sh_size > ELF_SECTIONS_MAX ? -EBADMSG : 0;
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
		if (!elf_pread(e->fd, buf, (size_t)s->filesz, s->offset))
			take_build_id(e, buf, (size_t)s->filesz, (size_t)s->align);
	}
}

const void *elf_section_bytes(struct elf_file *e, Elf_Scn *scn, size_t *len)
{
	Elf64_Shdr *sh = elf64_getshdr(scn);
	Elf_Data *d;

	if (!sh || sh->sh_type == SHT_NOBITS || !sh->sh_size || sh->sh_size > e->size ||
	    sh->sh_size > ELF_SECTION_MAX || sh->sh_offset > e->size - sh->sh_size)
		return NULL;
	/* libelf keeps what it has read: sections that overlap must not add up to any amount */
	if (sh->sh_size > e->section_budget)
		return NULL;
	e->section_budget -= sh->sh_size;
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

	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);

		if (!sh || sh->sh_type != SHT_NOTE || sh->sh_size > NOTES_MAX)
			continue;
		p = elf_section_bytes(e, scn, &len);
		if (p && take_build_id(e, p, len, (size_t)sh->sh_addralign))
			return;
	}
}

int elf_file_open(int fd, struct elf_file **out)
{
	struct elf_file *e;
	Elf64_Ehdr eh = { 0 };
	struct stat st;
	int err;

	err = fstat(fd, &st) ? -errno : check_ident(fd, &eh);
	if (!err)
		err = check_sections(fd, &eh);
	if (err)
		goto close_fd;
	err = -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		goto close_fd;
	e->fd = fd;
	e->size = (uint64_t)st.st_size;
	e->section_budget = e->size < ELF_SECTION_MAX ? 2 * e->size : 2 * ELF_SECTION_MAX;
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

const struct elf_segment *elf_segment_at(const struct elf_file *e, uint64_t vaddr, uint64_t *in)
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
		s = elf_segment_at(e, vaddr, &in);
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
			err = elf_pread(e->fd, p, (size_t)now, s->offset + in);
			if (err)
				return err == -EBADMSG ? -EFAULT : err;
		}
		p += now;
		vaddr += now;
		len -= (size_t)now;
	}
	return 0;
}

int elf_file_section(struct elf_file *e, const char *name, uint64_t *vaddr, uint64_t *size)
{
	Elf_Scn *scn = NULL;
	size_t strndx;
	unsigned n = 0;

	if (elf_getshdrstrndx(e->elf, &strndx))
		return -ENOENT;
	while (n++ < ELF_SECTIONS_MAX && (scn = elf_nextscn(e->elf, scn))) {
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
