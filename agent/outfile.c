// SPDX-License-Identifier: GPL-3.0-or-later
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 4096 /* enough of a file to tell what it is */

static int unwritable(const char *path, int err, struct diag *d)
{
	return diag_fail(d, err, HM_CALL_FAILED, "cannot-write",
			 "nothing is left of it; give a path where there is room and that may be "
			 "written",
			 "cannot write %.150s: %s", path, strerror(-err));
}

static bool is_kind(const char *path, const struct outfile_kind *kind)
{
	unsigned char head[HEAD];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = pread(fd, head, sizeof(head), 0);
	close(fd);
	return n > 0 && kind->begins(head, (size_t)n);
}

/* What is there, if anything, may be replaced. *there says whether there is something. */
static int check_place(const char *path, const struct outfile_kind *kind, bool force, bool *there,
		       struct diag *d)
{
	struct stat st;

	*there = false;
	/* who can write to stdout does not come here with it; nobody wants a file of that name */
	if (strcmp(path, "-") == 0)
		return diag_fail(d, -EINVAL, HM_USAGE, "bad-value", "give the path of a file",
				 "- is stdout, and this is written to a file only");
	*there = lstat(path, &st) == 0;
	if (!*there)
		return errno == ENOENT ? 0 : unwritable(path, -errno, d);
	if (!S_ISREG(st.st_mode))
		return diag_fail(d, -EEXIST, HM_USAGE, "not-replaced", "give another name",
				 "%.150s is there, and is no regular file", path);
	if (force || is_kind(path, kind))
		return 0;
	return diag_fail(d, -EEXIST, HM_USAGE, "not-replaced",
			 "give another name, or --force to replace it",
			 "%.150s is there, and is no %s", path, kind->name);
}

int outfile_check(const char *path, const struct outfile_kind *kind, bool force, struct diag *d)
{
	bool there;

	return check_place(path, kind, force, &there, d);
}

static int write_all(int fd, const unsigned char *bytes, size_t len, bool public)
{
	/* 0600 so far */
	if (public && fchmod(fd, 0644))
		return -errno;
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

/* Gives the nameless file a name that nobody has: linkat(2) through /proc, as open(2) tells. */
static int name_it(int fd, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* A name beside path that nobody has. It is given out by making the file, and that is removed. */
static int spare_name(char *temp)
{
	int fd = mkostemp(temp, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return unlink(temp) ? -errno : 0;
}

/* *written is false where the file system has no such files: then nothing was done. */
static int save_nameless(const char *path, const char *dir, char *temp, const void *bytes,
			 size_t len, bool public, bool there, bool *written)
{
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600), err;

	/* ENOENT, EISDIR, EOPNOTSUPP, by the kernel and the file system: the other way tells more.
	 */
	*written = fd >= 0;
	if (fd < 0)
		return 0;
	err = write_all(fd, bytes, len, public);
	if (!err && !there)
		err = name_it(fd, path);
	if (!err && there) {
		err = spare_name(temp);
		if (!err)
			err = name_it(fd, temp);
		if (!err) {
			err = rename_to(temp, path, true);
			if (err)
				unlink(temp);
		}
	}
	/* without /proc it cannot be named */
	if (err == -ENOENT)
		*written = false;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int save_named(const char *path, char *temp, const void *bytes, size_t len, bool public,
		      bool there)
{
	int fd = mkostemp(temp, O_CLOEXEC), err; /* O_EXCL, mode 0600 */

	if (fd < 0)
		return -errno;
	err = write_all(fd, bytes, len, public);
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		err = rename_to(temp, path, there);
	if (err)
		unlink(temp);
	return err;
}

int outfile_save(const char *path, const void *bytes, size_t len, const struct outfile_kind *kind,
		 bool force, struct diag *d)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX], temp[PATH_MAX + 32];
	bool there, written;
	int err = check_place(path, kind, force, &there, d);

	if (err)
		return err;
	if (strlen(path) >= sizeof(dir))
		return unwritable(path, -ENAMETOOLONG, d);
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 2,
		 slash ? path : "./");
	snprintf(temp, sizeof(temp), "%s.heapmedic-XXXXXX", dir);
	err = save_nameless(path, dir, temp, bytes, len, kind->public, there, &written);
	if (!written) {
		snprintf(temp, sizeof(temp), "%s.heapmedic-XXXXXX", dir);
		err = save_named(path, temp, bytes, len, kind->public, there);
	}
	if (err)
		return unwritable(path, err, d);
	sync_dir(dir);
	return 0;
}
