// SPDX-License-Identifier: GPL-3.0-or-later
#include "userns.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inode of the first user namespace is a constant of the kernel (PROC_USER_INIT_INO). */
#define USERNS_INIT_INO 0xEFFFFFFDU
/* User namespaces nest at most 32 deep (user_namespaces(7)). */
#define DEEPEST 33
#define MAP_MAX ((size_t)64 * 1024)

static uint64_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino;
}

/*
 * Is ours among the ancestors of the namespace fd? The kernel shows parents only up to our own
 * (NS_GET_PARENT, EPERM beyond). The owner of the one directly below ours is noted: he has all
 * capabilities in it and below (user_namespaces(7)). Closes fd.
 */
static bool lies_below(int fd, struct permit *p)
{
	bool found = false;

	for (int i = 0; fd >= 0 && !found && i < DEEPEST; i++) {
		int parent = ioctl(fd, NS_GET_PARENT);
		uid_t owner;

		found = parent >= 0 && inode(parent) == p->userns;
		if (found && ioctl(fd, NS_GET_OWNER_UID, &owner) == 0) {
			p->owner_known = true;
			p->owner = owner;
		}
		close(fd);
		fd = parent;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* The map as it is seen from here: two that differ are of two namespaces, the same says nothing. */
static bool maps_differ(const struct target *t)
{
	char *theirs = NULL, *ours = NULL;
	size_t a, b;
	bool differ = proc_read(t->procfd, "uid_map", MAP_MAX, &theirs, &a) == 0 &&
		      proc_read(AT_FDCWD, "/proc/self/uid_map", MAP_MAX, &ours, &b) == 0 &&
		      (a != b || memcmp(theirs, ours, a) != 0);

	free(theirs);
	free(ours);
	return differ;
}

void userns_read(const struct target *t, struct permit *p)
{
	int fd = openat(t->procfd, "ns/user", O_RDONLY | O_CLOEXEC);

	p->userns = permit_ns_inode(AT_FDCWD, "/proc/self/ns/user");
	p->initial_userns = p->userns == USERNS_INIT_INO;
	p->t_userns = fd >= 0 ? inode(fd) : 0;
	p->place = USERNS_UNKNOWN;
	if (p->userns && p->t_userns == p->userns)
		p->place = USERNS_SAME;
	else if (p->userns && p->t_userns)
		p->place = lies_below(dup(fd), p) ? USERNS_BELOW : USERNS_OUTSIDE;
	else
		p->maps_differ = maps_differ(t);
	/* all others are below the first one */
	if (p->initial_userns && p->maps_differ)
		p->place = USERNS_BELOW;
	if (fd >= 0)
		close(fd);
}
