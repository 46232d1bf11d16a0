// SPDX-License-Identifier: GPL-3.0-or-later
/* Targets that do what makes life hard for a tracer, and users who interrupt or start two at once.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

enum { SESSIONS = 40, INTERRUPTS = 60, RACES = 300 };

static void sessions(const char *name, enum state_freedom freedom)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, NULL, NULL);
	state_take(&v, &state);
	for (int i = 0; i < SESSIONS; i++) {
		run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, freedom);
		victim_check(&v);
	}
	victim_stop(&v);
}

/* No signal is left to tell the end of a direct call with. */
Test(hostile, every_signal_that_could_serve_is_caught, .timeout = 120)
{
	sessions("caught", STATE_EXACT);
}

/*
 * A program that works in a signal handler is called there if what the signal interrupted allows
 * it, and not otherwise.
 */
Test(hostile, in_a_signal_handler, .timeout = 120)
{
	static const char *const how[] = { "sleep", "restart", "compute" };
	static struct state state;
	struct victim v;

	for (size_t k = 0; k < sizeof(how) / sizeof(how[0]); k++) {
		victim_start_named(&v, "handler", how[k], NULL);
		state_take(&v, &state);
		for (int i = 0; i < SESSIONS; i++) {
			run_ok(v.pid, i % 2 ? "stats" : "trim", NULL);
			state_same(&v, &state, STATE_EXACT);
			victim_check(&v);
		}
		victim_stop(&v);
	}
}

Test(hostile, in_a_signal_handler_that_interrupted_malloc, .timeout = 120)
{
	static struct state state;
	unsigned seen = 0;
	struct victim v;
	struct run r;
	json_t *o;

	victim_start_named(&v, "handler", "malloc", NULL);
	state_take(&v, &state);
	for (int i = 0; i < 5; i++) {
		run(&r, v.pid, "--deadline", "200ms", "trim", NULL);
		run_expect(&r, 6);
		cr_assert_not_null(
			strstr(r.err, "in a signal handler, and below that inside the allocator"),
			"%s", r.err);
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
	}
	/* what only looks sees it too, and says what a call would; where it runs just now nobody
	 * can see its stack */
	for (int i = 0; i < 20; i++) {
		run(&r, v.pid, "check", NULL);
		if (!strstr(r.out, "usable, running")) {
			run_expect(&r, 6);
			cr_assert_not_null(strstr(r.out, "not usable, it is inside the allocator"),
					   "%s", r.out);
			seen++;
		}
		run_free(&r);
	}
	cr_assert_gt(seen, 0);
	seen = 0;
	for (int i = 0; i < 20; i++) {
		run(&r, v.pid, "--json", "threads", NULL);
		run_expect(&r, 0);
		o = run_json(&r, 0, v.pid, "threads");
		if (!json_is_null(json_at(o, "result.threads.0.syscall"))) {
			cr_assert(!json_bool(o, "result.threads.0.usable"), "%s", r.out);
			seen++;
		}
		json_decref(o);
		run_free(&r);
	}
	cr_assert_gt(seen, 0);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* glibc's signal for setuid(2) comes at every moment of an injection and must be answered. */
Test(hostile, setuid_all_the_time, .timeout = 120)
{
	sessions("setuid", STATE_THREADS_VARY);
}

/* What /proc/PID/maps says was never true at one moment. */
Test(hostile, mappings_that_change_all_the_time, .timeout = 120)
{
	sessions("remap", STATE_MAPPINGS_VARY);
}

/* SIGINT at any time, mostly before a thread is held: an order to stop, not to leave a mess. */
static void interrupted(const char *name)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, "eintr", NULL);
	state_take(&v, &state);
	for (int i = 0; i < INTERRUPTS; i++) {
		struct run_opts o = { .program = "timeout", .interrupted = true };
		const char *program = getenv("HEAPMEDIC");
		char after[16], pid[16];
		const char *args[] = { "-s", "INT", after,  program ? program : "./heapmedic",
				       "-p", pid,   "trim", NULL };
		struct run r;

		snprintf(after, sizeof(after), "0.%03d", 1 + i % 20);
		snprintf(pid, sizeof(pid), "%d", v.pid);
		run_with(&r, &o, args);
		cr_assert_null(strstr(r.err, "please report"), "%s", r.err);
		/* on a busy machine a call may really be left behind: the next run takes it away */
		if (strstr(r.err, "still runs"))
			run_ok(v.pid, "trim", NULL);
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_check(&v);
	}
	victim_stop(&v);
}

Test(hostile, interrupted_with_many_threads, .timeout = 120)
{
	interrupted("eight");
}

Test(hostile, interrupted_with_one_thread, .timeout = 120)
{
	interrupted("single");
}

/* In the background, until it is killed or has done it RACES times. */
static pid_t trim_again_and_again(pid_t target)
{
	const char *program = getenv("HEAPMEDIC");
	char line[4400];
	pid_t pid;

	snprintf(line, sizeof(line),
		 "i=0; while [ $i -lt %d ]; do '%s' -p %d trim; i=$((i+1)); done >/dev/null 2>&1",
		 RACES, program ? program : "./heapmedic", target);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	return pid;
}

/* Each of two takes care not to clear away what the other has just put there. */
Test(hostile, two_at_once, .timeout = 300)
{
	static struct state state;
	struct victim v;
	pid_t second;
	int status;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	second = trim_again_and_again(v.pid);
	for (int i = 0; i < RACES; i++) {
		struct run r;

		run(&r, v.pid, "trim", NULL);
		/* 4: the other one traces the main thread just now */
		cr_assert(r.exit == 0 || r.exit == 4, "exit %d: %s", r.exit, r.err);
		run_free(&r);
	}
	cr_assert_eq(waitpid(second, &status, 0), second);
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* Too few descriptors are seen beforehand. */
Test(hostile, no_descriptors)
{
	static const rlim_t few[] = { 1, 3, 5 };
	static struct state state;
	struct rlimit old;
	struct victim v;

	victim_start_named(&v, "busy", NULL, NULL);
	state_take(&v, &state);
	cr_assert_eq(prlimit(v.pid, RLIMIT_NOFILE, NULL, &old), 0);
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
		struct rlimit now = { few[i], old.rlim_max };
		struct run r;

		cr_assert_eq(prlimit(v.pid, RLIMIT_NOFILE, &now, NULL), 0);
		run(&r, v.pid, "trim", NULL);
		run_expect(&r, 1);
		cr_assert_not_null(strstr(r.err, "RLIMIT_NOFILE"), "%s", r.err);
		run_free(&r);
		cr_assert_eq(prlimit(v.pid, RLIMIT_NOFILE, &old, NULL), 0);
		state_same(&v, &state, STATE_EXACT);
	}
	victim_stop(&v);
}

/*
 * A proxy that cannot have them all the same says why, and all of it goes again. Under a seccomp
 * filter each command starts a proxy of its own: the limit falls between two of one session.
 */
Test(hostile, no_descriptors_any_more)
{
	static const rlim_t few[] = { 1, 3, 5 };
	static struct state state;
	struct rlimit old;
	struct victim v;
	char pid[16];
	const char *args[] = { "-p", pid, "-e", "trim", "-e", "sleep 1s", "-e", "trim", NULL };

	if (geteuid() != 0)
		cr_skip_test("only root may suspend a filter");
	victim_start_named(&v, "filtered", "memfd_create", "log");
	snprintf(pid, sizeof(pid), "%d", v.pid);
	state_take(&v, &state);
	cr_assert_eq(prlimit(v.pid, RLIMIT_NOFILE, NULL, &old), 0);
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
		struct rlimit now = { few[i], old.rlim_max };
		const struct run_opts o = { 0 };
		struct run r;
		pid_t lowers = fork();

		if (lowers == 0) {
			sleep_ns(500000000);
			_exit(prlimit(v.pid, RLIMIT_NOFILE, &now, NULL) ? 1 : 0);
		}
		run_with(&r, &o, args);
		cr_assert_eq(waitpid(lowers, NULL, 0), lowers);
		run_expect(&r, 1);
		cr_assert_not_null(strstr(r.err, "the proxy thread could not make"), "%s", r.err);
		run_free(&r);
		cr_assert_eq(prlimit(v.pid, RLIMIT_NOFILE, &old, NULL), 0);
		state_same(&v, &state, STATE_EXACT);
	}
	victim_stop(&v);
}

/*
 * execve(2) in the middle of a session: not one address is good any more. The session looks again,
 * and works on what the process has become.
 */
static void executes_itself(const char *arg)
{
	const char script[] = "trim\nsleep 1s\ntrim\n";
	struct run_opts o = { .input = script };
	struct victim v;
	char pid[16];
	const char *args[] = { "-y", "-p", pid, "-f", "-", NULL };
	char ready[7] = "";
	struct run r;
	pid_t waker;

	victim_start_named(&v, "again", arg, NULL);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	waker = fork();
	if (!waker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(500000);
		_exit(write(v.in, "x", 1) != 1);
	}
	run_with(&r, &o, args);
	cr_assert_eq(waitpid(waker, NULL, 0), waker);
	run_expect(&r, 0);
	run_free(&r);
	cr_assert_eq(read(v.out, ready, 6), 6);
	cr_assert_str_eq(ready, "ready\n");
	victim_stop(&v);
}

Test(hostile, executes_itself_with_one_thread)
{
	executes_itself(NULL);
}

Test(hostile, executes_itself_with_two_threads)
{
	executes_itself("two");
}

/* pthread_create that outlasts its time is left to end by itself: it has locked something. */
Test(hostile, thread_creation_waits_for_a_lock, .timeout = 60)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "slowlock", NULL, NULL);
	run(&r, v.pid, "trim", NULL);
	cr_assert_neq(r.exit, 0);
	run_free(&r);
	victim_check(&v);
	victim_stop(&v);
}

/*
 * A filter is suspended while we trace, and is not when we are killed. One that would kill then is
 * refused, one that says EPERM is no danger.
 */
Test(hostile, a_seccomp_filter_that_kills)
{
	static struct state state;
	struct victim v;
	struct run r;

	victim_start_named(&v, "filtered", "memfd_create", "kill");
	state_take(&v, &state);
	run(&r, v.pid, "trim", NULL);
	run_expect(&r, 6);
	cr_assert_not_null(strstr(r.err, "would kill it for system call 319"), "%s", r.err);
	run_free(&r);
	run_ok(v.pid, "--via", "direct", "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(hostile, a_seccomp_filter_that_refuses)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "filtered", "memfd_create", "errno");
	state_take(&v, &state);
	run_ok(v.pid, "trim", NULL);
	run_ok(v.pid, "stats", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}
