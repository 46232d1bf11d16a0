// SPDX-License-Identifier: GPL-3.0-or-later
/* Futexes: a part of blocked_kinds.h. */
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

	return timed_out(sem_timedwait(w->object, &until), -1, ETIMEDOUT);
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

	return timed_out(waitv(w->object, &until), -1, ETIMEDOUT);
}

static int wait_futex_timed(struct waiter *w)
{
	struct timespec ts = ms_timespec(w->ms);
	long rc = syscall(SYS_futex, w->object, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);

	return timed_out(rc, -1, ETIMEDOUT);
}
