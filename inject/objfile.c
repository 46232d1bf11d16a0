// SPDX-License-Identifier: GPL-3.0-or-later
#include "objfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "elf.h"
#include "in_root.h"
#include "mem.h"

#define BUILD_ID_MAX 64
#define FIRST_MAX    4096

/*
 * Turns an O_PATH descriptor into one for reading, if it is a regular file. A device or a fifo is
 * never opened: that alone could have effects, or block. Closes path_fd.
 */
static int reopen(int path_fd, int *fd)
{
	char name[64];
	struct stat st;
	int err = 0;

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
		*fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (*fd < 0)
			err = -errno;
	}
	close(path_fd);
	return err;
}

/* Same first page and same build id as in memory, so the same contents for all that we look for. */
static bool same_contents(int fd, const struct map *head, const struct image *im)
{
	unsigned char mem[FIRST_MAX], file[FIRST_MAX], id[BUILD_ID_MAX];
	const unsigned char *file_id;
	struct elf_file *e;
	size_t len, n;
	ssize_t got = pread(fd, file, sizeof(file), 0);
	bool same;
	int copy;

	if (got < (ssize_t)sizeof(Elf64_Ehdr) || mem_read(im->pid, head->start, mem, (size_t)got) ||
	    memcmp(mem, file, (size_t)got))
		return false;
	len = image_build_id(im, id, sizeof(id));
	if (!len)
		return true;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0 || elf_file_open(copy, &e))
		return false;
	n = elf_file_build_id(e, &file_id);
	same = n == len && !memcmp(id, file_id, n);
	elf_file_close(e);
	return same;
}

static int check_same(int fd, const struct map *head, const struct image *im)
{
	unsigned char id[BUILD_ID_MAX];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_ino == head->inode) {
		if (st.st_dev == makedev(head->dev_major, head->dev_minor))
			return 0;
		return same_contents(fd, head, im) ? 0 : -ESTALE;
	}
	/* Another inode number as well: only a build id is proof enough. */
	if (!image_build_id(im, id, sizeof(id)) || !same_contents(fd, head, im))
		return -ESTALE;
	return 0;
}

static int open_by_path(int procfd, const struct map *head, const struct image *im, int *fd)
{
	int err;

	if (head->deleted || head->name[0] != '/')
		return -ENOENT;
	err = reopen(open_in_root(procfd, head->name), fd);
	if (err)
		return err;
	err = check_same(*fd, head, im);
	if (err)
		close(*fd);
	return err;
}

static int open_main(int procfd, const struct map *head, const struct image *im, int *fd)
{
	int err = reopen(openat(procfd, "exe", O_PATH | O_CLOEXEC), fd);

	if (err)
		return err;
	err = check_same(*fd, head, im);
	if (err)
		close(*fd);
	return err;
}

int objfile_open(int procfd, const struct map *head, const struct image *im, bool is_main, int *fd)
{
	char name[64];
	int err;

	if (!head->inode)
		return -ENOENT;
	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)head->start,
		 (unsigned long long)head->end);
	err = reopen(openat(procfd, name, O_PATH | O_CLOEXEC), fd);
	if (!err)
		return 0;
	if (is_main) {
		err = open_main(procfd, head, im, fd);
		if (!err)
			return 0;
	}
	return open_by_path(procfd, head, im, fd);
}

int objfile_open_debug(int procfd, const unsigned char *id, size_t len, int *fd)
{
	static const char hex[] = "0123456789abcdef", dir[] = "/usr/lib/debug/.build-id/";
	char path[sizeof(dir) + 2 * BUILD_ID_MAX + sizeof("/.debug")];
	char *p = path + sizeof(dir) - 1;
	size_t i;

	if (len < 2 || len > BUILD_ID_MAX)
		return -ENOENT;
	memcpy(path, dir, sizeof(dir));
	for (i = 0; i < len; i++) {
		*p++ = hex[id[i] >> 4];
		*p++ = hex[id[i] & 15];
		if (i == 0)
			*p++ = '/';
	}
	strcpy(p, ".debug");
	return objfile_open_path(procfd, path, fd);
}

/* /proc and its like: to open or read one of their files may do something. */
static bool is_made_up(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) || fstat(fd, &st))
		return false;
	return !st.st_size || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == DEBUGFS_MAGIC || fs.f_type == TRACEFS_MAGIC;
}

static int open_plain(int path_fd, int *fd)
{
	if (is_made_up(path_fd)) {
		close(path_fd);
		return -EINVAL;
	}
	return reopen(path_fd, fd);
}

int objfile_open_path(int procfd, const char *path, int *fd)
{
	static const char dir[] = "/usr/lib/debug/";

	if (path[0] != '/')
		return -ENOENT;
	if (procfd >= 0) {
		int err = open_plain(open_in_root(procfd, path), fd);

		if (!err || strncmp(path, dir, sizeof(dir) - 1) != 0)
			return err;
	}
	return open_plain(open(path, O_PATH | O_CLOEXEC), fd);
}
