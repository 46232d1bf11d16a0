// SPDX-License-Identifier: GPL-3.0-or-later
/* The kinds of blocking system call of the victim "blocked"; included there, and only there. */
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#define NR_FUTEX_WAITV 449

/* What a call that should have timed out came to. */
static int timed_out(long rc, int err, int want_rc, int want_errno)
{
	if (rc < 0)
		return want_rc < 0 && err == want_errno ? 0 : err;
	return rc == want_rc ? 0 : -1;
}

static int must(long rc)
{
	return rc < 0 ? errno : 0;
}

static struct timespec ms_timespec(unsigned ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * MS) };
}

static struct timespec in_ms(clockid_t clock, unsigned ms)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	ts.tv_nsec += (long)(ms * MS);
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/* SIGUSR1 and SIGUSR2 are blocked everywhere but in the waits for them. */
static __thread volatile sig_atomic_t caught;

static void catch_signal(int sig)
{
	caught = sig;
}

static void prepare_signals(void)
{
	struct sigaction sa = { .sa_handler = catch_signal };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	if (sigaction(SIGUSR1, &sa, NULL) || sigprocmask(SIG_BLOCK, &set, NULL))
		wrong("signals: %s", strerror(errno));
}

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

	return timed_out(n, errno, 0, 0);
}

static int wait_ppoll(struct waiter *w)
{
	struct pollfd p = { .fd = w->fd[0], .events = POLLIN };
	struct timespec ts = ms_timespec(w->ms);
	sigset_t none;
	int n;

	sigemptyset(&none);
	n = ppoll(&p, 1, &ts, &none);
	return timed_out(n, errno, 0, 0);
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
	return timed_out(n, errno, 0, 0);
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
	return timed_out(n, errno, 0, 0);
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

	return timed_out(n, errno, 0, 0);
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
	return timed_out(n, errno, 0, 0);
}

static int wait_epoll_pwait2(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	struct epoll_event ev;
	int n = epoll_pwait2(w->fd[0], &ev, 1, &ts, NULL);

	if (ts.tv_nsec != (long)(w->ms % 1000 * MS))
		return -1; /* it is not for the kernel to change */
	return timed_out(n, errno, 0, 0);
}

/* ---- futexes */

struct monitor {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned seen; /* under lock */
};

static int prepare_cond(struct waiter *w)
{
	struct monitor *m = calloc(1, sizeof(*m));

	w->object = m;
	return m ? pthread_mutex_init(&m->lock, NULL) | pthread_cond_init(&m->cond, NULL) : ENOMEM;
}

static int wait_cond(struct waiter *w)
{
	struct monitor *m = w->object;
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	while (!rc && !m->seen)
		rc = pthread_cond_wait(&m->cond, &m->lock);
	m->seen = 0;
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static void give_cond(struct waiter *w)
{
	struct monitor *m = w->object;

	pthread_mutex_lock(&m->lock);
	m->seen = 1;
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
}

static int wait_cond_timed(struct waiter *w)
{
	struct timespec until = in_ms(CLOCK_REALTIME, w->ms);
	struct monitor *m = w->object;
	int rc;

	pthread_mutex_lock(&m->lock);
	rc = pthread_cond_timedwait(&m->cond, &m->lock, &until);
	pthread_mutex_unlock(&m->lock);
	return rc == ETIMEDOUT ? 0 : rc ? rc : -1;
}

static int prepare_sem(struct waiter *w)
{
	w->object = calloc(1, sizeof(sem_t));
	return w->object ? must(sem_init(w->object, 0, 0)) : ENOMEM;
}

static int wait_sem(struct waiter *w)
{
	return must(sem_wait(w->object));
}

static void give_sem(struct waiter *w)
{
	if (sem_post(w->object))
		wrong("sem_post: %s", strerror(errno));
}

static int wait_sem_timed(struct waiter *w)
{
	struct timespec until = in_ms(CLOCK_REALTIME, w->ms);

	return timed_out(sem_timedwait(w->object, &until), errno, -1, ETIMEDOUT);
}

/* Held by the main thread until the end. */
static int prepare_mutex(struct waiter *w)
{
	int rc = prepare_cond(w);

	return rc ? rc : pthread_mutex_lock(&((struct monitor *)w->object)->lock);
}

static int wait_mutex(struct waiter *w)
{
	struct monitor *m = w->object;
	int rc = pthread_mutex_lock(&m->lock);

	return rc ? rc : pthread_mutex_unlock(&m->lock);
}

static void give_mutex(struct waiter *w)
{
	pthread_mutex_unlock(&((struct monitor *)w->object)->lock);
}

static int prepare_word(struct waiter *w)
{
	w->object = calloc(1, sizeof(uint64_t));
	return w->object ? 0 : ENOMEM;
}

static long waitv(uint32_t *word, const struct timespec *until)
{
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} v = { 0, (uint64_t)(uintptr_t)word, 2 | FUTEX_PRIVATE_FLAG, 0 };

	return syscall(NR_FUTEX_WAITV, &v, 1, 0, until, CLOCK_MONOTONIC);
}

static int prepare_waitv(struct waiter *w)
{
	uint32_t other = 1;

	if (prepare_word(w))
		return ENOMEM;
	/* another value than the one it waits with: EAGAIN at once where the call exists */
	return waitv(&other, NULL) < 0 && errno == EAGAIN ? 0 : errno;
}

static int wait_waitv(struct waiter *w)
{
	uint32_t *word = w->object;

	while (!__atomic_load_n(word, __ATOMIC_SEQ_CST))
		if (waitv(word, NULL) < 0 && errno != EAGAIN)
			return errno;
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static void give_word(struct waiter *w)
{
	__atomic_store_n((uint32_t *)w->object, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, w->object, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int wait_waitv_timed(struct waiter *w)
{
	struct timespec until = in_ms(CLOCK_MONOTONIC, w->ms);

	return timed_out(waitv(w->object, &until), errno, -1, ETIMEDOUT);
}

static int wait_futex_timed(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	long rc = syscall(SYS_futex, w->object, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);

	return timed_out(rc, errno, -1, ETIMEDOUT);
}

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
	return timed_out(accept(w->fd[0], NULL, NULL), errno, -1, EAGAIN);
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

	return timed_out(recv(w->fd[0], &c, 1, 0), errno, -1, EAGAIN);
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

	return timed_out(send(w->fd[0], block, sizeof(block), 0), errno, -1, EAGAIN);
}

/* ---- signals */

static int wait_sigtimedwait(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return timed_out(sigtimedwait(&set, &info, &ts), errno, -1, EAGAIN);
}

static int wait_sigwaitinfo(struct waiter *w)
{
	siginfo_t info;
	sigset_t set;
	int sig;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sig = sigwaitinfo(&set, &info);
	return sig < 0 ? errno : sig == SIGUSR2 && info.si_signo == SIGUSR2 ? 0 : -1;
}

static void give_usr2(struct waiter *w)
{
	if (pthread_kill(w->thread, SIGUSR2))
		wrong("pthread_kill: %s", strerror(errno));
}

static void give_usr1(struct waiter *w)
{
	if (pthread_kill(w->thread, SIGUSR1))
		wrong("pthread_kill: %s", strerror(errno));
}

static int wait_sigsuspend(struct waiter *w)
{
	sigset_t none;

	(void)w;
	sigemptyset(&none);
	sigaddset(&none, SIGUSR2);
	caught = 0;
	if (sigsuspend(&none) != -1 || errno != EINTR)
		return -1;
	return caught == SIGUSR1 ? 0 : EINTR;
}

static int wait_pause(struct waiter *w)
{
	sigset_t one, old;
	int rc;

	(void)w;
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	caught = 0;
	pthread_sigmask(SIG_UNBLOCK, &one, &old);
	/* the signal that comes before the call is given again */
	rc = pause() == -1 && errno == EINTR && caught == SIGUSR1 ? 0 : EINTR;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* ---- processes */

static int prepare_child(struct waiter *w)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	w->fd[0] = pid;
	return must(pid);
}

static void give_death(struct waiter *w)
{
	kill(w->fd[0], SIGKILL);
}

static int wait_waitpid(struct waiter *w)
{
	int status;
	pid_t pid = waitpid(w->fd[0], &status, 0);

	if (pid != w->fd[0])
		return pid < 0 ? errno : -1;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -1;
}

static int wait_waitid(struct waiter *w)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)w->fd[0], &info, WEXITED))
		return errno;
	return info.si_pid == w->fd[0] && info.si_code == CLD_KILLED ? 0 : -1;
}

/* ---- System V and locks */

static int prepare_queue(struct waiter *w)
{
	w->fd[0] = msgget(IPC_PRIVATE, 0600);
	return must(w->fd[0]);
}

struct message {
	long type;
	unsigned number;
};

static int wait_msgrcv(struct waiter *w)
{
	struct message m = { 0 };

	if (msgrcv(w->fd[0], &m, sizeof(m.number), 0, 0) != sizeof(m.number))
		return errno;
	if (over)
		msgctl(w->fd[0], IPC_RMID, NULL);
	return m.number == w->given ? 0 : -1;
}

static void give_message(struct waiter *w)
{
	struct message m = { 1, w->given };

	if (msgsnd(w->fd[0], &m, sizeof(m.number), 0))
		wrong("msgsnd: %s", strerror(errno));
}

static int prepare_semaphore(struct waiter *w)
{
	w->fd[0] = semget(IPC_PRIVATE, 1, 0600);
	return must(w->fd[0]);
}

static int wait_semop(struct waiter *w)
{
	struct sembuf op = { 0, -1, 0 };

	if (semop(w->fd[0], &op, 1))
		return errno;
	if (over)
		semctl(w->fd[0], 0, IPC_RMID);
	return 0;
}

static void give_semaphore(struct waiter *w)
{
	struct sembuf op = { 0, 1, 0 };

	if (semop(w->fd[0], &op, 1))
		wrong("semop: %s", strerror(errno));
}

static int wait_semtimedop(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	struct sembuf op = { 0, -1, 0 };
	int rc = timed_out(semtimedop(w->fd[0], &op, 1, &ts), errno, -1, EAGAIN);

	if (over)
		semctl(w->fd[0], 0, IPC_RMID);
	return rc;
}

/* fd[1] has the lock until the end. */
static int prepare_flock(struct waiter *w)
{
	char path[] = "/tmp/blocked_XXXXXX";

	w->fd[0] = mkstemp(path);
	w->fd[1] = open(path, O_RDWR | O_CLOEXEC);
	unlink(path);
	return w->fd[0] < 0 || w->fd[1] < 0 ? errno : must(flock(w->fd[1], LOCK_EX));
}

static int wait_flock(struct waiter *w)
{
	return must(flock(w->fd[0], LOCK_EX));
}

static void give_flock(struct waiter *w)
{
	if (flock(w->fd[1], LOCK_UN))
		wrong("flock: %s", strerror(errno));
}

/* Record locks are a process's: a child has it. */
static int prepare_record(struct waiter *w)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char path[] = "/tmp/blocked_XXXXXX", c = 0;
	int up[2];
	pid_t pid;

	w->fd[0] = mkstemp(path);
	unlink(path);
	if (w->fd[0] < 0 || pipe(up))
		return errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fcntl(w->fd[0], F_SETLK, &l) || write(up[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	w->fd[1] = pid;
	close(up[1]);
	if (pid < 0 || read(up[0], &c, 1) != 1)
		return EIO;
	close(up[0]);
	return 0;
}

static int wait_record(struct waiter *w)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	return must(fcntl(w->fd[0], F_SETLKW, &l));
}

static void give_record(struct waiter *w)
{
	if (kill(w->fd[1], SIGKILL) || waitpid(w->fd[1], NULL, 0) != w->fd[1])
		wrong("the holder of the lock: %s", strerror(errno));
}

/* ---- asynchronous I/O */

static int prepare_aio(struct waiter *w)
{
	aio_context_t *c = calloc(1, sizeof(*c));

	w->object = c;
	return c ? must(syscall(SYS_io_setup, 4, c)) : ENOMEM;
}

static int wait_aio(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	struct io_event ev;
	long n = syscall(SYS_io_getevents, *(aio_context_t *)w->object, 1L, 1L, &ev, &ts);

	return timed_out(n, errno, 0, 0);
}

/* struct io_uring_params, and a struct io_uring_sqe that does nothing: its completion is what is
 * waited for. */
struct ring {
	char *sq, *cq;
	uint32_t params[30];
	unsigned char *sqe;
};

enum { RING_SQ_TAIL = 11, RING_SQ_MASK = 12, RING_SQ_ARRAY = 16, RING_CQ_HEAD = 20 };

static int prepare_ring(struct waiter *w)
{
	struct ring *r = calloc(1, sizeof(*r));

	w->object = r;
	if (!r)
		return ENOMEM;
	w->fd[0] = (int)syscall(SYS_io_uring_setup, 4, r->params);
	if (w->fd[0] < 0)
		return errno;
	r->sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd[0], 0);
	r->cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd[0], 0x8000000);
	r->sqe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd[0], 0x10000000);
	return r->sq == MAP_FAILED || r->cq == MAP_FAILED || r->sqe == MAP_FAILED ? errno : 0;
}

static int wait_ring(struct waiter *w)
{
	struct ring *r = w->object;
	uint32_t *head = (uint32_t *)(void *)(r->cq + r->params[RING_CQ_HEAD]);
	long n = syscall(SYS_io_uring_enter, w->fd[0], 0, 1, 1 /* wait for events */, NULL, 0);

	if (n < 0)
		return errno;
	__atomic_add_fetch(head, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void give_completion(struct waiter *w)
{
	struct ring *r = w->object;
	uint32_t *tail = (uint32_t *)(void *)(r->sq + r->params[RING_SQ_TAIL]);
	uint32_t mask = *(uint32_t *)(void *)(r->sq + r->params[RING_SQ_MASK]);
	uint32_t *array = (uint32_t *)(void *)(r->sq + r->params[RING_SQ_ARRAY]);
	uint32_t at = *tail & mask;

	memset(r->sqe + 64 * (size_t)at, 0, 64); /* IORING_OP_NOP */
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
	if (syscall(SYS_io_uring_enter, w->fd[0], 1, 0, 0, NULL, 0) != 1)
		wrong("io_uring_enter: %s", strerror(errno));
}

/* Waits for completions with a timeout: struct io_uring_getevents_arg. */
static int wait_ring_timed(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	const struct {
		uint64_t sigmask;
		uint32_t sigmask_sz, pad;
		const struct timespec *ts;
	} arg = { .ts = &ts };
	long n = syscall(SYS_io_uring_enter, w->fd[0], 0, 1, 1 | 8 /* extended argument */, &arg,
			 sizeof(arg));

	return timed_out(n, errno, -1, ETIME);
}

/* The first three are alone in their victim: the test stops and continues it. */
static const struct kind kinds[] = {
	{ "nanosleep, stopped before", BLOCKED_STOPPED, 1, NULL, wait_nanosleep, NULL, 0 },
	{ "poll, stopped before", BLOCKED_STOPPED, 1, prepare_pipe, wait_poll, NULL, 0 },
	{ "futex, stopped before", BLOCKED_STOPPED, 1, prepare_word, wait_futex_timed, NULL, 0 },
	{ "nanosleep", 0, 1, NULL, wait_nanosleep, NULL, 0 },
	{ "clock_nanosleep absolute", 0, 1, NULL, wait_clock_nanosleep, NULL, 0 },
	{ "read of a timerfd", 0, 1, prepare_timerfd, wait_timerfd, NULL, 0 },
	{ "poll", 0, 1, prepare_pipe, wait_poll, NULL, 0 },
	{ "ppoll", 0, 1, prepare_pipe, wait_ppoll, NULL, 0 },
	{ "select", 0, 1, prepare_pipe, wait_select, NULL, 0 },
	{ "pselect", 0, 1, prepare_pipe, wait_pselect, NULL, 0 },
	{ "epoll_wait", 0, 1, prepare_epoll, wait_epoll, NULL, 0 },
	{ "epoll_wait without end", 0, 0, prepare_epoll, wait_epoll_forever, give_byte, 0 },
	{ "epoll_pwait", 0, 1, prepare_epoll, wait_epoll_pwait, NULL, 0 },
	{ "epoll_pwait2", 0, 1, prepare_epoll, wait_epoll_pwait2, NULL, 0 },
	{ "condition variable", 0, 0, prepare_cond, wait_cond, give_cond, 0 },
	{ "condition variable, timed", 0, 1, prepare_cond, wait_cond_timed, NULL, 0 },
	{ "semaphore", 0, 0, prepare_sem, wait_sem, give_sem, 0 },
	{ "semaphore, timed", 0, 1, prepare_sem, wait_sem_timed, NULL, 0 },
	{ "mutex", 0, 0, prepare_mutex, wait_mutex, give_mutex, AT_END },
	{ "futex_waitv", 0, 0, prepare_waitv, wait_waitv, give_word, 0 },
	{ "futex_waitv, timed", 0, 1, prepare_waitv, wait_waitv_timed, NULL, 0 },
	{ "read of a pipe", 0, 0, prepare_pipe, wait_read, give_byte, 0 },
	{ "read of an eventfd", 0, 0, prepare_eventfd, wait_eventfd, give_eventfd, 0 },
	{ "read of an inotify", 0, 0, prepare_inotify, wait_inotify, give_inotify, 0 },
	{ "accept", 0, 0, prepare_listener, wait_accept, give_connection, 0 },
	{ "connect", BLOCKED_REFUSED, 0, prepare_connect, wait_connect, give_place, AT_END },
	{ "recv", 0, 0, prepare_pair, wait_recv, give_byte, 0 },
	{ "send", 0, 0, prepare_full, wait_send, give_room, AT_END },
	{ "accept, SO_RCVTIMEO", BLOCKED_ANEW, 1, prepare_accept_timed, wait_accept_timed, NULL,
	  0 },
	{ "recv, SO_RCVTIMEO", BLOCKED_ANEW, 1, prepare_pair_timed, wait_recv_timed, NULL, 0 },
	{ "send, SO_SNDTIMEO", BLOCKED_ANEW, 1, prepare_full_timed, wait_send_timed, NULL, 0 },
	{ "sigtimedwait", 0, 1, NULL, wait_sigtimedwait, NULL, 0 },
	{ "sigwaitinfo", 0, 0, NULL, wait_sigwaitinfo, give_usr2, 0 },
	{ "sigsuspend", 0, 0, NULL, wait_sigsuspend, give_usr1, 0 },
	{ "pause", 0, 0, NULL, wait_pause, give_usr1, AGAIN },
	{ "waitpid", 0, 0, prepare_child, wait_waitpid, give_death, AT_END },
	{ "waitid", 0, 0, prepare_child, wait_waitid, give_death, AT_END },
	{ "msgrcv", 0, 0, prepare_queue, wait_msgrcv, give_message, 0 },
	{ "semop", 0, 0, prepare_semaphore, wait_semop, give_semaphore, 0 },
	{ "semtimedop", 0, 1, prepare_semaphore, wait_semtimedop, NULL, 0 },
	{ "flock", 0, 0, prepare_flock, wait_flock, give_flock, AT_END },
	{ "fcntl F_SETLKW", 0, 0, prepare_record, wait_record, give_record, AT_END },
	{ "io_getevents", 0, 1, prepare_aio, wait_aio, NULL, 0 },
	{ "io_uring_enter", 0, 0, prepare_ring, wait_ring, give_completion, 0 },
	{ "io_uring_enter, timed", 0, 1, prepare_ring, wait_ring_timed, NULL, 0 },
};
