// SPDX-License-Identifier: GPL-3.0-or-later
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "status.h"

/* pipefs and shmem have no other names (linux/magic.h) */
#define PIPEFS_MAGIC 0x50495045
#define TMPFS_MAGIC  0x01021994

/*
 * The number comes from the target's memory, and opening by /proc needs no right of the target's:
 * it could name a file that it may not write to, or has open by O_PATH only. So it must be one of
 * the things that the payload makes: an unnamed pipe, or a memory file, which has no link and
 * belongs to the thread that made it.
 */
static int check(const struct target *t, pid_t tid, int fd, enum descriptor_kind kind)
{
	struct proc_status maker;
	struct statfs fs;
	struct stat st;
	char path[48];
	int rc;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	if (kind == DESCRIPTOR_PIPE)
		return S_ISFIFO(st.st_mode) && fs.f_type == PIPEFS_MAGIC ? 0 : -EPROTO;
	if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC || st.st_nlink)
		return -EPROTO;
	snprintf(path, sizeof(path), "task/%d/status", (int)tid);
	rc = status_read(t->procfd, path, &maker);
	if (rc)
		return rc;
	return st.st_uid == maker.uid[3] ? 0 : -EPROTO;
}

int descriptor_open(const struct target *t, pid_t tid, int fd, enum descriptor_kind kind, int flags,
		    int *out)
{
	char path[64];
	int at, rc;

	snprintf(path, sizeof(path), "task/%d/fd/%d", (int)tid, fd);
	at = openat(t->procfd, path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -errno;
	rc = check(t, tid, at, kind);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	if (rc == 0) {
		*out = open(path, flags | O_CLOEXEC);
		rc = *out < 0 ? -errno : 0;
	}
	close(at);
	return rc;
}
