// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../inject/maps.h"
#include "../../inject/socket_wait.h"
#include "../../inject/threads.h"
#include "child.h"

struct ends {
	int plain, receives, sends, pipe;
};

static struct ends ends;

static void sets(int fd, int which)
{
	struct timeval tv = { 3600, 0 };

	if (setsockopt(fd, SOL_SOCKET, which, &tv, sizeof(tv)))
		_exit(1);
}

/* The descriptors are made before the fork: the child's have the same numbers. */
static void make_ends(void)
{
	int a[2], b[2], p[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, a), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, b), 0);
	cr_assert_eq(pipe(p), 0);
	sets(a[0], SO_RCVTIMEO);
	sets(b[0], SO_SNDTIMEO);
	ends = (struct ends){ a[1], a[0], b[0], p[0] };
}

static void receive(void *fd)
{
	char c;

	syscall(SYS_recvfrom, *(int *)fd, &c, 1, 0, NULL, NULL);
}

Test(socket_wait, whose_time_it_is)
{
	struct target t;
	struct diag d;
	pid_t pid;

	make_ends();
	pid = child_start(receive, &ends.plain);
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert(child_reach_call(pid, pid, SYS_recvfrom));
	cr_expect(socket_wait_is_timed(&t, SYS_recvfrom, ends.receives));
	cr_expect(socket_wait_is_timed(&t, SYS_read, ends.receives));
	cr_expect(socket_wait_is_timed(&t, SYS_accept4, ends.receives));
	cr_expect_not(socket_wait_is_timed(&t, SYS_sendto, ends.receives));
	cr_expect(socket_wait_is_timed(&t, SYS_sendto, ends.sends));
	cr_expect(socket_wait_is_timed(&t, SYS_write, ends.sends));
	cr_expect_not(socket_wait_is_timed(&t, SYS_recvfrom, ends.sends));
	cr_expect_not(socket_wait_is_timed(&t, SYS_recvfrom, ends.plain));
	cr_expect_not(socket_wait_is_timed(&t, SYS_read, ends.pipe));
	cr_expect_not(socket_wait_is_timed(&t, SYS_recvfrom, 999));
	cr_expect_not(socket_wait_is_timed(&t, SYS_futex, ends.receives));
	target_close(&t);
	child_end(pid);
}

static void rank_one(int *fd, struct thread *out)
{
	pid_t pid = child_start(receive, fd);
	struct threads list;
	struct maps maps;
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert(child_reach_call(pid, pid, SYS_recvfrom));
	cr_assert_eq(maps_read(&t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(threads_read(&t, &list, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&t, &maps, NULL, &list), 0);
	*out = list.v[0];
	cr_expect_eq(thread_read(&t, pid, &list.v[0]), 0);
	cr_expect_eq(list.v[0].nr, SYS_recvfrom);
	cr_expect_eq(thread_read(&t, 1, &list.v[0]), -ESRCH);
	threads_free(&list);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
}

/* Usable, but behind whatever else there is. */
Test(socket_wait, such_a_thread_is_the_last_choice)
{
	struct thread plain, timed;

	make_ends();
	rank_one(&ends.plain, &plain);
	rank_one(&ends.receives, &timed);
	cr_expect_not(plain.anew);
	cr_expect_str_eq(plain.reason, "recvfrom");
	cr_expect(timed.usable);
	cr_expect(timed.anew);
	cr_expect_not_null(strstr(timed.reason, "begin anew"), "%s", timed.reason);
	cr_expect_gt(timed.rank, plain.rank + 10, "more than an arena counts");
}
