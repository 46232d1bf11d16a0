// SPDX-License-Identifier: GPL-3.0-or-later
#include "signals.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What a handler may write to: the one place with state, because sigaction(2) takes no argument. */
static volatile sig_atomic_t cancelled, leaving, winch, stop;

static void on_signal(int sig)
{
	switch (sig) {
	case SIGINT:
		cancelled = 1;
		break;
	case SIGWINCH:
		winch = 1;
		break;
	case SIGTSTP:
		stop = 1;
		break;
	default:
		leaving = 1;
		cancelled = 1;
		break;
	}
}

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP };

int signals_setup(struct diag *d)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sigemptyset(&sa.sa_mask);
	sa.sa_handler = SIG_DFL;
	if (sigaction(SIGCHLD, &sa, NULL))
		return diag_internal(d, -errno, "sigaction SIGCHLD");
	sa.sa_handler = SIG_IGN;
	if (sigaction(SIGPIPE, &sa, NULL))
		return diag_internal(d, -errno, "sigaction SIGPIPE");
	/* A file at its limit (RLIMIT_FSIZE) is an error of write(2), as a full disk is. */
	if (sigaction(SIGXFSZ, &sa, NULL))
		return diag_internal(d, -errno, "sigaction SIGXFSZ");
	/* Without SA_RESTART: waits return EINTR and look at the flags. */
	sa.sa_handler = on_signal;
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
		struct sigaction old;

		if (sigaction(caught[i], NULL, &old))
			return diag_internal(d, -errno, "sigaction");
		/* nohup(1) and job control of a shell without it: an ignored signal stays ignored.
		 */
		if (old.sa_handler == SIG_IGN)
			continue;
		if (sigaction(caught[i], &sa, NULL))
			return diag_internal(d, -errno, "sigaction");
	}
	return 0;
}

const volatile sig_atomic_t *signals_cancel(void)
{
	return &cancelled;
}

void signals_rearm(void)
{
	if (!leaving)
		cancelled = 0;
}

bool signals_leaving(void)
{
	return leaving;
}

bool signals_take_winch(void)
{
	bool was = winch;

	winch = 0;
	return was;
}

bool signals_take_stop(void)
{
	bool was = stop;

	stop = 0;
	return was;
}

void signals_stop_self(void)
{
	raise(SIGSTOP);
}

void signals_block(sigset_t *before)
{
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&mask, caught[i]);
	sigprocmask(SIG_BLOCK, &mask, before);
}

void signals_unblock(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}
