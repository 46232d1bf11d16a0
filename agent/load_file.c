// SPDX-License-Identifier: GPL-3.0-or-later
#include "load_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST 65536

static int grow(unsigned char **buf, size_t *cap)
{
	size_t more = *cap ? *cap * 2 : FIRST;
	unsigned char *grown = realloc(*buf, more);

	if (!grown)
		return -ENOMEM;
	*buf = grown;
	*cap = more;
	return 0;
}

/* *buf is the caller's also where it fails. */
static int read_all(int fd, size_t max, unsigned char **buf, size_t *len)
{
	size_t cap = 0, n = 0;
	ssize_t got = 0;

	do {
		n += (size_t)got;
		if (n > max)
			return -EFBIG;
		if (n + 1 >= cap && grow(buf, &cap))
			return -ENOMEM;
		got = read(fd, *buf + n, cap - n - 1); /* EINTR: Ctrl-C ends it */
	} while (got > 0);
	(*buf)[n] = '\0';
	*len = n;
	if (got < 0)
		return errno ? -errno : -EIO;
	return 0;
}

int load_file(const char *path, size_t max, unsigned char **out, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), err;

	*out = NULL;
	*len = 0;
	if (fd < 0)
		return errno ? -errno : -EIO;
	err = read_all(fd, max, out, len);
	close(fd);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}
