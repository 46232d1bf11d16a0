// SPDX-License-Identifier: GPL-3.0-or-later
#include "socket_wait.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "timeout.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* Only sockets are duplicated: closing a duplicate of another kind may mean something. */
static bool is_socket(const struct target *t, int fd)
{
	char path[32], kind[16];
	ssize_t n;

	snprintf(path, sizeof(path), "fd/%d", fd);
	n = readlinkat(t->procfd, path, kind, sizeof(kind));
	return n >= 7 && memcmp(kind, "socket:", 7) == 0;
}

static int which_timeout(long nr)
{
	return nr == SYS_write || nr == SYS_writev || nr == SYS_sendto || nr == SYS_sendmsg ||
			       nr == SYS_sendmmsg
		       ? SO_SNDTIMEO
		       : SO_RCVTIMEO;
}

bool socket_wait_is_timed(const struct target *t, long nr, int fd)
{
	struct timeval tv = { 0 };
	socklen_t len = sizeof(tv);
	bool timed;
	int own;

	if (!timeout_of_socket(nr) || t->pidfd < 0 || !is_socket(t, fd))
		return false;
	own = (int)syscall(SYS_pidfd_getfd, t->pidfd, fd, 0U);
	if (own < 0)
		return false;
	timed = getsockopt(own, SOL_SOCKET, which_timeout(nr), &tv, &len) == 0 &&
		(tv.tv_sec || tv.tv_usec);
	close(own);
	return timed;
}
