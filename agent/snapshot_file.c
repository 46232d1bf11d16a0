// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outfile.h"
#include "snapshot.h"
#include "snapshot_text.h"

#define FILE_MAX ((size_t)128 << 20) /* compressed; there is no larger text */

int snapshot_decode(const unsigned char *bytes, size_t len, const char *name, struct snapshot *out,
		    struct diag *d)
{
	char *text = NULL;
	size_t n = 0;
	int err = snapshot_inflate(bytes, len, name, &text, &n, d);

	if (err)
		return err;
	err = snapshot_parse(text, n, name, out, d);
	free(text);
	return err;
}

/* ---- reading */

/* Also from a pipe: 0, and the caller frees *out; -EFBIG over max, or the errno of read. */
static int read_all(int fd, size_t max, unsigned char **out, size_t *len)
{
	size_t cap = 0, n = 0;
	unsigned char *buf = NULL, *grown;
	ssize_t got = 0;

	do {
		n += (size_t)got;
		if (n > max) {
			free(buf);
			return -EFBIG;
		}
		if (n == cap) {
			cap = cap ? cap * 2 : 65536;
			grown = realloc(buf, cap);
			if (!grown) {
				free(buf);
				return -ENOMEM;
			}
			buf = grown;
		}
		got = read(fd, buf + n, cap - n);
	} while (got > 0);
	if (got < 0) {
		free(buf);
		return errno ? -errno : -EIO;
	}
	*out = buf;
	*len = n;
	return 0;
}

static int unreadable(const char *path, int err, struct diag *d)
{
	if (err == -ENOMEM)
		return diag_internal(d, err, "reading a snapshot");
	if (err == -EFBIG)
		return snapshot_is_none(path, d);
	return diag_fail(d, err, HM_USAGE, "cannot-read", "give the path of a snapshot",
			 "cannot read %.150s: %s", path, strerror(-err));
}

int snapshot_load(const char *path, struct snapshot *out, struct diag *d)
{
	unsigned char *bytes = NULL;
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), err;

	if (fd < 0)
		return unreadable(path, errno ? -errno : -EIO, d);
	err = read_all(fd, FILE_MAX, &bytes, &len);
	close(fd);
	if (err)
		return unreadable(path, err, d);
	err = snapshot_decode(bytes, len, path, out, d);
	free(bytes);
	return err;
}

/* ---- writing */

static const struct outfile_kind snapshot_kind = { "snapshot", snapshot_begins };

int snapshot_save(const char *path, const unsigned char *bytes, size_t len, bool force,
		  struct diag *d)
{
	return outfile_save(path, bytes, len, &snapshot_kind, force, d);
}

int snapshot_place(const char *path, bool force, struct diag *d)
{
	return outfile_check(path, &snapshot_kind, force, d);
}
