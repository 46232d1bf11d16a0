// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * epoll MS: one thread that waits in epoll_wait for MS, again and again. A wait must not end early,
 * and one that was interrupted must not begin anew: more than twice as long and a half is wrong
 * too.
 */
#include <sys/epoll.h>

#include "victim.h"

int main(int argc, char **argv)
{
	int ms = argc > 1 ? atoi(argv[1]) : 1000;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev;

	if (fd < 0 || ms <= 0)
		wrong("usage: epoll MS");
	victim_ready();
	while (!victim_over(0)) {
		uint64_t start = now_ns();
		int n = epoll_wait(fd, &ev, 1, ms);
		uint64_t took = now_ns() - start;

		if (n)
			wrong("epoll_wait: %s", n < 0 ? strerror(errno) : "an event");
		if (took < (uint64_t)ms * MS)
			wrong("epoll_wait of %d ms took %llu us", ms,
			      (unsigned long long)took / 1000);
		if (took > (uint64_t)ms * MS * 5 / 2)
			wrong("epoll_wait of %d ms took %llu us", ms,
			      (unsigned long long)took / 1000);
	}
	return 0;
}
