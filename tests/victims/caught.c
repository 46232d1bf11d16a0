// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * caught: one thread that handles SIGURG, SIGWINCH and SIGCHLD, which nobody sends it, counts the
 * real-time signals that it sends itself and is woken by a timer every millisecond. Not one may be
 * lost, come twice or out of order.
 */
#include <signal.h>
#include <sys/time.h>

#include "victim.h"

static volatile sig_atomic_t stray;
static volatile int seen, disorder;

static void on_stray(int sig)
{
	stray = sig;
}

static void on_timer(int sig)
{
	(void)sig;
}

static void on_counted(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)context;
	disorder |= si->si_value.sival_int != seen;
	seen++;
}

static void set_up(void)
{
	struct sigaction sa = { .sa_handler = on_stray, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };

	sigaction(SIGURG, &sa, NULL);
	sigaction(SIGWINCH, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	sa.sa_handler = on_timer;
	sigaction(SIGALRM, &sa, NULL);
	sa.sa_sigaction = on_counted;
	sa.sa_flags = SA_RESTART | SA_SIGINFO;
	sigaction(SIGRTMIN + 1, &sa, NULL);
	if (setitimer(ITIMER_REAL, &every, NULL))
		wrong("setitimer: %s", strerror(errno));
}

int main(void)
{
	int sent = 0;

	/* its own signals end its waits */
	victim_eintr = 1;
	set_up();
	victim_ready();
	while (!victim_over(1)) {
		union sigval v = { .sival_int = sent };

		if (sigqueue(getpid(), SIGRTMIN + 1, v) == 0)
			sent++;
		free(malloc(1000));
		if (stray)
			wrong("signal %d came, which nobody has sent", (int)stray);
		if (disorder)
			wrong("a signal was lost or came twice: %d of %d", seen, sent);
	}
	for (int i = 0; i < 1000 && seen != sent; i++)
		usleep(1000);
	if (seen != sent)
		wrong("%d signals came of %d", seen, sent);
	return 0;
}
