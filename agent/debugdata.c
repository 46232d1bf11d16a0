// SPDX-License-Identifier: GPL-3.0-or-later
#include "debugdata.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../inject/elf_range.h"

#define PIECE	   ((size_t)64 * 1024)
#define OUT_MAX	   ((uint64_t)64 << 20)
#define MEMORY_MAX ((uint64_t)80 << 20) /* what the decoder may take; xz -9 needs 65 MiB */

static bool write_all(int fd, const unsigned char *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* One round: input that is used up is read on, output goes to the file. LZMA_OK: once more. */
static lzma_ret unpack_some(lzma_stream *z, const struct elf_file *e, struct elf_range *left,
			    unsigned char *in, unsigned char *out, int fd)
{
	size_t len = left->size < PIECE ? (size_t)left->size : PIECE;
	lzma_ret ret;

	if (!z->avail_in && len) {
		if (elf_file_pread(e, left->offset, in, len))
			return LZMA_DATA_ERROR;
		left->offset += len;
		left->size -= len;
		z->next_in = in;
		z->avail_in = len;
	}
	z->next_out = out;
	z->avail_out = PIECE;
	ret = lzma_code(z, left->size ? LZMA_RUN : LZMA_FINISH);
	if (!write_all(fd, out, PIECE - z->avail_out) || z->total_out > OUT_MAX)
		return LZMA_DATA_ERROR;
	return ret;
}

static bool unpack(const struct elf_file *e, struct elf_range *from, int fd)
{
	lzma_stream z = LZMA_STREAM_INIT;
	unsigned char *in = malloc(PIECE), *out = malloc(PIECE);
	lzma_ret ret = in && out ? lzma_stream_decoder(&z, MEMORY_MAX, 0) : LZMA_MEM_ERROR;

	/* each round takes or gives bytes: liblzma says LZMA_BUF_ERROR when it can do neither */
	while (ret == LZMA_OK)
		ret = unpack_some(&z, e, from, in, out, fd);
	lzma_end(&z);
	free(in);
	free(out);
	return ret == LZMA_STREAM_END;
}

struct elf_file *debugdata_open(struct elf_file *e)
{
	struct elf_file *mini;
	struct elf_range r;
	int fd;

	if (elf_file_range(e, ".gnu_debugdata", &r, NULL))
		return NULL;
	fd = memfd_create("debugdata", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!unpack(e, &r, fd)) {
		close(fd);
		return NULL;
	}
	return elf_file_open(fd, &mini) ? NULL : mini;
}
