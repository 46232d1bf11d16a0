// SPDX-License-Identifier: GPL-3.0-or-later
/* Signals, processes, locks and asynchronous I/O: a part of blocked_kinds.h. */
/* ---- signals */

static int wait_sigtimedwait(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return timed_out(sigtimedwait(&set, &info, &ts), -1, EAGAIN);
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

/* They outlive the process, so they are taken away when nobody waits any more. */
static int queues[4], semaphores[4];
static size_t n_queues, n_semaphores;

static void remove_ipc(void)
{
	for (size_t i = 0; i < n_queues; i++)
		msgctl(queues[i], IPC_RMID, NULL);
	for (size_t i = 0; i < n_semaphores; i++)
		semctl(semaphores[i], 0, IPC_RMID);
}

static int prepare_queue(struct waiter *w)
{
	w->fd[0] = msgget(IPC_PRIVATE, 0600);
	if (w->fd[0] >= 0)
		queues[n_queues++] = w->fd[0];
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
	if (w->fd[0] >= 0)
		semaphores[n_semaphores++] = w->fd[0];
	return must(w->fd[0]);
}

static int wait_semop(struct waiter *w)
{
	struct sembuf op = { 0, -1, 0 };

	if (semop(w->fd[0], &op, 1))
		return errno;
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

	return timed_out(semtimedop(w->fd[0], &op, 1, &ts), -1, EAGAIN);
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

	return timed_out(n, 0, 0);
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

	return timed_out(n, -1, ETIME);
}
