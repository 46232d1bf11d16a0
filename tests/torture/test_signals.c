// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Not a signal more or less: programs that live by signals and check each of them, while heapmedic
 * works on them. What is stopped, parked or left to wait must not make anybody else wait.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "torture.h"

enum { CODES = 16, KINDS = 6 };

/* Every way to make a call, by a proxy and on a thread of the application. */
static const char *const command[KINDS][6] = {
	{ "trim" },
	{ "stats" },
	{ "--via", "direct", "trim" },
	{ "info" },
	{ "-e", "trim", "-e", "sleep 5ms", "-e" },
	{ "--via", "direct", "info" },
};

/* How often each exit code was seen. */
struct tally {
	unsigned code[CODES], runs;
};

static void tally_one(struct tally *t, const struct run *r, const char *allowed)
{
	char digit[4];

	snprintf(digit, sizeof(digit), " %d", r->exit);
	cr_assert(r->exit >= 0 && r->exit < 10 && strstr(allowed, digit), "exit %d: %s%s", r->exit,
		  r->out, r->err);
	t->code[r->exit]++;
	t->runs++;
}

static void run_kind(struct tally *t, const struct victim *v, unsigned kind, const char *allowed)
{
	char pid[16];
	const char *args[RUN_ARGS + 1] = { "-p", pid };
	const struct run_opts o = { 0 };
	struct run r;
	size_t n = 2;

	snprintf(pid, sizeof(pid), "%d", v->pid);
	for (size_t i = 0; i < 6 && command[kind][i]; i++)
		args[n++] = command[kind][i];
	if (!strcmp(args[n - 1], "-e"))
		args[n] = "stats";
	run_with(&r, &o, args);
	tally_one(t, &r, allowed);
	run_free(&r);
}

static uint64_t span_end(unsigned full_ms, unsigned brief_ms)
{
	return now_ns() + torture_rounds(full_ms, brief_ms) * 1000000ull;
}

static uint64_t bits(pid_t pid, const char *key)
{
	char path[64], line[256];
	uint64_t v = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	cr_assert_not_null(f, "%s: %s", path, strerror(errno));
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, key, strlen(key));
		v = found ? strtoull(line + strlen(key), NULL, 16) : 0;
	}
	fclose(f);
	cr_assert(found, "no %s in %s", key, path);
	return v;
}

static void among_signals(const char *mode)
{
	const uint64_t end = span_end(9000, 300);
	static struct state state;
	struct tally t = { .runs = 0 };
	uint64_t pending, usr2;
	struct victim v;

	victim_start_named(&v, "signals", mode, NULL);
	state_take(&v, &state);
	pending = bits(v.pid, "SigPnd:");
	usr2 = bits(v.pid, "ShdPnd:") & 1u << (SIGUSR2 - 1);
	cr_assert_eq(usr2 && pending, !strcmp(mode, "blocked"));
	for (unsigned i = 0; i < KINDS || now_ns() < end; i++) {
		run_kind(&t, &v, i % KINDS, " 0");
		victim_check(&v);
		cr_assert_eq(bits(v.pid, "SigPnd:"), pending);
		cr_assert_eq(bits(v.pid, "ShdPnd:") & 1u << (SIGUSR2 - 1), usr2);
	}
	state_same(&v, &state, STATE_MASKS_VARY);
	victim_stop(&v);
	torture_figure("signals %s: %u sessions, none lost, none on a thread of ours", mode,
		       t.runs);
}

Test(signals, handled, .timeout = 600)
{
	among_signals("handled");
}

Test(signals, blocked, .timeout = 600)
{
	among_signals("blocked");
}

Test(signals, ignored, .timeout = 600)
{
	among_signals("ignored");
}

/* heapmedic in the background, its stdout at fd. */
static pid_t spawn(int fd, const char *const *args)
{
	const char *program = getenv("HEAPMEDIC");
	const char *argv[RUN_ARGS + 2] = { "heapmedic" };
	pid_t pid;

	for (size_t i = 0; i < RUN_ARGS && args[i]; i++)
		argv[i + 1] = args[i];
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, 1) < 0)
		_exit(126);
	execv(program ? program : "./heapmedic", (char *const *)argv);
	_exit(126);
}

static void wait_ok(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "heapmedic ended with %#x",
		  status);
}

/* How many threads are traced, and whether one of them is the proxy's. */
static unsigned traced(pid_t pid, bool *proxy)
{
	pid_t tid[STATE_MAX];
	size_t n = proc_tids(pid, tid, STATE_MAX);
	unsigned count = 0;

	*proxy = false;
	for (size_t i = 0; i < n; i++) {
		char file[64], path[96], name[32] = "";
		FILE *f;

		snprintf(file, sizeof(file), "task/%d/status", tid[i]);
		count += proc_number(pid, file, "TracerPid:") > 0;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid[i]);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			*proxy |= !strncmp(name, "heapmedic", 9);
		if (f)
			fclose(f);
	}
	return count;
}

/* It is parked when it has been left alone for a while: between the start and the first call it is
 * untraced for a moment too. */
static void wait_proxy(pid_t pid)
{
	unsigned alone = 0;
	bool there = false;

	for (int i = 0; i < 10000 && alone < 60; i++) {
		alone = !traced(pid, &there) && there ? alone + 1 : 0;
		sleep_ns(1000000);
	}
	cr_assert(there, "there is no proxy");
}

/* A session that waits for its user: setuid(2), fork(2) and pthread_cancel(3) go on. */
static unsigned beside_parked(const char *name, const char *arg)
{
	const char *nap = torture_full() ? "sleep 4s" : "sleep 500ms";
	static struct state state;
	char pid[16];
	const char *args[] = { "-q", "-p", pid, "-e", "trim", "-e", nap, "-e", "trim", NULL };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct victim v;
	unsigned looks = 0;
	pid_t shell;
	bool there;

	victim_start_named(&v, name, arg, NULL);
	state_take(&v, &state);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	shell = spawn(null, args);
	wait_proxy(v.pid);
	for (const uint64_t end = span_end(3000, 250); now_ns() < end; looks++) {
		cr_assert_eq(traced(v.pid, &there), 0, "a parked session traces");
		victim_check(&v);
		sleep_ns(2000000);
	}
	wait_ok(shell);
	state_same(&v, &state, STATE_THREADS_VARY);
	victim_stop(&v);
	close(null);
	return looks;
}

Test(signals, parked, .timeout = 600)
{
	unsigned looks = beside_parked("setuid", "fork");

	looks += beside_parked("cancelled", NULL);
	torture_figure("setuid, fork and cancel beside a parked session: %u looks, nobody waits",
		       looks);
}

static int newest_first(const void *a, const void *b)
{
	const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x < y) - (x > y);
}

/* Threads that are cancelled one after another, pace ms each. They are asked for with the newest
 * first: the last to be cancelled, so that each has a little less time than the one before it. */
static void borrow_cancelled(struct tally *t, unsigned pace, unsigned ms)
{
	const uint64_t end = now_ns() + ms * 1000000ull;
	char text[16], deadline[16];
	struct victim v;

	snprintf(text, sizeof(text), "%u", pace);
	snprintf(deadline, sizeof(deadline), "%ums", 20 * pace);
	victim_start_named(&v, "cancelled", text, NULL);
	for (unsigned i = 0; i < 20 || now_ns() < end; i++) {
		pid_t tid[STATE_MAX];
		size_t n = proc_tids(v.pid, tid, STATE_MAX);
		char number[16];
		struct run r;

		qsort(tid, n, sizeof(tid[0]), newest_first);
		/* the two oldest are never cancelled */
		cr_assert_gt(n, 2);
		snprintf(number, sizeof(number), "%d", tid[i / 2 % (n - 2)]);
		run(&r, v.pid, "--via", i % 2 ? "direct" : "proxy", "--deadline", deadline,
		    "--thread", number, "trim", NULL);
		tally_one(t, &r, " 0 3 6");
		run_free(&r);
		victim_check(&v);
	}
	run_ok(v.pid, "trim", NULL);
	victim_stop(&v);
}

/*
 * A thread is cancelled while it is borrowed: its cleanup runs when it has its own stack again, and
 * what it held in pthread_create or in the allocator is not lost. It may be gone when it is asked
 * for. Where that is so each time, because the machine is busy or heapmedic starts slowly (under
 * sanitizers), they are cancelled less often.
 */
Test(signals, cancelled_while_borrowed, .timeout = 600)
{
	struct tally t = { .runs = 0 };
	unsigned pace = 1;

	borrow_cancelled(&t, pace, torture_rounds(4000, 300));
	while (!t.code[0] && pace < 1000)
		borrow_cancelled(&t, pace *= 6, 0);
	cr_assert_gt(t.code[0], 0, "%u sessions: %u gone, %u no safe point", t.runs, t.code[3],
		     t.code[6]);
	torture_figure("cancelled while borrowed: %u sessions (%u done, %u gone, %u no safe "
		       "point), one each %u ms",
		       t.runs, t.code[0], t.code[3], t.code[6], pace);
}

/* A pager that does not read: heapmedic waits for it, the target for nobody. */
Test(signals, a_reader_that_does_not_read, .timeout = 120)
{
	static const char fill[4096];
	char pid[16];
	const char *args[] = { "-p", pid, "-e", "info --raw", "-e", "stats", NULL };
	struct victim v;
	int pipe[2];
	pid_t shell;
	bool there;

	victim_start_named(&v, "signals", "ignored", NULL);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	cr_assert_eq(pipe2(pipe, O_CLOEXEC), 0);
	cr_assert_eq(fcntl(pipe[1], F_SETPIPE_SZ, 4096), 4096);
	cr_assert_eq(write(pipe[1], fill, sizeof(fill)), (ssize_t)sizeof(fill));
	shell = spawn(pipe[1], args);
	close(pipe[1]);
	wait_proxy(v.pid);
	sleep_ns(torture_rounds(1000, 200) * 1000000ull);
	cr_assert_eq(traced(v.pid, &there), 0, "the target waits for a reader");
	cr_assert(there);
	victim_check(&v);
	for (char buf[4096]; read(pipe[0], buf, sizeof(buf)) > 0;)
		;
	close(pipe[0]);
	wait_ok(shell);
	victim_stop(&v);
}

static void await_ready(struct victim *v)
{
	char ready[7] = "";

	cr_assert_eq(read(v->out, ready, 6), 6);
	cr_assert_str_eq(ready, "ready\n");
}

/* How long a search for a safe point, or a call, may last that will not come to an end. */
static const char *in_vain(void)
{
	return torture_full() ? "300ms" : "100ms";
}

/* The only thread is in a handler on top of malloc: refused within the deadline, however long. */
static void only_thread_in_handler(const char *alternate)
{
	const struct victim_plan plan = { .argv = { "@inhandler", alternate } };
	static struct state state;
	struct victim v;
	struct run r;

	victim_start(&v, &plan);
	state_take(&v, &state);
	run(&r, v.pid, "--deadline", in_vain(), "trim", NULL);
	run_expect(&r, 6);
	cr_assert_lt(r.ns, 20000000000ull);
	run_free(&r);
	state_same(&v, &state, STATE_EXACT);
	cr_assert_eq(write(v.in, "x", 1), 1);
	await_ready(&v);
	run_ok(v.pid, "trim", NULL);
	victim_stop(&v);
}

/*
 * With another thread to borrow the call is made; it may meet the lock that the interrupted malloc
 * holds, and is then left to end by itself.
 */
static void one_thread_in_handler(const char *alternate)
{
	const struct victim_plan plan = { .argv = { "@inhandler", "thread", alternate },
					  .silent = true };
	static struct state state;
	char tid[16] = "";
	struct victim v;
	struct run r;

	victim_start(&v, &plan);
	for (size_t n = 0; n < sizeof(tid) - 1 && read(v.out, tid + n, 1) == 1; n++)
		if (tid[n] == '\n') {
			tid[n] = '\0';
			break;
		}
	await_ready(&v);
	state_take(&v, &state);
	run(&r, v.pid, "--deadline", in_vain(), "--thread", tid, "trim", NULL);
	run_expect(&r, 6);
	run_free(&r);
	state_same(&v, &state, STATE_EXACT);
	run(&r, v.pid, "--timeout", in_vain(), "trim", NULL);
	/* what it interrupted may hold the lock of an arena: 6 where that is seen, 8 where it is
	 * met */
	cr_assert(r.exit == 0 || r.exit == 6 || r.exit == 8, "exit %d: %s", r.exit, r.err);
	run_free(&r);
	victim_check(&v);
	cr_assert_eq(write(v.in, "x", 1), 1);
	await_ready(&v);
	state_await_threads(&v, state.threads);
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_MASKS_VARY);
	victim_stop(&v);
}

Test(signals, a_handler_on_top_of_malloc, .timeout = 600)
{
	const unsigned rounds = torture_rounds(4, 1);

	for (unsigned i = 0; i < rounds; i++) {
		only_thread_in_handler(NULL);
		only_thread_in_handler("alternate");
		one_thread_in_handler(NULL);
		one_thread_in_handler("alternate");
	}
	torture_figure("handlers on top of malloc: %u left alone", 4 * rounds);
}

/* SIGSTOP and SIGCONT at random, until it is killed. */
static pid_t stop_and_continue(pid_t target)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srandom((unsigned)getpid());
	for (;;) {
		sleep_ns((uint64_t)random() % 15000000);
		kill(target, SIGSTOP);
		sleep_ns((uint64_t)random() % 8000000);
		kill(target, SIGCONT);
	}
}

/* Ctrl-Z in the middle of sessions. A stopped process is refused, and it stays stopped. */
Test(signals, stopped_at_any_moment, .timeout = 600)
{
	const uint64_t end = span_end(8000, 500);
	struct tally t = { .runs = 0 };
	static struct state state;
	struct victim v;
	pid_t stopper;
	int status;

	victim_start_named(&v, "signals", "handled", NULL);
	state_take(&v, &state);
	stopper = stop_and_continue(v.pid);
	for (unsigned i = 0; i < KINDS || now_ns() < end; i++)
		run_kind(&t, &v, i % KINDS, " 0 6");
	kill(stopper, SIGKILL);
	cr_assert_eq(waitpid(stopper, &status, 0), stopper);
	kill(v.pid, SIGCONT);
	proc_wait_state(v.pid, "SR");
	victim_check(&v);
	state_await_threads(&v, state.threads);
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_MASKS_VARY);
	victim_stop(&v);
	torture_figure("stopped at any moment: %u sessions, %u refused", t.runs, t.code[6]);
}
