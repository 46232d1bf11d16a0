// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Programs that are inside a lock of the allocator, of the dynamic linker or of stdio at nearly
 * every moment; that fork, execute themselves or end in the middle; and locks that nobody gives
 * back. No call may hang or do harm, and where there is no safe moment that is said in time.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "torture.h"

enum { CODES = 11, BATCH = 40, MOST_RUNS = 100 };
/* Briefly: three short sessions, and one more on a thread of the application. */
enum { BRIEF_BATCH = 5, BRIEF_CALLS = 3 * BRIEF_BATCH + 1 };

/*
 * How often each exit code was seen, how many calls were asked for, and how many of them were made
 * for sure: those of the sessions that came to their end.
 */
struct tally {
	unsigned code[CODES], runs, calls, made;
	uint64_t longest_ns;
};

static void tally_one(struct tally *t, const struct run *r, const char *allowed)
{
	char digit[16];

	snprintf(digit, sizeof(digit), " %d ", r->exit);
	cr_assert(r->exit >= 0 && r->exit < CODES && strstr(allowed, digit),
		  "exit %d (signal %d): %s%s", r->exit, r->sig, r->out, r->err);
	t->code[r->exit]++;
	t->runs++;
	if (r->ns > t->longest_ns)
		t->longest_ns = r->ns;
}

static void tally_show(const struct tally *t, const char *what)
{
	char codes[160] = "";
	size_t n = 0;

	for (int i = 0; i < CODES; i++)
		if (t->code[i])
			n += (size_t)snprintf(codes + n, sizeof(codes) - n, " %d x exit %d,",
					      t->code[i], i);
	torture_figure("%s: %u calls in %u runs, %u of them in runs that did all,%s longest %.1f s",
		       what, t->calls, t->runs, t->made, codes, (double)t->longest_ns / 1e9);
}

/*
 * One session with n commands on its standard input. Never stats: it is refused (6) in the middle
 * of a session when somebody holds the lock of stderr.
 */
static void batch(struct tally *t, const struct victim *v, const char *via, unsigned n,
		  const char *allowed)
{
	static const char *const word[] = { "trim\n", "info\n" };
	char input[BATCH * 8] = "", pid[16];
	const char *args[] = { "-p", pid, "--via", via, NULL };
	const struct run_opts o = { .input = input };
	struct run r;

	cr_assert_leq(n, BATCH);
	snprintf(pid, sizeof(pid), "%d", v->pid);
	for (unsigned i = 0; i < n; i++)
		strcat(input, word[(t->runs + i) % 2]);
	run_with(&r, &o, args);
	tally_one(t, &r, allowed);
	t->calls += n;
	t->made += r.exit ? 0 : n;
	run_free(&r);
}

/* Mostly long sessions, some short ones, and every eighth (briefly: fourth) on the application's
 * own threads. */
static void many_calls(const char *what, const struct victim_plan *plan, unsigned calls,
		       const char *allowed)
{
	const unsigned direct = torture_rounds(8, 4);
	static struct state state;
	struct tally t = { .runs = 0 };
	struct victim v;

	victim_start(&v, plan);
	state_take(&v, &state);
	/* on a busy machine there may not be one safe point in the time of many */
	while (t.calls < calls || (!t.code[0] && t.runs < MOST_RUNS)) {
		unsigned n = t.runs % 4 == 3 ? 1 : torture_rounds(BATCH, BRIEF_BATCH);

		batch(&t, &v, t.runs % direct == direct - 1 ? "direct" : "auto", n, allowed);
		victim_check(&v);
	}
	cr_assert_gt(t.code[0], 0, "not one session was done");
	state_same(&v, &state, STATE_THREADS_VARY);
	victim_stop(&v);
	tally_show(&t, what);
}

Test(locks, eight_threads_in_malloc, .timeout = 3600)
{
	const struct victim_plan plan = { .argv = { "@locks", "alloc", "alloc" } };

	many_calls("eight threads in malloc", &plan, torture_rounds(3000, BRIEF_CALLS), " 0 6 ");
}

Test(locks, fork_and_spawn, .timeout = 3600)
{
	const struct victim_plan plan = { .argv = { "@locks", "alloc", "fork", "fork", "spawn" } };

	many_calls("fork, vfork and posix_spawn", &plan, torture_rounds(1200, BRIEF_CALLS),
		   " 0 6 ");
}

Test(locks, linker_threads_and_stdio, .timeout = 3600)
{
	const struct victim_plan plan = { .argv = { "@locks", "alloc", "dl", "threads", "stdio",
						    "phdr", "limits" } };

	many_calls("dlopen, threads, stdio, phdr", &plan, torture_rounds(1200, BRIEF_CALLS),
		   " 0 6 ");
}

/* The only thread is in malloc nearly always. */
Test(locks, one_thread_in_malloc, .timeout = 3600)
{
	const struct victim_plan plan = { .argv = { "@single", "busy" } };

	many_calls("one thread in malloc", &plan, torture_rounds(14800, BRIEF_CALLS), " 0 6 ");
}

static void await_ready(struct victim *v)
{
	char ready[7] = "";

	cr_assert_eq(read(v->out, ready, 6), 6);
	cr_assert_str_eq(ready, "ready\n");
}

/* The lock of the main arena is never given back: the call is left behind in time, and ends later.
 */
Test(locks, a_lock_that_is_stuck, .timeout = 3600)
{
	const unsigned rounds = torture_rounds(6, 1);
	struct tally t = { .runs = 0 };

	for (unsigned i = 0; i < rounds; i++) {
		static struct state state;
		struct victim v;
		struct run r;

		victim_start_named(&v, "stuck", NULL, NULL);
		state_take(&v, &state);
		run(&r, v.pid, "--deadline", "300ms", "--timeout", "300ms", "--via",
		    i % 2 ? "direct" : "proxy", "trim", NULL);
		tally_one(&t, &r, " 6 8 ");
		t.calls++;
		cr_assert_lt(r.ns, 30000000000ull);
		run_free(&r);
		/* a second one meets the same lock */
		run(&r, v.pid, "--deadline", "300ms", "--timeout", "300ms", "trim", NULL);
		tally_one(&t, &r, " 6 8 ");
		t.calls++;
		run_free(&r);
		victim_check(&v);
		cr_assert_eq(write(v.in, "x", 1), 1);
		await_ready(&v);
		state_await_threads(&v, state.threads);
		run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	tally_show(&t, "a stuck arena lock");
}

/* Stops a thread where it is, as a debugger does. */
static void debugger_stop(pid_t tid)
{
	cr_assert_eq(ptrace(PTRACE_SEIZE, tid, 0, 0), 0, "%s", strerror(errno));
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	cr_assert_eq(waitpid(tid, NULL, __WALL), tid);
}

/*
 * Another debugger keeps a thread in the allocator, as like as not with a lock: the call is made,
 * or left behind in time, and nothing is lost when the thread goes on. A thread that was left in a
 * call comes back through the frame that was written for that: its poll(2) may end in EINTR.
 */
Test(locks, a_thread_kept_by_a_debugger, .timeout = 3600)
{
	const struct victim_plan plan = { .argv = { "@locks", "alloc", "limits", "eintr" } };
	const unsigned rounds = torture_rounds(24, 4);
	struct tally t = { .runs = 0 };
	static struct state state;
	struct victim v;

	victim_start(&v, &plan);
	state_take(&v, &state);
	for (unsigned i = 0; i < rounds; i++) {
		/* the first is the main thread */
		pid_t tid = state.thread[1 + i % 4].tid;
		struct run r;

		debugger_stop(tid);
		run(&r, v.pid, "--deadline", "300ms", "--timeout", "300ms", "--via",
		    i % 4 == 3 ? "direct" : "proxy", "trim", NULL);
		tally_one(&t, &r, " 0 6 8 ");
		t.calls++;
		t.made += r.exit == 0;
		cr_assert_lt(r.ns, 30000000000ull);
		run_free(&r);
		/* had it ended, this would say why */
		victim_check(&v);
		cr_assert_eq(ptrace(PTRACE_DETACH, tid, 0, 0), 0, "%s", strerror(errno));
		state_await_threads(&v, state.threads);
		victim_check(&v);
	}
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	cr_assert_leq(victim_report(&v, NULL, 0), t.code[8], "more EINTR than calls left behind");
	victim_stop(&v);
	tally_show(&t, "a thread kept by a debugger");
}

/* It is another program every few milliseconds. */
static void restless(const char *arg)
{
	const unsigned rounds = torture_rounds(300, 6);
	struct tally t = { .runs = 0 };
	struct victim v;

	victim_start_named(&v, "restless", arg, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		batch(&t, &v, i % 3 ? "auto" : "direct", 1 + i % 3, " 0 3 6 9 ");
		victim_check(&v);
	}
	victim_stop(&v);
	tally_show(&t, arg ? "execve from a second thread" : "execve all the time");
}

Test(locks, executes_itself, .timeout = 3600)
{
	restless(NULL);
	restless("two");
}

/* Ends by itself or is ended, early or late in a session. A code of the table, and never a hang. */
Test(locks, ends_in_the_middle, .timeout = 3600)
{
	static const char ways[] = "xkat";
	const unsigned rounds = torture_rounds(200, 12);
	struct tally t = { .runs = 0 };

	srandom((unsigned)getpid());
	for (unsigned i = 0; i < rounds; i++) {
		const uint64_t delay = (uint64_t)random() % 15000000;
		struct victim v;
		pid_t killer;

		victim_start_named(&v, "dying", NULL, NULL);
		killer = fork();
		cr_assert_neq(killer, -1);
		if (killer == 0) {
			sleep_ns(delay);
			_exit(write(v.in, &ways[i % 4], 1) == 1 ? 0 : 1);
		}
		batch(&t, &v, i % 3 ? "proxy" : "direct", 1 + i % 4, " 0 3 6 9 ");
		cr_assert_eq(waitpid(killer, NULL, 0), killer);
		victim_kill(&v);
	}
	tally_show(&t, "ends in the middle");
}
