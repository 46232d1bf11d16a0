// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * signals handled|blocked|ignored: a process full of signals that checks each of them: queued ones
 * come once and in order, no single one is lost (the sender waits for it), all children are reaped,
 * and no handler runs on a thread that is not its own. "handled": by handlers, one of them on an
 * alternate stack, while timers of 1 ms run and one thread executes int3 and reads from nowhere.
 * "blocked": every signal is blocked in every thread; sigwaitinfo(2) and a signalfd(2) take them,
 * and some stay pending from the start to the end. "ignored": nobody wants them.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "victim.h"

enum { OWN_MAX = 32, WINDOW = 20, PENDING = 3, NOT_LOST_MS = 20000 };
#define IN_HANDLER (SIGRTMIN + 1) /* queued for one thread */
#define IN_ORDER   (SIGRTMIN + 2) /* queued for the process, and only one thread takes it */
#define TICK	   (SIGRTMIN + 3) /* a timer's, for one thread */
#define READ	   (SIGRTMIN + 4) /* queued for the process, read from a signalfd */
#define LEFT_ALONE (SIGRTMIN + 9)

/* Those that a fault sends too, and others. */
static const int sent[] = { SIGSEGV, SIGTRAP, SIGBUS,  SIGILL,	 SIGFPE,
			    SIGSYS,  SIGUSR1, SIGTERM, SIGWINCH, SIGURG };
enum { SENT = sizeof(sent) / sizeof(sent[0]) };

static pid_t own[OWN_MAX];
static int owns;
static int seen[65], queued[65]; /* by signal, as taken and as sent */
static int faults[65], ticks;
static int started, reaped;
static volatile int ending;
static pthread_t receiver_thread;
static pid_t receiver_tid;

static int load(const int *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static int add(int *n)
{
	return __atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

static void enroll(void)
{
	int n = add(&owns);

	if (n > OWN_MAX)
		wrong("too many threads");
	own[n - 1] = gettid();
	thread_started();
}

static void must_be_own(int sig)
{
	pid_t tid = gettid();

	for (int i = 0; i < OWN_MAX; i++)
		if (own[i] == tid)
			return;
	wrong("the handler of signal %d runs on thread %d, which is not ours", sig, (int)tid);
}

static void count_in_order(int sig, int value)
{
	if (value != load(&seen[sig]))
		wrong("signal %d number %d came as number %d", sig, value, load(&seen[sig]));
	add(&seen[sig]);
}

/* ---- handlers */

static void on_any(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	must_be_own(sig);
	if (si->si_code <= 0 || (sig != SIGSEGV && sig != SIGTRAP)) {
		add(&seen[sig]);
		return;
	}
	add(&faults[sig]);
	if (sig == SIGSEGV)
		uc->uc_mcontext.gregs[REG_RIP] += 2; /* over the instruction in read_nowhere */
}

static void on_counted(int sig, siginfo_t *si, void *context)
{
	(void)context;
	must_be_own(sig);
	count_in_order(sig, si->si_value.sival_int);
}

static void on_tick(int sig)
{
	if (gettid() != receiver_tid)
		wrong("signal %d came to thread %d, not to %d", sig, (int)gettid(),
		      (int)receiver_tid);
	add(&ticks);
}

static void on_child(int sig)
{
	int kept = errno;

	must_be_own(sig);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		add(&reaped);
	errno = kept;
}

static void handle(int sig, void (*plain)(int), void (*full)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_flags = SA_RESTART | flags };

	sigemptyset(&sa.sa_mask);
	if (full) {
		sa.sa_sigaction = full;
		sa.sa_flags |= SA_SIGINFO;
	} else {
		sa.sa_handler = plain;
	}
	if (sigaction(sig, &sa, NULL))
		wrong("sigaction(%d): %s", sig, strerror(errno));
}

/* ---- threads */

static void mask(int how, int sig)
{
	sigset_t set;

	if (sig) {
		sigemptyset(&set);
		sigaddset(&set, sig);
	} else {
		sigfillset(&set);
	}
	pthread_sigmask(how, &set, NULL);
}

static void read_nowhere(void)
{
	unsigned long address = 8;

	__asm__ volatile("movb (%%rax), %%al" : "+a"(address) : : "memory");
}

static void *fault(void *arg)
{
	enroll();
	mask(SIG_BLOCK, 0);
	mask(SIG_UNBLOCK, SIGSEGV);
	mask(SIG_UNBLOCK, SIGTRAP);
	for (int n = 1;; n++) {
		__asm__ volatile("int3");
		read_nowhere();
		if (load(&faults[SIGTRAP]) != n || load(&faults[SIGSEGV]) != n)
			wrong("%d faults made %d SIGTRAP and %d SIGSEGV", n, load(&faults[SIGTRAP]),
			      load(&faults[SIGSEGV]));
		usleep(300);
	}
	return arg;
}

/* Takes what is sent to the process, but not at every moment: somebody else must not take it then.
 */
static void *serve(void *arg)
{
	enroll();
	for (unsigned i = 0;; i++) {
		mask(SIG_BLOCK, 0);
		free(malloc(1 + i % 3000));
		usleep(1000);
		for (int k = 0; k < SENT; k++)
			mask(SIG_UNBLOCK, sent[k]);
		mask(SIG_UNBLOCK, SIGALRM);
		mask(SIG_UNBLOCK, SIGPROF);
		mask(SIG_UNBLOCK, SIGCHLD);
		free(malloc(1 + i % 3000));
		usleep(200);
	}
	return arg;
}

static void *receive(void *arg)
{
	static char alternate[65536];
	stack_t st = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	if (sigaltstack(&st, NULL))
		wrong("sigaltstack: %s", strerror(errno));
	receiver_tid = gettid();
	mask(SIG_BLOCK, 0);
	mask(SIG_UNBLOCK, IN_HANDLER);
	mask(SIG_UNBLOCK, IN_ORDER);
	mask(SIG_UNBLOCK, TICK);
	enroll();
	for (;;)
		pause();
	return arg;
}

static void mask_is_full(void)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33 &&
		    !sigismember(&set, sig))
			wrong("signal %d is not blocked any more", sig);
}

static void *nap(void *arg)
{
	mask(SIG_BLOCK, 0);
	free(malloc(100));
	enroll();
	for (unsigned i = 0;; i++) {
		uint64_t start = now_ns();

		free(malloc(1 + i % 3000));
		if (usleep(3000))
			wrong("usleep: %s", strerror(errno));
		check_wait("usleep", start, 3);
		mask_is_full();
	}
	return arg;
}

static void *wait_for_some(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SENT / 2; i++)
		sigaddset(&set, sent[i]);
	sigaddset(&set, IN_ORDER);
	enroll();
	for (;;) {
		siginfo_t si;
		int sig = sigwaitinfo(&set, &si);

		if (sig < 0)
			wrong("sigwaitinfo: %s", strerror(errno));
		if (sig == IN_ORDER)
			count_in_order(sig, si.si_value.sival_int);
		else
			add(&seen[sig]);
	}
	return arg;
}

static void *read_others(void *arg)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (int i = SENT / 2; i < SENT; i++)
		sigaddset(&set, sent[i]);
	sigaddset(&set, READ);
	sigaddset(&set, SIGCHLD);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	enroll();
	for (;;) {
		struct signalfd_siginfo si;

		if (read(fd, &si, sizeof(si)) != sizeof(si))
			wrong("signalfd: %s", strerror(errno));
		if ((int)si.ssi_signo == READ)
			count_in_order(READ, si.ssi_int);
		else if (si.ssi_signo == SIGCHLD)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				add(&reaped);
		else
			add(&seen[si.ssi_signo]);
	}
	return arg;
}

/* ---- the sender */

/* A thread-directed one where thread is not NULL. At most WINDOW are under way. */
static void queue_one(int sig, const pthread_t *thread)
{
	union sigval v = { .sival_int = queued[sig] };
	int rc;

	if (queued[sig] - load(&seen[sig]) >= WINDOW)
		return;
	rc = thread ? pthread_sigqueue(*thread, sig, v) : sigqueue(getpid(), sig, v) ? errno : 0;
	if (rc == 0)
		queued[sig]++;
	else if (rc != EAGAIN)
		wrong("sigqueue: %s", strerror(rc));
}

static void start_child(void)
{
	pid_t pid;

	if (started - load(&reaped) >= WINDOW)
		return;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		started++;
}

static void wait_seen(int sig, int before)
{
	uint64_t end = now_ns() + NOT_LOST_MS * MS;

	while (load(&seen[sig]) == before) {
		if (now_ns() > end)
			wrong("signal %d was sent to the process and is lost", sig);
		usleep(50);
	}
}

enum mode { HANDLED, BLOCKED, IGNORED };
static enum mode mode;

static void *send_all(void *arg)
{
	enroll();
	mask(SIG_BLOCK, 0);
	for (unsigned i = 0; !ending; i++) {
		int sig = sent[i % SENT];
		int before = load(&seen[sig]);

		if (kill(getpid(), sig))
			wrong("kill: %s", strerror(errno));
		if (mode != IGNORED) {
			queue_one(IN_ORDER, NULL);
			queue_one(mode == HANDLED ? IN_HANDLER : READ,
				  mode == HANDLED ? &receiver_thread : NULL);
			if (i % 8 == 0)
				start_child();
			wait_seen(sig, before);
		}
		usleep(100);
	}
	return arg;
}

static pthread_t start(void *(*work)(void *))
{
	pthread_t t;

	static int starts;

	if (pthread_create(&t, NULL, work, NULL))
		wrong("no thread");
	wait_started(1 + ++starts);
	return t;
}

static void start_timers(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	struct itimerspec spec = { { 0, 1000000 }, { 0, 1000000 } };
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TICK };
	timer_t timer;

	ev._sigev_un._tid = receiver_tid;
	if (setitimer(ITIMER_REAL, &every, NULL) || setitimer(ITIMER_PROF, &every, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &spec, NULL))
		wrong("timers: %s", strerror(errno));
}

static void begin_handled(void)
{
	for (int i = 0; i < SENT; i++)
		handle(sent[i], NULL, on_any, 0);
	handle(SIGALRM, NULL, on_any, 0);
	handle(SIGPROF, NULL, on_any, 0);
	handle(SIGCHLD, on_child, NULL, 0);
	handle(TICK, on_tick, NULL, SA_ONSTACK);
	handle(IN_HANDLER, NULL, on_counted, SA_ONSTACK);
	handle(IN_ORDER, NULL, on_counted, SA_ONSTACK);
	mask(SIG_BLOCK, 0);
	receiver_thread = start(receive);
	start(fault);
	start(serve);
	start(serve);
	start_timers();
}

static void begin_blocked(void)
{
	mask(SIG_BLOCK, 0);
	for (int i = 0; i < PENDING; i++) {
		union sigval v = { .sival_int = i };

		if (pthread_sigqueue(pthread_self(), LEFT_ALONE, v))
			wrong("pthread_sigqueue");
	}
	kill(getpid(), SIGUSR2);
	start(wait_for_some);
	start(read_others);
}

/* What was pending at the start is pending still. */
static void end_blocked(void)
{
	static const struct timespec now;
	sigset_t set;
	siginfo_t si;

	sigemptyset(&set);
	sigaddset(&set, LEFT_ALONE);
	for (int i = 0; i < PENDING; i++)
		if (sigtimedwait(&set, &si, &now) != LEFT_ALONE || si.si_value.sival_int != i)
			wrong("number %d of the pending signals is not there", i);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (sigtimedwait(&set, &si, &now) != SIGUSR2 || si.si_code != SI_USER)
		wrong("SIGUSR2 is not pending any more");
}

static void begin_ignored(void)
{
	for (int i = 0; i < SENT; i++)
		signal(sent[i], SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
}

static void all_arrived(void)
{
	const int counted[] = { IN_HANDLER, IN_ORDER, READ };

	for (int i = 0; i < NOT_LOST_MS && load(&reaped) != started; i++)
		usleep(1000);
	if (load(&reaped) != started)
		wrong("%d children of %d were reaped", load(&reaped), started);
	for (size_t k = 0; k < 3; k++) {
		int sig = counted[k];

		for (int i = 0; i < NOT_LOST_MS && load(&seen[sig]) != queued[sig]; i++)
			usleep(1000);
		if (load(&seen[sig]) != queued[sig])
			wrong("%d signals %d came of %d", load(&seen[sig]), sig, queued[sig]);
	}
	if (mode == HANDLED && (!ticks || !seen[SIGALRM] || !seen[SIGPROF]))
		wrong("a timer did not tick: %d, %d, %d", ticks, seen[SIGALRM], seen[SIGPROF]);
}

int main(int argc, char **argv)
{
	static void (*const begin[])(void) = { begin_handled, begin_blocked, begin_ignored };
	pthread_t sender;

	victim_eintr = 1;
	mode = victim_option(argc, argv, "handled")   ? HANDLED
	       : victim_option(argc, argv, "blocked") ? BLOCKED
						      : IGNORED;
	enroll();
	begin[mode]();
	for (int i = 0; i < 3; i++)
		start(nap);
	sender = start(send_all);
	usleep(50000);
	victim_ready();
	while (!victim_over(20))
		;
	ending = 1;
	pthread_join(sender, NULL);
	all_arrived();
	if (mode == BLOCKED)
		end_blocked();
	_exit(0);
}
