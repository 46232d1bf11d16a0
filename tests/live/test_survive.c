// SPDX-License-Identifier: GPL-3.0-or-later
/* The target survives, whatever thread is borrowed and whenever heapmedic is interrupted. (What
 * SIGKILL does: tests/torture/test_kill.c.) */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"
#include "program.h"
#include "victim.h"

/* The tests are built like the program they run: under sanitizers that takes half a second to
 * start. */
#ifdef __SANITIZE_ADDRESS__
enum { SESSIONS = 8, INTERRUPTS = 25 };
#else
enum { SESSIONS = 20, INTERRUPTS = 100 };
#endif

/* Every thread of the victim is borrowed many times, in whatever call it waits. */
Test(survive, every_kind_of_blocking_call, .timeout = 300)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	cr_assert_eq(state.threads, 9);
	for (size_t i = 0; i < state.threads; i++) {
		char tid[16];

		snprintf(tid, sizeof(tid), "%d", state.thread[i].tid);
		for (int k = 0; k < SESSIONS; k++) {
			run_ok(v.pid, "--thread", tid, "trim", NULL);
			victim_check(&v);
		}
		state_same(&v, &state, STATE_EXACT);
	}
	victim_stop(&v);
}

/* Stopped again and again, a wait with a timeout still ends in time. The victim complains if not.
 */
Test(survive, a_timeout_does_not_begin_anew)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "epoll", "1000", NULL);
	state_take(&v, &state);
	for (int i = 0; i < 30; i++) {
		run_ok(v.pid, "trim", NULL);
		sleep_ns(100000000);
		victim_check(&v);
	}
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

static void many_sessions(const char *name, const char *arg, int n)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, arg, NULL);
	state_take(&v, &state);
	for (int i = 0; i < n; i++) {
		run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_check(&v);
	}
	victim_stop(&v);
}

Test(survive, one_thread_that_sleeps)
{
	many_sessions("single", NULL, 50);
}

Test(survive, threads_inside_malloc)
{
	many_sessions("busy", NULL, 30);
}

struct heap_size {
	long long arenas, in_use;
};

static struct heap_size heap_size(pid_t pid)
{
	json_t *o = heap_ask(pid, "arenas", NULL);
	struct heap_size s = { json_int(o, "result.total.arenas"),
			       json_int(o, "result.total.in_use") };

	json_decref(o);
	return s;
}

/* Threads of ours come and go, and leave no block and no arena behind. The victim allocates
 * nothing meanwhile. */
static void leaves_nothing(const char *name, const char *arg1, const char *arg2)
{
	static const char *const words[] = { "trim", "stats", "info" };
	static struct state state;
	struct heap_size before, after;
	struct victim v;

	victim_start_named(&v, name, arg1, arg2);
	run_ok(v.pid, "--via", "proxy", "trim", NULL);
	state_take(&v, &state);
	before = heap_size(v.pid);
	for (int i = 0; i < 12; i++)
		run_ok(v.pid, "--via", "proxy", words[i % 3], NULL);
	after = heap_size(v.pid);
	cr_assert_eq(after.arenas, before.arenas, "%lld arenas, then %lld", before.arenas,
		     after.arenas);
	cr_assert_eq(after.in_use, before.in_use, "%lld bytes in use, then %lld", before.in_use,
		     after.in_use);
	state_same(&v, &state, STATE_HEAP_STILL);
	victim_stop(&v);
}

Test(survive, sessions_leave_nothing_in_the_heap)
{
	leaves_nothing("retained", "2", "100");
}

Test(survive, sessions_leave_nothing_in_one_arena)
{
	leaves_nothing("shapes", "pins", NULL);
}

Test(survive, sessions_leave_nothing_in_a_static_program)
{
	leaves_nothing("threadstatic", "arenas", NULL);
}

/*
 * The thread that owns the only arena cannot be had for a while, the other one has none and could
 * be at once. It is waited for: else a new arena would be made, and its address space would stay.
 */
Test(survive, an_arena_is_not_made_in_haste, .timeout = 120)
{
	const char *root = getenv("VICTIM_ROOT");
	char dir[256], fifo[300];
	struct heap_size before, after;
	struct victim v;
	struct run r;
	int fd, status;
	pid_t waker;

	root = root ? root : "";
	snprintf(dir, sizeof(dir), "%s/tmp/survive-XXXXXX", root);
	cr_assert_not_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	victim_start_named(&v, "vforks", fifo + strlen(root), NULL);
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	before = heap_size(v.pid);
	cr_assert_eq(before.arenas, 1);
	cr_assert_eq(write(v.in, "x", 1), 1);
	proc_wait_state(v.pid, "D");
	/* for good: in the second half of the time any thread is good enough */
	run(&r, v.pid, "--deadline", "400ms", "check", "--hold", NULL);
	run_expect(&r, 0);
	cr_assert_geq(r.ns, 200000000u, "the other thread was taken at once");
	run_free(&r);
	waker = fork();
	if (waker == 0) {
		sleep_ns(300000000);
		_exit(write(fd, "x", 1) != 1);
	}
	run_ok(v.pid, "--deadline", "60s", "trim", NULL);
	cr_assert_eq(waitpid(waker, &status, 0), waker);
	cr_assert_eq(status, 0);
	after = heap_size(v.pid);
	cr_assert_eq(after.arenas, 1, "a new arena was made");
	victim_stop(&v);
	close(fd);
	unlink(fifo);
	rmdir(dir);
}

/*
 * A single thread that is in malloc nearly always: there may be no safe moment, and then exactly
 * that is said and nothing touched.
 */
Test(survive, one_thread_inside_malloc)
{
	static struct state state;
	struct victim v;
	int done = 0;

	victim_start_named(&v, "single", "busy", NULL);
	state_take(&v, &state);
	for (int i = 0; i < 30; i++) {
		struct run r;

		run(&r, v.pid, "trim", NULL);
		cr_assert(r.exit == 0 || r.exit == 6, "exit %d: %s", r.exit, r.err);
		done += r.exit == 0;
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_check(&v);
	}
	cr_assert_gt(done, 0, "there was not one safe moment in 30 runs");
	victim_stop(&v);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How long a whole run takes, the middle of several: within that time it is interrupted. */
static uint64_t typical_run(const struct victim *v)
{
	uint64_t ns[7];

	for (size_t i = 0; i < 7; i++) {
		struct run r;

		run(&r, v->pid, "trim", NULL);
		run_expect(&r, 0);
		ns[i] = r.ns;
		run_free(&r);
	}
	qsort(ns, 7, sizeof(ns[0]), compare_times);
	return ns[3];
}

/* A signal that asks politely ends the session at once, and everything is undone. */
Test(survive, sigterm_undoes_everything)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	for (int i = 0; i < 10; i++) {
		struct run_opts o = { .program = "timeout", .interrupted = true };
		const char *program = getenv("HEAPMEDIC");
		char pid[16];
		const char *args[] = { "-s", "TERM",	  "0.2", program ? program : "./heapmedic",
				       "-p", pid,	  "-e",	 "trim",
				       "-e", "sleep 20s", NULL };
		struct run r;

		snprintf(pid, sizeof(pid), "%d", v.pid);
		run_with(&r, &o, args);
		cr_assert_lt(r.ns, 10000000000ull, "it slept on");
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_check(&v);
	}
	victim_stop(&v);
}

/*
 * Ctrl-C at any instant, also while a thread is on its way through pthread_create: it is not taken
 * out of there, and nothing stays. timeout(1) says 130 for a signal before heapmedic listens to it.
 */
static void interrupted_at_random(const char *name, const char *arg)
{
	static struct state state;
	struct victim v;
	unsigned told = 0;
	uint64_t span;

	victim_start_named(&v, name, arg, NULL);
	state_take(&v, &state);
	span = typical_run(&v);
	srandom((unsigned)getpid());
	for (int i = 0; i < INTERRUPTS; i++) {
		const struct run_opts o = { .program = "timeout", .interrupted = true };
		const char *program = getenv("HEAPMEDIC");
		char pid[16], after[32];
		const char *args[] = { "--preserve-status",
				       "-sINT",
				       after,
				       program ? program : "./heapmedic",
				       "-p",
				       pid,
				       "trim",
				       NULL };
		struct run r;

		snprintf(pid, sizeof(pid), "%d", v.pid);
		snprintf(after, sizeof(after), "%.6f", (double)(random() % (long)span) / 1e9);
		run_with(&r, &o, args);
		cr_assert(r.exit == 0 || r.exit == 6 || r.exit == 8 || r.exit == 130, "exit %d: %s",
			  r.exit, r.err);
		told += r.exit == 6;
		if (r.exit == 8) /* the call ends by itself, the next run removes its mapping */
			run_ok(v.pid, "trim", NULL);
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_check(&v);
	}
	cr_assert_gt(told, 0, "not one of %d was interrupted", INTERRUPTS);
	victim_stop(&v);
}

Test(survive, sigint_with_many_threads, .timeout = 300)
{
	interrupted_at_random("eight", "eintr");
}

Test(survive, sigint_with_one_thread, .timeout = 300)
{
	interrupted_at_random("single", "eintr");
}
