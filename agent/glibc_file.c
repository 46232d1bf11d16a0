// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_file.h"

#include <errno.h>
#include <string.h>

enum file_offset {
	OFF_FLAGS = 0,
	OFF_READ_PTR = 8,
	OFF_READ_END = 16,
	OFF_READ_BASE = 24,
	OFF_WRITE_BASE = 32,
	OFF_WRITE_PTR = 40,
	OFF_WRITE_END = 48,
	OFF_BUF_BASE = 56,
	OFF_BUF_END = 64,
	OFF_FILENO = 112,
	OFF_LOCK = 136,
	OFF_OFFSET = 144,
	OFF_WIDE = 160,
	OFF_MODE = 192,
	OFF_VTABLE = 216,
};

#define IO_MAGIC	     0xfbad0000u
#define IO_MAGIC_MASK	     0xffff0000u
#define IO_USER_BUF	     0x0001u /* the buffer is not glibc's to free */
#define IO_UNBUFFERED	     0x0002u
#define IO_NO_READS	     0x0004u
#define IO_ERR_SEEN	     0x0020u
#define IO_CURRENTLY_PUTTING 0x0800u
#define IO_USER_LOCK	     0x8000u

static uint64_t get64(const unsigned char *file, size_t off)
{
	uint64_t v;

	memcpy(&v, file + off, sizeof(v));
	return v;
}

static void put64(unsigned char *file, size_t off, uint64_t v)
{
	memcpy(file + off, &v, sizeof(v));
}

static uint32_t get32(const unsigned char *file, size_t off)
{
	uint32_t v;

	memcpy(&v, file + off, sizeof(v));
	return v;
}

static void put32(unsigned char *file, size_t off, uint32_t v)
{
	memcpy(file + off, &v, sizeof(v));
}

int glibc_file_build(unsigned char file[GLIBC_FILE_SIZE], const struct glibc_file_args *a)
{
	uint32_t flags = get32(file, OFF_FLAGS);
	uint64_t wide = get64(file, OFF_WIDE), vtable = get64(file, OFF_VTABLE);
	int mode = (int)get32(file, OFF_MODE);

	if (a->vtable)
		vtable = a->vtable;
	else if (mode > 0)
		return -EBADMSG;
	if ((flags & IO_MAGIC_MASK) != IO_MAGIC || !vtable)
		return -EBADMSG;
	memset(file, 0, GLIBC_FILE_SIZE);
	put32(file, OFF_FLAGS,
	      IO_MAGIC | IO_USER_BUF | IO_NO_READS | IO_CURRENTLY_PUTTING | IO_USER_LOCK);
	/*
	 * read_end == write_base tells glibc that the descriptor stands where the buffer begins;
	 * where they differ it seeks before it writes out a full buffer, and keeps the buffer if
	 * that fails, as it does without a descriptor. A failed write would empty the buffer.
	 */
	put64(file, OFF_READ_PTR, a->buf + (a->fd < 0));
	put64(file, OFF_READ_END, a->buf + (a->fd < 0));
	put64(file, OFF_READ_BASE, a->buf);
	put64(file, OFF_WRITE_BASE, a->buf);
	put64(file, OFF_WRITE_PTR, a->buf);
	put64(file, OFF_WRITE_END, a->buf + a->len);
	put64(file, OFF_BUF_BASE, a->buf);
	put64(file, OFF_BUF_END, a->buf + a->len);
	put32(file, OFF_FILENO, (uint32_t)a->fd);
	put64(file, OFF_LOCK, a->lock);
	put64(file, OFF_OFFSET, UINT64_MAX); /* position not known */
	put64(file, OFF_WIDE, wide);
	put32(file, OFF_MODE, (uint32_t)-1); /* bytes, decided */
	put64(file, OFF_VTABLE, vtable);
	return 0;
}

size_t glibc_file_used(const unsigned char file[GLIBC_FILE_SIZE], const struct glibc_file_args *a,
		       bool *cut)
{
	uint64_t at = get64(file, OFF_WRITE_PTR);

	*cut = get32(file, OFF_FLAGS) & IO_ERR_SEEN || (a->fd < 0 && at == a->buf + a->len);
	if (at < a->buf || at > a->buf + a->len) {
		*cut = true;
		return 0;
	}
	return (size_t)(at - a->buf);
}

void glibc_file_inspect(const unsigned char file[GLIBC_FILE_SIZE], struct glibc_file_state *out)
{
	uint32_t flags = get32(file, OFF_FLAGS);

	*out = (struct glibc_file_state){
		.valid = (flags & IO_MAGIC_MASK) == IO_MAGIC,
		.unbuffered = flags & IO_UNBUFFERED,
		.buffered_bytes = get64(file, OFF_WRITE_PTR) > get64(file, OFF_WRITE_BASE),
		.fd = (int)get32(file, OFF_FILENO),
		.mode = (int)get32(file, OFF_MODE),
		.lock = get64(file, OFF_LOCK),
		.vtable = get64(file, OFF_VTABLE),
	};
}
