// SPDX-License-Identifier: GPL-3.0-or-later
/* Files and sockets: a part of blocked_kinds.h. */
/* ---- descriptors */

static int wait_read(struct waiter *w)
{
	char c;

	if (read(w->fd[0], &c, 1) != 1)
		return errno;
	return c == (char)w->given ? 0 : -1;
}

static int prepare_eventfd(struct waiter *w)
{
	w->fd[0] = w->fd[1] = eventfd(0, EFD_CLOEXEC);
	return must(w->fd[0]);
}

static int wait_eventfd(struct waiter *w)
{
	uint64_t value = 0;

	if (read(w->fd[0], &value, sizeof(value)) != sizeof(value))
		return errno;
	return value == w->given ? 0 : -1;
}

static void give_eventfd(struct waiter *w)
{
	uint64_t value = w->given;

	if (write(w->fd[1], &value, sizeof(value)) != sizeof(value))
		wrong("write(eventfd): %s", strerror(errno));
}

/* Watches a file without a name. */
static int prepare_inotify(struct waiter *w)
{
	char path[] = "/tmp/blocked_XXXXXX", link[32];

	w->fd[0] = inotify_init1(IN_CLOEXEC);
	w->fd[1] = mkstemp(path);
	if (w->fd[0] < 0 || w->fd[1] < 0 || unlink(path))
		return errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", w->fd[1]);
	return must(inotify_add_watch(w->fd[0], link, IN_ATTRIB));
}

static int wait_inotify(struct waiter *w)
{
	struct inotify_event ev[16];
	ssize_t n = read(w->fd[0], ev, sizeof(ev));

	return n < 0 ? errno : n >= (ssize_t)sizeof(ev[0]) ? 0 : -1;
}

static void give_inotify(struct waiter *w)
{
	if (fchmod(w->fd[1], w->given % 2 ? 0600 : 0640))
		wrong("fchmod: %s", strerror(errno));
}

/* ---- sockets */

static int set_timeout(int fd, int which, unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	return must(setsockopt(fd, SOL_SOCKET, which, &tv, sizeof(tv)));
}

struct address {
	struct sockaddr_un un;
	socklen_t len;
};

static int prepare_listener(struct waiter *w)
{
	struct address *a = calloc(1, sizeof(*a));

	w->object = a;
	if (!a)
		return ENOMEM;
	a->un.sun_family = AF_UNIX;
	a->len = sizeof(a->un);
	w->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* without a name the kernel finds one */
	if (w->fd[0] < 0 || bind(w->fd[0], (struct sockaddr *)&a->un, sizeof(sa_family_t)) ||
	    listen(w->fd[0], 0) || getsockname(w->fd[0], (struct sockaddr *)&a->un, &a->len))
		return errno;
	return 0;
}

static int wait_accept(struct waiter *w)
{
	int fd = accept(w->fd[0], NULL, NULL);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void give_connection(struct waiter *w)
{
	struct address *a = w->object;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a->un, a->len))
		wrong("connect: %s", strerror(errno));
	close(fd);
}

static int prepare_accept_timed(struct waiter *w)
{
	int rc = prepare_listener(w);

	return rc ? rc : set_timeout(w->fd[0], SO_RCVTIMEO, w->ms);
}

static int wait_accept_timed(struct waiter *w)
{
	return timed_out(accept(w->fd[0], NULL, NULL), -1, EAGAIN);
}

/* The backlog is full, so that the next one waits. */
static int prepare_connect(struct waiter *w)
{
	int rc = prepare_listener(w);

	if (!rc)
		give_connection(w);
	return rc;
}

static int wait_connect(struct waiter *w)
{
	struct address *a = w->object;
	int rc, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	rc = must(connect(fd, (struct sockaddr *)&a->un, a->len));
	close(fd);
	return rc;
}

static void give_place(struct waiter *w)
{
	close(accept(w->fd[0], NULL, NULL));
}

static int prepare_pair(struct waiter *w)
{
	return must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->fd));
}

static int wait_recv(struct waiter *w)
{
	char c;

	if (recv(w->fd[0], &c, 1, 0) != 1)
		return errno;
	return c == (char)w->given ? 0 : -1;
}

static int prepare_pair_timed(struct waiter *w)
{
	int rc = prepare_pair(w);

	return rc ? rc : set_timeout(w->fd[0], SO_RCVTIMEO, w->ms);
}

static int wait_recv_timed(struct waiter *w)
{
	char c;

	return timed_out(recv(w->fd[0], &c, 1, 0), -1, EAGAIN);
}

/* Datagrams: one is sent whole or not at all. */
static int prepare_full(struct waiter *w)
{
	char block[1024] = { 0 };

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, w->fd))
		return errno;
	while (send(w->fd[0], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	return errno == EAGAIN ? 0 : errno;
}

static int wait_send(struct waiter *w)
{
	char block[1024] = { 0 };
	ssize_t n = send(w->fd[0], block, sizeof(block), 0);

	return n < 0 ? errno : n == sizeof(block) ? 0 : -1;
}

/* A sender is woken when a good part of the buffer is free, not for one message. */
static void give_room(struct waiter *w)
{
	char block[1024];

	while (recv(w->fd[1], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
}

static int prepare_full_timed(struct waiter *w)
{
	int rc = prepare_full(w);

	return rc ? rc : set_timeout(w->fd[0], SO_SNDTIMEO, w->ms);
}

static int wait_send_timed(struct waiter *w)
{
	char block[1024] = { 0 };

	return timed_out(send(w->fd[0], block, sizeof(block), 0), -1, EAGAIN);
}
