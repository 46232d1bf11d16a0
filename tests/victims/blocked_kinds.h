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
#if !__GLIBC_PREREQ(2, 35)
/* What the C library of 2.35 brings. */
static int epoll_pwait2(int fd, struct epoll_event *ev, int n, const struct timespec *ts,
			const sigset_t *set)
{
	return (int)syscall(441, fd, ev, n, ts, set, (size_t)8);
}
#endif

/* What a call that should have timed out came to. */
static int timed_out(long rc, int want_rc, int want_errno)
{
	if (rc < 0)
		return want_rc < 0 && errno == want_errno ? 0 : errno;
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

#include "blocked_time.h"
#include "blocked_futex.h"
#include "blocked_files.h"
#include "blocked_rest.h"

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
	{ "epoll_wait among signals", 0, 1, prepare_epoll, wait_epoll_signals, give_usr1, 0 },
	{ "epoll_pwait2 among signals", 0, 1, prepare_epoll, wait_pwait2_signals, give_usr1, 0 },
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
