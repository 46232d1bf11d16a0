// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_IMAGE_H
#define HM_IMAGE_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"

/* An ELF object as it lies mapped in a process: what its program headers there say. */
struct image {
	pid_t pid;
	uint64_t bias;	     /* address = address in the file + bias, modulo 2^64 */
	uint64_t start, end; /* whole pages of all PT_LOAD */
	uint64_t text_start, text_end;
	uint64_t eh_frame_hdr; /* 0 if none */
	uint64_t dynamic, dynamic_size;
	uint64_t interp, interp_size;
	uint64_t ro_start, ro_end; /* pages from its start that no PT_LOAD makes writable */
	Elf64_Ehdr ehdr;
	Elf64_Phdr *ph;
	size_t n_ph;
};

/*
 * Reads the headers of the object whose ELF header is mapped at head. -ENOEXEC if there is no
 * x86-64 ELF header, -EBADMSG if its program headers are nonsense, or the errno of mem_read. The
 * caller frees with image_free.
 */
HM_MUST_CHECK int image_read(pid_t pid, uint64_t head, struct image *out);
void image_free(struct image *im);
/* Copies the build id in the target's memory to buf; its length, 0 if there is none. */
size_t image_build_id(const struct image *im, unsigned char *buf, size_t size);
/*
 * A file of our own (a memfd) with the contents of the object's segments, for when there is no file
 * to open: enough for its dynamic symbols. Writes its descriptor to *fd. *budget is how many bytes
 * may still be copied, over all objects: their program headers say what they like. -EFBIG.
 */
HM_MUST_CHECK int image_to_file(const struct image *im, uint64_t *budget, int *fd);
#endif
