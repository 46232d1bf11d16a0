// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * eight [eintr]: eight threads, each in another kind of blocking call, some with a timeout and some
 * woken by the main thread. Each checks that a call ends neither early nor with an error. With
 * "eintr" an EINTR is forgiven in the calls that a stopped and abandoned thread cannot be spared
 * it: relative timeouts (nanosleep, poll) and those that the kernel never restarts (epoll_wait,
 * recv with SO_RCVTIMEO).
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "victim.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned generation; /* under lock */
	sem_t sem;
	int pipe[2], event, listener, pair[2];
	struct sockaddr_un addr;
	socklen_t addr_len;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A failed call: forgiven, or the end. */
static void failed(const char *what)
{
	if (!forgive_eintr())
		wrong("%s: %s", what, strerror(errno));
}

static void wait_cond(unsigned turn)
{
	struct timespec until;
	unsigned was;
	int rc = 0;

	pthread_mutex_lock(&shared.lock);
	was = shared.generation;
	if (turn % 4) {
		while (rc == 0 && shared.generation == was)
			rc = pthread_cond_wait(&shared.cond, &shared.lock);
		if (rc)
			wrong("pthread_cond_wait: %s", strerror(rc));
	} else {
		uint64_t start = now_ns(), end = start + 30 * MS;

		until.tv_sec = (time_t)(end / 1000000000ull);
		until.tv_nsec = (long)(end % 1000000000ull);
		while (rc == 0)
			rc = pthread_cond_timedwait(&shared.cond, &shared.lock, &until);
		if (rc != ETIMEDOUT)
			wrong("pthread_cond_timedwait: %s", strerror(rc));
		check_wait("pthread_cond_timedwait", start, 30);
	}
	pthread_mutex_unlock(&shared.lock);
}

static void wait_nanosleep(unsigned turn)
{
	unsigned ms = 5 + turn % 40;
	struct timespec ts = { .tv_nsec = (long)(ms * MS) };
	uint64_t start = now_ns();

	if (nanosleep(&ts, NULL))
		return failed("nanosleep");
	check_wait("nanosleep", start, ms);
}

static void wait_poll(unsigned turn)
{
	/* The thread's own end of the pair, on which nothing ever arrives while it is asked for
	 * errors only. */
	struct pollfd p = { .fd = shared.pair[1], .events = 0 };
	int ms = 5 + (int)(turn % 40), n;
	uint64_t start = now_ns();

	n = poll(&p, 1, ms);
	if (n < 0)
		return failed("poll");
	if (n)
		wrong("poll returned %d", n);
	check_wait("poll", start, (uint64_t)ms);
}

static void wait_read(unsigned turn)
{
	unsigned char c;
	ssize_t n = read(shared.pipe[0], &c, 1);

	if (n != 1)
		wrong("read: %zd, %s", n, strerror(errno));
	if (c != (unsigned char)turn)
		wrong("read byte %u, expected %u", c, (unsigned)(unsigned char)turn);
}

static void wait_epoll(unsigned turn)
{
	static int finite = -1, infinite = -1;
	struct epoll_event ev = { .events = EPOLLIN };
	int ms = turn % 3 ? 5 + (int)(turn % 40) : -1, n;
	uint64_t start, value;

	if (finite < 0) {
		finite = epoll_create1(0);
		infinite = epoll_create1(0);
		if (finite < 0 || infinite < 0 ||
		    epoll_ctl(infinite, EPOLL_CTL_ADD, shared.event, &ev))
			wrong("epoll: %s", strerror(errno));
	}
	start = now_ns();
	n = epoll_wait(ms < 0 ? infinite : finite, &ev, 1, ms);
	if (n < 0)
		return failed("epoll_wait");
	if (n != (ms < 0))
		wrong("epoll_wait(%d) returned %d", ms, n);
	if (ms >= 0)
		check_wait("epoll_wait", start, (uint64_t)ms);
	else if (read(shared.event, &value, sizeof(value)) != sizeof(value))
		wrong("read(eventfd): %s", strerror(errno));
}

static void wait_sem(unsigned turn)
{
	(void)turn;
	if (sem_wait(&shared.sem))
		wrong("sem_wait: %s", strerror(errno));
}

static void wait_accept(unsigned turn)
{
	int fd = accept4(shared.listener, NULL, NULL, SOCK_CLOEXEC);

	(void)turn;
	if (fd < 0)
		wrong("accept: %s", strerror(errno));
	close(fd);
}

static void wait_recv(unsigned turn)
{
	unsigned ms = 5 + turn % 40;
	struct timeval tv = { .tv_usec = (suseconds_t)ms * 1000 };
	uint64_t start = now_ns();
	char c;

	if (setsockopt(shared.pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		wrong("setsockopt: %s", strerror(errno));
	if (recv(shared.pair[0], &c, 1, 0) >= 0)
		wrong("recv returned data that nobody sent");
	if (errno != EAGAIN)
		return failed("recv");
	/* The kernel counts this timeout in ticks: one is allowed to be missing. */
	check_wait("recv", start, ms > 10 ? ms - 10 : 0);
}

static void (*const wait_kind[])(unsigned turn) = { wait_cond,	 wait_nanosleep, wait_poll,
						    wait_read,	 wait_epoll,	 wait_sem,
						    wait_accept, wait_recv };
enum { KINDS = sizeof(wait_kind) / sizeof(wait_kind[0]) };

static void *work(void *arg)
{
	void (*const *wait)(unsigned) = arg;

	thread_started();
	for (unsigned turn = 0;; turn++) {
		char *p = malloc(100 + turn % 1000);

		if (!p)
			wrong("no memory");
		p[99 + turn % 1000] = (char)turn;
		(*wait)(turn);
		if (p[99 + turn % 1000] != (char)turn)
			wrong("a block has changed");
		free(p);
		turned((int)(wait - wait_kind));
	}
	return NULL;
}

static void wake_all(unsigned turn)
{
	unsigned char byte = (unsigned char)turn;
	uint64_t one = 1;
	int fd;

	pthread_mutex_lock(&shared.lock);
	shared.generation++;
	pthread_cond_broadcast(&shared.cond);
	pthread_mutex_unlock(&shared.lock);
	if (write(shared.pipe[1], &byte, 1) != 1 ||
	    write(shared.event, &one, sizeof(one)) != sizeof(one) || sem_post(&shared.sem))
		wrong("wake: %s", strerror(errno));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&shared.addr, shared.addr_len))
		wrong("connect: %s", strerror(errno));
	close(fd);
}

static void set_up(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&shared.cond, &attr);
	shared.event = eventfd(0, EFD_CLOEXEC);
	shared.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	shared.addr.sun_family = AF_UNIX;
	/* Autobind: an abstract address that the kernel chooses (unix(7)), so that nothing lies
	 * around. */
	shared.addr_len = sizeof(sa_family_t);
	if (sem_init(&shared.sem, 0, 0) || pipe2(shared.pipe, O_CLOEXEC) || shared.event < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, shared.pair) ||
	    shared.listener < 0 ||
	    bind(shared.listener, (struct sockaddr *)&shared.addr, shared.addr_len) ||
	    listen(shared.listener, 128))
		wrong("set up: %s", strerror(errno));
	shared.addr_len = sizeof(shared.addr);
	if (getsockname(shared.listener, (struct sockaddr *)&shared.addr, &shared.addr_len))
		wrong("getsockname: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	victim_eintr = victim_option(argc, argv, "eintr");
	set_up();
	victim_turns.workers = KINDS;
	for (int i = 0; i < KINDS; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)&wait_kind[i]))
			wrong("no thread");
	}
	wait_started(KINDS);
	/* One turn, so that every thread has an arena and is inside its call. */
	wake_all(0);
	if (victim_over(50))
		return 0;
	victim_ready();
	for (unsigned turn = 1; !victim_over(20); turn++)
		wake_all(turn);
	return 0;
}
