// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

void fuzz_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, expr);
	abort();
}

uint64_t fuzz_number(struct fuzz_input *in, unsigned n)
{
	uint64_t v = 0;
	size_t len;
	const uint8_t *p = fuzz_bytes(in, n, &len);

	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t n, size_t *len)
{
	const uint8_t *p = in->p;

	*len = n < in->left ? n : in->left;
	in->p += *len;
	in->left -= *len;
	return p;
}

char *fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text != NULL);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

int fuzz_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
	return fd;
}

void fuzz_diag(const struct diag *d)
{
	FUZZ_CHECK(memchr(d->code, '\0', sizeof(d->code)) && d->code[0]);
	FUZZ_CHECK(memchr(d->text, '\0', sizeof(d->text)) && d->text[0]);
	FUZZ_CHECK(memchr(d->hint, '\0', sizeof(d->hint)));
	FUZZ_CHECK(d->exit > HM_OK && d->exit <= HM_INTERNAL);
}

void fuzz_printable(const char *text, size_t len, const char *allowed)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		FUZZ_CHECK((c >= 0x20 && c < 0x7f) || (c && strchr(allowed, c)));
	}
}

/* ---- a directory like /proc/PID */

static char proc_dir[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

static void remove_dir(void)
{
	if (nftw(proc_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS))
		perror(proc_dir);
}

int fuzz_procfd(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	/* in memory where that is possible: targets write files for each input */
	strcpy(proc_dir, "/dev/shm/heapmedic-fuzz-XXXXXX");
	if (!mkdtemp(proc_dir)) {
		strcpy(proc_dir, "/tmp/heapmedic-fuzz-XXXXXX");
		FUZZ_CHECK(mkdtemp(proc_dir) != NULL);
	}
	atexit(remove_dir);
	fd = open(proc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	return fd;
}

void fuzz_proc_file(const char *path, const void *data, size_t len)
{
	int fd = openat(fuzz_procfd(), path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, data, len) == (ssize_t)len);
	close(fd);
}
