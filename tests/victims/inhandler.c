// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * inhandler [thread] [alternate]: a handler that has interrupted malloc or free and stays there
 * until a byte comes in; the program then goes on and says "ready" again. It is the only thread, or
 * with "thread" a second one whose number is said first. With "alternate" the handler has a stack
 * of its own. Blocks are checked all the time. The end of its standard input ends it.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "victim.h"

static uint64_t libc_from, libc_to;
static volatile int stayed;
static pthread_t worker;

/* The executable part of libc. */
static void find_libc(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "r-xp") && strstr(line, "/libc.so"))
			sscanf(line, "%lx-%lx", &libc_from, &libc_to);
	if (f)
		fclose(f);
	if (!libc_to)
		wrong("no libc");
}

static void say_ready(void)
{
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		wrong("write: %s", strerror(errno));
}

static void stay(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *uc = context;
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	int kept = errno;
	char c;

	(void)si;
	if (stayed || pc < libc_from || pc >= libc_to)
		return;
	if (!pthread_equal(pthread_self(), worker)) {
		pthread_kill(worker, sig);
		return;
	}
	stayed = 1;
	say_ready();
	while (read(STDIN_FILENO, &c, 1) < 0)
		if (errno != EINTR)
			wrong("read: %s", strerror(errno));
	errno = kept;
}

static void allocate(unsigned turns)
{
	unsigned char *p[16] = { 0 };
	size_t n[16] = { 0 };

	for (unsigned t = 0; t < turns; t++) {
		unsigned i = t % 16;

		if (p[i] && (p[i][0] != i || p[i][n[i] - 1] != i))
			wrong("a block of %zu bytes has changed", n[i]);
		free(p[i]);
		n[i] = 2000 + t * 37 % 9000;
		p[i] = malloc(n[i]);
		if (!p[i])
			wrong("no memory");
		p[i][0] = p[i][n[i] - 1] = (unsigned char)i;
	}
	for (unsigned i = 0; i < 16; i++)
		free(p[i]);
}

static void interrupt_malloc(int alternate)
{
	static char other[65536];
	stack_t st = { .ss_sp = other, .ss_size = sizeof(other) };
	struct sigaction sa = { .sa_sigaction = stay, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	if (alternate) {
		sa.sa_flags |= SA_ONSTACK;
		if (sigaltstack(&st, NULL))
			wrong("sigaltstack: %s", strerror(errno));
	}
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (!stayed)
		allocate(1000);
	setitimer(ITIMER_REAL, &never, NULL);
	say_ready();
	while (!victim_over(2))
		allocate(1000);
	_exit(0);
}

static void *work(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	worker = pthread_self();
	if (dprintf(STDOUT_FILENO, "%d\n", (int)gettid()) < 2)
		wrong("write: %s", strerror(errno));
	interrupt_malloc(arg != NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	int alternate = victim_option(argc, argv, "alternate");
	sigset_t set;
	pthread_t t;

	victim_eintr = 1;
	find_libc();
	prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
	worker = pthread_self();
	if (!victim_option(argc, argv, "thread"))
		interrupt_malloc(alternate);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&t, NULL, work, alternate ? argv : NULL))
		wrong("no thread");
	for (;;) {
		usleep(5000);
		free(malloc(500));
	}
}
