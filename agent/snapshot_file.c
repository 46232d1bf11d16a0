// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot.h"
#include "snapshot_text.h"

#define FILE_MAX ((size_t)128 << 20) /* compressed; there is no larger text */
#define HEAD	 4096		     /* enough of a file to tell what it is */

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

static int unwritable(const char *path, int err, struct diag *d)
{
	return diag_fail(d, err, HM_CALL_FAILED, "cannot-write",
			 "nothing is left of it; give a path where there is room and that may be "
			 "written, or - for stdout",
			 "cannot write %.150s: %s", path, strerror(-err));
}

static bool is_snapshot(int fd)
{
	unsigned char head[HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n > 0 && snapshot_begins(head, (size_t)n);
}

/* What is there, if anything, may be replaced. *there says whether there is something. */
static int check_place(const char *path, bool force, bool *there, struct diag *d)
{
	struct stat st;
	bool own = false;
	int fd;

	*there = lstat(path, &st) == 0;
	if (!*there)
		return errno == ENOENT ? 0 : unwritable(path, -errno, d);
	if (!S_ISREG(st.st_mode))
		return diag_fail(d, -EEXIST, HM_USAGE, "not-replaced", "give another name",
				 "%.150s is there, and is no regular file", path);
	if (force)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		own = is_snapshot(fd);
		close(fd);
	}
	if (own)
		return 0;
	return diag_fail(d, -EEXIST, HM_USAGE, "not-replaced",
			 "give another name, or --force to replace it",
			 "%.150s is there, and is no snapshot", path);
}

static int write_all(int fd, const unsigned char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

/* Nobody's file that has come meanwhile is replaced, where the file system knows how. */
static int rename_to(const char *from, const char *to, bool replace)
{
	if (replace)
		return rename(from, to) ? -errno : 0;
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return rename(from, to) ? -errno : 0;
}

/* The new name is on disk as well. What cannot do that has it all the same. */
static void sync_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!fsync(fd);
	close(fd);
}

int snapshot_save(const char *path, const unsigned char *bytes, size_t len, bool force,
		  struct diag *d)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX], temp[PATH_MAX + 32];
	bool there;
	int fd, err = check_place(path, force, &there, d);

	if (err)
		return err;
	if (strlen(path) >= sizeof(dir))
		return unwritable(path, -ENAMETOOLONG, d);
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 2,
		 slash ? path : "./");
	snprintf(temp, sizeof(temp), "%s.heapmedic-XXXXXX", dir);
	fd = mkostemp(temp, O_CLOEXEC); /* O_EXCL, mode 0600 */
	if (fd < 0)
		return unwritable(path, -errno, d);
	err = write_all(fd, bytes, len);
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		err = rename_to(temp, path, there);
	if (err) {
		unlink(temp);
		return unwritable(path, err, d);
	}
	sync_dir(dir);
	return 0;
}
