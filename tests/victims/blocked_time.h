// SPDX-License-Identifier: GPL-3.0-or-later
/* Time and readiness: a part of blocked_kinds.h. */
/* ---- time */

static int wait_nanosleep(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);

	return must(nanosleep(&ts, NULL));
}

static int wait_clock_nanosleep(struct waiter *w)
{
	struct timespec ts = in_ms(CLOCK_MONOTONIC, w->ms);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int prepare_timerfd(struct waiter *w)
{
	w->fd[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	return must(w->fd[0]);
}

static int wait_timerfd(struct waiter *w)
{
	struct itimerspec in = { .it_value = ms_timespec(w->ms) };
	uint64_t times = 0;

	if (timerfd_settime(w->fd[0], 0, &in, NULL))
		return errno;
	if (read(w->fd[0], &times, sizeof(times)) != sizeof(times))
		return errno;
	return times == 1 ? 0 : -1;
}

/* ---- readiness */

static int prepare_pipe(struct waiter *w)
{
	return must(pipe2(w->fd, O_CLOEXEC));
}

static void give_byte(struct waiter *w)
{
	char c = (char)w->given;

	if (write(w->fd[1], &c, 1) != 1)
		wrong("%s: write: %s", w->kind->name, strerror(errno));
}

static int wait_poll(struct waiter *w)
{
	struct pollfd p = { .fd = w->fd[0], .events = POLLIN };
	int n = poll(&p, 1, (int)w->ms);

	return timed_out(n, 0, 0);
}

static int wait_ppoll(struct waiter *w)
{
	struct pollfd p = { .fd = w->fd[0], .events = POLLIN };
	struct timespec ts = ms_timespec(w->ms);
	sigset_t none;
	int n;

	sigemptyset(&none);
	n = ppoll(&p, 1, &ts, &none);
	return timed_out(n, 0, 0);
}

static int wait_select(struct waiter *w)
{
	struct timeval tv = { .tv_sec = w->ms / 1000,
			      .tv_usec = (suseconds_t)(w->ms % 1000) * 1000 };
	fd_set set;
	int n;

	FD_ZERO(&set);
	FD_SET(w->fd[0], &set);
	n = select(w->fd[0] + 1, &set, NULL, NULL, &tv);
	if (n == 0 && (tv.tv_sec || tv.tv_usec))
		return -1; /* Linux writes back what is left: nothing */
	return timed_out(n, 0, 0);
}

static int wait_pselect(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	sigset_t none;
	fd_set set;
	int n;

	sigemptyset(&none);
	FD_ZERO(&set);
	FD_SET(w->fd[0], &set);
	n = pselect(w->fd[0] + 1, &set, NULL, NULL, &ts, &none);
	return timed_out(n, 0, 0);
}

static int prepare_epoll(struct waiter *w)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int end[2], fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0 || pipe2(end, O_CLOEXEC) || epoll_ctl(fd, EPOLL_CTL_ADD, end[0], &ev))
		return errno;
	w->object = (void *)(intptr_t)end[0];
	w->fd[0] = fd;
	w->fd[1] = end[1];
	return 0;
}

static int wait_epoll(struct waiter *w)
{
	struct epoll_event ev;
	int n = epoll_wait(w->fd[0], &ev, 1, (int)w->ms);

	return timed_out(n, 0, 0);
}

static int wait_epoll_forever(struct waiter *w)
{
	struct epoll_event ev;
	int n = epoll_wait(w->fd[0], &ev, 1, -1);
	char c;

	if (n != 1)
		return n < 0 ? errno : -1;
	return read((int)(intptr_t)w->object, &c, 1) == 1 && c == (char)w->given ? 0 : -1;
}

static int wait_epoll_pwait(struct waiter *w)
{
	struct epoll_event ev;
	sigset_t none;
	int n;

	sigemptyset(&none);
	n = epoll_pwait(w->fd[0], &ev, 1, (int)w->ms, &none);
	return timed_out(n, 0, 0);
}

static int wait_epoll_pwait2(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	struct epoll_event ev;
	int n = epoll_pwait2(w->fd[0], &ev, 1, &ts, NULL);

	if (ts.tv_nsec != (long)(w->ms % 1000 * MS))
		return -1; /* it is not for the kernel to change */
	return timed_out(n, 0, 0);
}

/*
 * The same while handlers of signals run: on the thread's stack, so that whatever lies below it is
 * overwritten. Each ends the wait (epoll_wait(2) is never restarted); the rest is waited for then.
 */
static int wait_with_signals(struct waiter *w, int (*wait)(struct waiter *, unsigned))
{
	uint64_t now, start = now_ns(), end = start + w->ms * MS;
	sigset_t one, old;
	int rc = 0;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &one, &old);
	while (!rc && (now = now_ns()) < end) {
		caught = 0;
		rc = wait(w, (unsigned)((end - now + MS - 1) / MS));
		if (rc == EINTR && caught == SIGUSR1)
			rc = 0;
		else if (!rc && now_ns() < end)
			rc = ETIME; /* too early */
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static int epoll_ms(struct waiter *w, unsigned ms)
{
	struct epoll_event ev;
	int n = epoll_wait(w->fd[0], &ev, 1, (int)ms);

	return timed_out(n, 0, 0);
}

static int wait_epoll_signals(struct waiter *w)
{
	return wait_with_signals(w, epoll_ms);
}

static int epoll_timespec(struct waiter *w, unsigned ms)
{
	struct timespec ts = ms_timespec(ms);
	struct epoll_event ev;
	int n = epoll_pwait2(w->fd[0], &ev, 1, &ts, NULL);

	return timed_out(n, 0, 0);
}

static int wait_pwait2_signals(struct waiter *w)
{
	return wait_with_signals(w, epoll_timespec);
}

static void give_usr1(struct waiter *w)
{
	if (pthread_kill(w->thread, SIGUSR1))
		wrong("pthread_kill: %s", strerror(errno));
}
