// SPDX-License-Identifier: GPL-3.0-or-later
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "clock.h"

void event_classify(pid_t tid, int status, struct event *ev)
{
	int event = status >> 16;
	int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

	memset(ev, 0, sizeof(*ev));
	ev->tid = tid;
	ev->status = status;
	ev->sig = sig;
	if (!WIFSTOPPED(status))
		ev->kind = EV_EXITED;
	else if (event == PTRACE_EVENT_STOP)
		ev->kind = sig == SIGTRAP ? EV_TRAP : EV_GROUP_STOP;
	else if (event == PTRACE_EVENT_CLONE)
		ev->kind = EV_CLONE;
	else if (event)
		ev->kind = EV_OTHER;
	else if (sig == (SIGTRAP | 0x80))
		ev->kind = EV_SYSCALL;
	else
		ev->kind = EV_SIGNAL;
}

void wait_begin(sigset_t *saved)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, saved);
}

void wait_end(const sigset_t *saved)
{
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}

/* Sleeps until a SIGCHLD, another signal's handler, or the deadline. */
static void wait_child_signal(uint64_t left)
{
	struct timespec ts = { (time_t)(left / NS_PER_SEC), (long)(left % NS_PER_SEC) };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigtimedwait(&set, NULL, &ts);
}

#define DEATHS_MAX 16
static _Thread_local pid_t death[DEATHS_MAX];
static _Thread_local size_t deaths;

/* Without room it stays a zombie until we end, or until somebody waits for it by number. */
void wait_death(pid_t tid)
{
	for (size_t i = 0; i < deaths; i++)
		if (death[i] == tid)
			return;
	if (deaths < DEATHS_MAX)
		death[deaths++] = tid;
}

/* Its stops are for whoever traces it: a tracer is told of them whatever it waits for
 * (kernel/exit.c, wait_task_stopped). */
static bool not_yet(pid_t tid)
{
	siginfo_t si = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)tid, &si, WEXITED | WNOHANG | WNOWAIT | __WALL))
		return errno == EINTR;
	if (!si.si_pid || si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED)
		return true;
	return waitpid(tid, NULL, WNOHANG | __WALL) < 0 && errno == EINTR;
}

size_t wait_deaths(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < deaths; i++)
		if (not_yet(death[i]))
			death[kept++] = death[i];
	deaths = kept;
	return kept;
}

static _Thread_local void (*meanwhile)(void);

void wait_meanwhile(void (*fn)(void))
{
	meanwhile = fn;
}

int wait_event(pid_t tid, uint64_t deadline, const volatile sig_atomic_t *cancel, struct event *ev)
{
	/* A SIGCHLD can be merged with that of another thread: never sleep long on it alone. */
	const uint64_t longest = 20 * NS_PER_MS;

	for (;;) {
		int status;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
		uint64_t now;

		if (got == tid) {
			event_classify(tid, status, ev);
			return 0;
		}
		if (got < 0 && errno != EINTR)
			return -errno;
		if (cancel && *cancel)
			return -ECANCELED;
		now = deadline ? clock_now() : 0;
		if (now >= deadline) {
			memset(ev, 0, sizeof(*ev));
			ev->tid = tid;
			return 0;
		}
		(void)wait_deaths();
		if (meanwhile)
			meanwhile();
		wait_child_signal(deadline - now < longest ? deadline - now : longest);
	}
}
