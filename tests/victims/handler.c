// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * handler HOW: one thread that does its work in a signal handler which never returns, as the
 * children of a server do that it makes in a handler. HOW tells what the signal interrupted:
 *   sleep      a call that the signal ends
 *   restart    a call that would be made again
 *   compute    code of its own
 *   malloc     the allocator, in the middle: nobody may call that here
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/time.h>
#include <ucontext.h>

#include "victim.h"

static const char *how;
static int pipes[2];

/* Where the exported function that pc is in, or behind, belongs to the allocator. */
static int in_malloc(const ucontext_t *context)
{
	Dl_info info;

	/* REG_RIP */
	return dladdr((void *)context->uc_mcontext.gregs[16], &info) && info.dli_sname &&
	       (!strcmp(info.dli_sname, "malloc") || !strcmp(info.dli_sname, "free") ||
		!strcmp(info.dli_sname, "cfree") || !strcmp(info.dli_sname, "realloc"));
}

static void work(void)
{
	victim_ready();
	while (!victim_over(0)) {
		uint64_t start = now_ns();

		usleep(3000);
		check_wait("usleep", start, 3);
		if (strcmp(how, "malloc") != 0)
			free(malloc(2000));
	}
	_exit(0);
}

static void on_signal(int sig, siginfo_t *si, void *context)
{
	const struct itimerval off = { { 0, 0 }, { 0, 0 } };

	(void)sig;
	(void)si;
	if (!strcmp(how, "malloc") && !in_malloc(context))
		return;
	setitimer(ITIMER_REAL, &off, NULL);
	work();
}

int main(int argc, char **argv)
{
	const struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	volatile unsigned n = 0;
	char c;

	how = argc > 1 ? argv[1] : "sleep";
	if (!strcmp(how, "restart"))
		sa.sa_flags |= SA_RESTART;
	if (pipe(pipes) || sigaction(SIGALRM, &sa, NULL) || setitimer(ITIMER_REAL, &every, NULL))
		wrong("setting up: %s", strerror(errno));
	if (!strcmp(how, "sleep"))
		select(0, NULL, NULL, NULL, NULL);
	if (!strcmp(how, "restart"))
		(void)!read(pipes[0], &c, 1);
	if (!strcmp(how, "compute"))
		for (;;)
			n++;
	for (;;)
		free(malloc(100 + n++ % 3000));
}
