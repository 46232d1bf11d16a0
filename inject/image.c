// SPDX-License-Identifier: GPL-3.0-or-later
#include "image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf.h"
#include "mem.h"
#include "pages.h"

#define PHNUM_MAX   512
#define SPAN_MAX    ((uint64_t)1 << 40)
#define USER_MAX    ((uint64_t)1 << 56)
#define COPY_MAX    ((uint64_t)64 * 1024 * 1024)
#define DYNAMIC_MAX ((uint64_t)64 * 1024)

static bool header_ok(const Elf64_Ehdr *eh)
{
	return !memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh->e_ident[EI_DATA] == ELFDATA2LSB && eh->e_machine == EM_X86_64 &&
	       (eh->e_type == ET_EXEC || eh->e_type == ET_DYN);
}

/* The program headers, from the first bytes of the object where they nearly always are. */
static int take_phdrs(struct image *im, uint64_t head, const char *first, size_t have)
{
	size_t n = im->ehdr.e_phnum, len = n * sizeof(Elf64_Phdr);

	if (!n || n > PHNUM_MAX || im->ehdr.e_phentsize != sizeof(Elf64_Phdr) ||
	    im->ehdr.e_phoff > SPAN_MAX)
		return -EBADMSG;
	im->ph = malloc(len);
	if (!im->ph)
		return -ENOMEM;
	im->n_ph = n;
	if (im->ehdr.e_phoff <= have && len <= have - im->ehdr.e_phoff) {
		memcpy(im->ph, first + im->ehdr.e_phoff, len);
		return 0;
	}
	return mem_read(im->pid, head + im->ehdr.e_phoff, im->ph, len);
}

/* Extent of the PT_LOADs, and the bias that maps the first page of the file to head. */
static int take_loads(struct image *im, uint64_t head)
{
	uint64_t lo = UINT64_MAX, hi = 0, xlo = UINT64_MAX, xhi = 0;
	bool biased = false;
	size_t i;

	for (i = 0; i < im->n_ph; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type != PT_LOAD || !p->p_memsz)
			continue;
		if (p->p_vaddr > USER_MAX || p->p_memsz > SPAN_MAX)
			return -EBADMSG;
		if (!biased && p->p_offset < PAGES_SIZE) {
			im->bias = head - pages_floor(p->p_vaddr);
			biased = true;
		}
		lo = p->p_vaddr < lo ? p->p_vaddr : lo;
		hi = p->p_vaddr + p->p_memsz > hi ? p->p_vaddr + p->p_memsz : hi;
		if (!(p->p_flags & PF_X))
			continue;
		xlo = p->p_vaddr < xlo ? p->p_vaddr : xlo;
		xhi = p->p_vaddr + p->p_memsz > xhi ? p->p_vaddr + p->p_memsz : xhi;
	}
	if (!biased || hi <= lo || hi - lo > SPAN_MAX)
		return -EBADMSG;
	im->start = im->bias + pages_floor(lo);
	im->end = im->bias + pages_ceil(hi);
	if (im->end <= im->start || im->end > USER_MAX)
		return -EBADMSG;
	if (xhi) {
		im->text_start = im->bias + xlo;
		im->text_end = im->bias + xhi;
	}
	return 0;
}

/* Headers, text and unwind tables come before everything writable in what linkers lay out; what
 * does not is merely not counted as read-only. */
static void take_readonly(struct image *im)
{
	uint64_t w = im->end, at;
	size_t i;

	for (i = 0; i < im->n_ph; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		at = im->bias + pages_floor(p->p_vaddr);
		if (p->p_type == PT_LOAD && p->p_memsz && (p->p_flags & PF_W) && at < w)
			w = at;
	}
	im->ro_start = im->start;
	im->ro_end = w > im->start ? w : im->start;
}

static void take_others(struct image *im)
{
	size_t i;

	for (i = 0; i < im->n_ph; i++) {
		const Elf64_Phdr *p = &im->ph[i];
		uint64_t at = im->bias + p->p_vaddr;

		if (at < im->start || at >= im->end || p->p_memsz > im->end - at)
			continue;
		if (p->p_type == PT_GNU_EH_FRAME) {
			im->eh_frame_hdr = at;
		} else if (p->p_type == PT_DYNAMIC) {
			im->dynamic = at;
			im->dynamic_size = p->p_memsz;
		} else if (p->p_type == PT_INTERP) {
			im->interp = at;
			im->interp_size = p->p_memsz;
		}
	}
}

int image_read(pid_t pid, uint64_t head, struct image *out)
{
	char first[2048];
	ssize_t n;
	int err;

	memset(out, 0, sizeof(*out));
	out->pid = pid;
	n = mem_read_some(pid, head, first, sizeof(first));
	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(out->ehdr))
		return -ENOEXEC;
	memcpy(&out->ehdr, first, sizeof(out->ehdr));
	if (!header_ok(&out->ehdr))
		return -ENOEXEC;
	err = take_phdrs(out, head, first, (size_t)n);
	if (!err)
		err = take_loads(out, head);
	if (err) {
		image_free(out);
		return err;
	}
	take_readonly(out);
	take_others(out);
	return 0;
}

void image_free(struct image *im)
{
	free(im->ph);
	im->ph = NULL;
	im->n_ph = 0;
}

size_t image_build_id(const struct image *im, unsigned char *buf, size_t size)
{
	const unsigned char *id;
	char notes[4096];
	size_t i, n;

	for (i = 0; i < im->n_ph; i++) {
		const Elf64_Phdr *p = &im->ph[i];

		if (p->p_type != PT_NOTE || !p->p_filesz || p->p_filesz > sizeof(notes))
			continue;
		if (mem_read(im->pid, im->bias + p->p_vaddr, notes, (size_t)p->p_filesz))
			continue;
		n = elf_note_build_id(notes, (size_t)p->p_filesz, (size_t)p->p_align, &id);
		if (n && n <= size) {
			memcpy(buf, id, n);
			return n;
		}
	}
	return 0;
}

static int write_all(int fd, const char *p, size_t len, uint64_t off)
{
	ssize_t n;

	while (len) {
		n = pwrite(fd, p, len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* glibc adds the load address to the pointers of a writable dynamic section
 * (elf/get-dynamic-info.h), musl does not: take it off again where a pointer lies inside the mapped
 * object. */
static void unbias_dynamic(const struct image *im, Elf64_Dyn *d, size_t n)
{
	size_t i;

	for (i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		uint64_t v = d[i].d_un.d_ptr;

		switch (d[i].d_tag) {
		case DT_SYMTAB:
		case DT_STRTAB:
		case DT_HASH:
		case DT_GNU_HASH:
		case DT_VERSYM:
			if (im->bias && v >= im->start && v < im->end)
				d[i].d_un.d_ptr = v - im->bias;
			break;
		default:
			break;
		}
	}
}

static int copy_dynamic(const struct image *im, const Elf64_Phdr *p, int fd)
{
	size_t len = (size_t)(p->p_filesz < DYNAMIC_MAX ? p->p_filesz : DYNAMIC_MAX);
	Elf64_Dyn *d;
	int err;

	len -= len % sizeof(*d);
	if (!len)
		return 0;
	d = malloc(len);
	if (!d)
		return -ENOMEM;
	err = mem_read(im->pid, im->bias + p->p_vaddr, d, len);
	if (!err) {
		unbias_dynamic(im, d, len / sizeof(*d));
		err = write_all(fd, (const char *)d, len, p->p_offset);
	}
	free(d);
	return err;
}

static int copy_segment(const struct image *im, const Elf64_Phdr *p, uint64_t *budget, int fd)
{
	char *buf;
	int err;

	if (p->p_filesz > COPY_MAX || p->p_filesz > *budget || p->p_offset > SPAN_MAX ||
	    p->p_filesz > p->p_memsz)
		return -EFBIG;
	*budget -= p->p_filesz;
	buf = malloc((size_t)p->p_filesz + 1);
	if (!buf)
		return -ENOMEM;
	err = mem_read(im->pid, im->bias + p->p_vaddr, buf, (size_t)p->p_filesz);
	if (!err)
		err = write_all(fd, buf, (size_t)p->p_filesz, p->p_offset);
	free(buf);
	return err;
}

/* The section headers are not part of any segment: without them symbols come from PT_DYNAMIC. */
static int copy_headers(const struct image *im, int fd)
{
	Elf64_Ehdr eh = im->ehdr;
	int err;

	eh.e_shoff = 0;
	eh.e_shnum = 0;
	eh.e_shstrndx = SHN_UNDEF;
	err = write_all(fd, (const char *)&eh, sizeof(eh), 0);
	if (err)
		return err;
	return write_all(fd, (const char *)im->ph, im->n_ph * sizeof(*im->ph), eh.e_phoff);
}

int image_to_file(const struct image *im, uint64_t *budget, int *fd)
{
	int out = memfd_create("image", MFD_CLOEXEC), err = 0;
	size_t i;

	if (out < 0)
		return -errno;
	for (i = 0; i < im->n_ph && !err; i++)
		if (im->ph[i].p_type == PT_LOAD && !(im->ph[i].p_flags & PF_W))
			err = copy_segment(im, &im->ph[i], budget, out);
	for (i = 0; i < im->n_ph && !err; i++)
		if (im->ph[i].p_type == PT_DYNAMIC && im->dynamic)
			err = copy_dynamic(im, &im->ph[i], out);
	if (!err)
		err = copy_headers(im, out);
	if (err) {
		close(out);
		return err;
	}
	*fd = out;
	return 0;
}
