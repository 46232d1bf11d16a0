// SPDX-License-Identifier: GPL-3.0-or-later
#include "in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Kernels before 5.6: component by component, without any symbolic link. Paths in maps and mount
 * points have none; a link that stands there now is another file anyhow.
 */
static int walk_in_root(int root, const char *path)
{
	char part[NAME_MAX + 1];
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0), next;
	size_t len;

	while (at >= 0 && *(path += strspn(path, "/"))) {
		len = strcspn(path, "/");
		if (len > NAME_MAX || (len == 2 && !memcmp(path, "..", 2))) {
			close(at);
			errno = len > NAME_MAX ? ENAMETOOLONG : EXDEV;
			return -1;
		}
		memcpy(part, path, len);
		part[len] = 0;
		path += len;
		next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
	}
	return at;
}

int open_in_root(int procfd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int root = openat(procfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd, saved;

	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* EPERM is what old seccomp filters answer for calls that they do not know. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = walk_in_root(root, path);
	saved = errno;
	close(root);
	errno = saved;
	return fd;
}
