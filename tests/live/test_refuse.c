// SPDX-License-Identifier: GPL-3.0-or-later
/* Targets that cannot be worked on, and wishes that are refused: each has its exit code and one
 * line that says why. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

/* One line on stderr, not a page; the JSON object has the same code. */
static void refused_as(pid_t pid, const struct run_opts *o, int code, const char *const *words)
{
	char number[16];
	const char *args[RUN_ARGS + 1] = { "-p", number };
	struct run r;
	json_t *json;
	size_t n = 2, lines = 0;

	snprintf(number, sizeof(number), "%d", pid);
	for (size_t i = 0; words[i]; i++)
		args[n++] = words[i];
	run_with(&r, o, args);
	run_expect(&r, code);
	cr_assert_eq(r.out[0], '\0', "an answer on stdout: %s", r.out);
	for (const char *p = r.err; *p; p++)
		lines += *p == '\n';
	cr_assert(lines >= 1 && lines <= 3, "%s", r.err);
	run_free(&r);

	args[n] = "--json";
	run_with(&r, o, args);
	run_expect(&r, code);
	json = json_loads(r.out, 0, NULL);
	cr_assert_not_null(json, "%s%s", r.out, r.err);
	cr_assert_not(json_bool(json, "ok"));
	cr_assert_eq(json_int(json, "exit"), code);
	cr_assert_gt(strlen(json_text(json, "error.text")), 0);
	cr_assert_gt(strlen(json_text(json, "error.hint")), 0, "no next step: %s", r.out);
	json_decref(json);
	run_free(&r);
}

static void refused(pid_t pid, int code, const char *command)
{
	const struct run_opts o = { 0 };

	refused_as(pid, &o, code, (const char *[]){ command, NULL });
}

Test(refuse, no_such_process)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	refused(pid, 3, "trim");
	refused(pid, 3, "check");
}

Test(refuse, zombie)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	proc_wait_state(pid, "Z");
	refused(pid, 3, "trim");
	refused(pid, 3, "check");
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(refuse, itself)
{
	const char *program = getenv("HEAPMEDIC");
	const struct run_opts o = { .program = "sh" };
	char line[4200];
	const char *args[] = { "-c", line, NULL };
	struct run r;

	snprintf(line, sizeof(line), "exec '%s' -p $$ trim", program ? program : "./heapmedic");
	run_with(&r, &o, args);
	run_expect(&r, 2);
	run_free(&r);
}

Test(refuse, kernel_thread)
{
	if (proc_number(2, "status", "PPid:") != 0 || proc_number(2, "status", "VmSize:") != -1 ||
	    proc_state(2) == '\0')
		cr_skip_test("no kernel thread is visible in this pid namespace");
	refused(2, 5, "trim");
	refused(2, 5, "check");
}

Test(refuse, stopped)
{
	static struct state state;
	struct victim v;

	/* Its sleeps go on after a SIGCONT; many calls of "eight" return EINTR then, see signal(7).
	 */
	victim_start_named(&v, "retained", "2", "10");
	state_take(&v, &state);
	kill(v.pid, SIGSTOP);
	proc_wait_state(v.pid, "T");
	refused(v.pid, 6, "trim");
	/* It was given back stopped. */
	cr_assert_eq(proc_state(v.pid), 'T');
	kill(v.pid, SIGCONT);
	proc_wait_state(v.pid, "SR");
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* A process at its RLIMIT_DATA maps what cannot be written, and no more. */
Test(refuse, no_memory_to_be_had)
{
	static const struct run_opts o;
	struct rlimit limit, low;
	static struct state state;
	struct victim v;

	victim_start_named(&v, "retained", "2", "10");
	state_take(&v, &state);
	cr_assert_eq(prlimit(v.pid, RLIMIT_DATA, NULL, &limit), 0);
	low = limit;
	low.rlim_cur = 65536;
	cr_assert_eq(prlimit(v.pid, RLIMIT_DATA, &low, NULL), 0);
	refused(v.pid, 1, "trim");
	refused_as(v.pid, &o, 1, (const char *[]){ "--via", "direct", "trim", NULL });
	state_same(&v, &state, STATE_EXACT);
	cr_assert_eq(prlimit(v.pid, RLIMIT_DATA, &limit, NULL), 0);
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(refuse, traced_by_another)
{
	struct victim v;

	victim_start_named(&v, "single", NULL, NULL);
	cr_assert_eq(ptrace(PTRACE_SEIZE, v.pid, 0, 0), 0, "%s", strerror(errno));
	refused(v.pid, 4, "trim");
	cr_assert_eq(proc_number(v.pid, "status", "TracerPid:"), getpid());
	/* A seized thread can be let go only while it is stopped. */
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, v.pid, 0, 0), 0);
	cr_assert_eq(waitpid(v.pid, NULL, 0), v.pid);
	cr_assert_eq(ptrace(PTRACE_DETACH, v.pid, 0, 0), 0);
	victim_stop(&v);
}

static void refused_untouched(const char *name, const char *arg, const struct run_opts *o, int code,
			      const char *const *words)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, arg, NULL);
	state_take(&v, &state);
	refused_as(v.pid, o, code, words);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

static const struct run_opts plain;

Test(refuse, thirty_two_bits)
{
	if (!victim_can_run("m32"))
		cr_skip_test("this kernel runs no 32-bit programs");
	refused_untouched("m32", NULL, &plain, 5, (const char *[]){ "trim", NULL });
}

Test(refuse, musl)
{
	refused_untouched("musl", NULL, &plain, 5, (const char *[]){ "trim", NULL });
}

Test(refuse, no_libc)
{
	refused_untouched("nolibc", NULL, &plain, 5, (const char *[]){ "trim", NULL });
}

Test(refuse, another_user)
{
	const struct run_opts o = { .nobody = true };

	if (geteuid() != 0)
		cr_skip_test("only root can become somebody else");
	refused_untouched("eight", NULL, &o, 4, (const char *[]){ "trim", NULL });
	refused_untouched("single", NULL, &o, 4, (const char *[]){ "stats", NULL });
	refused_as(1, &o, 4, (const char *[]){ "trim", NULL });
}

Test(refuse, what_passive_forbids)
{
	refused_untouched("eight", NULL, &plain, 4, (const char *[]){ "--passive", "trim", NULL });
	refused_untouched("eight", NULL, &plain, 4, (const char *[]){ "--passive", "stats", NULL });
	refused_untouched("eight", NULL, &plain, 4, (const char *[]){ "--passive", "bt", NULL });
}

Test(refuse, what_read_only_forbids)
{
	refused_untouched("eight", NULL, &plain, 4,
			  (const char *[]){ "--read-only", "trim", NULL });
	refused_untouched(
		"eight", NULL, &plain, 4,
		(const char *[]){ "--read-only", "-y", "mallopt", "M_ARENA_MAX", "2", NULL });
}

Test(refuse, read_only_still_looks)
{
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	run_ok(v.pid, "--read-only", "stats", NULL);
	run_ok(v.pid, "--read-only", "info", NULL);
	run_ok(v.pid, "--passive", "check", NULL);
	run_ok(v.pid, "--passive", "threads", NULL);
	victim_stop(&v);
}

Test(refuse, usage)
{
	static const char *const wrong[][8] = {
		{ "trim" },
		{ "-p", "1x", "trim" },
		{ "-p", "0", "trim" },
		{ "--no-such-option" },
		{ "-p", "1", "--via", "bus", "trim" },
		{ "-p", "1", "--deadline", "soon", "trim" },
		{ "-p", "1", "nonsense" },
		{ "-p", "1", "trim", "much" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run r;

		run_with(&r, &plain, wrong[i]);
		run_expect(&r, 2);
		cr_assert_gt(strlen(r.err), 0);
		run_free(&r);
	}
}

/* The target is gone between two commands of one session. */
Test(refuse, target_exits_between_commands)
{
	const struct run_opts o = { .input = NULL };
	char pid[16];
	const char *args[] = { "-p", pid, "-e", "trim", "-e", "sleep 2s", "-e", "trim", NULL };
	struct victim v;
	struct run r;
	pid_t killer;

	victim_start_named(&v, "dying", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	killer = fork();
	if (killer == 0) {
		sleep_ns(800000000);
		_exit(write(v.in, "x", 1) == 1 ? 0 : 1);
	}
	run_with(&r, &o, args);
	cr_assert(r.exit == 3 || r.exit == 9, "exit %d: %s", r.exit, r.err);
	cr_assert_gt(strlen(r.err), 0);
	run_free(&r);
	cr_assert_eq(waitpid(killer, NULL, 0), killer);
	victim_wait_exit(&v, 0);
}

/* Another program in its place, at any moment: that is no error of ours, and it is not harmed. */
Test(refuse, target_executes_another_program, .timeout = 300)
{
	static const char *const commands[] = { "trim", "stats", "info", "bt", "check" };
	const struct victim_plan plan = {
		.argv = { "sh", "-c", "echo ready; read x; exec \"$0\"", "@single" },
	};

	srandom((unsigned)getpid());
	for (int i = 0; i < 50; i++) {
		uint64_t delay = (uint64_t)random() % 15000000;
		struct victim v;
		struct run r;
		pid_t goer;

		victim_start(&v, &plan);
		goer = fork();
		if (goer == 0) {
			sleep_ns(delay);
			_exit(write(v.in, "x\n", 2) == 2 ? 0 : 1);
		}
		run(&r, v.pid, commands[i % 5], NULL);
		cr_assert(r.exit == 0 || r.exit == 6, "%s: exit %d: %s", commands[i % 5], r.exit,
			  r.err);
		run_free(&r);
		cr_assert_eq(waitpid(goer, NULL, 0), goer);
		sleep_ns(5000000);
		cr_assert_not_null(strchr("SR", proc_state(v.pid)), "it is %c", proc_state(v.pid));
		victim_kill(&v);
	}
}

/* RLIMIT_FSIZE of the operator: an error of the audit log like another, not our death. */
Test(refuse, audit_log_that_may_not_grow)
{
	const char *program = getenv("HEAPMEDIC");
	const struct run_opts o = { .program = "sh" };
	char line[4300], log[] = "/tmp/heapmedic-audit-XXXXXX";
	const char *args[] = { "-c", line, NULL };
	struct victim v;
	struct run r;
	int fd = mkstemp(log);

	cr_assert_geq(fd, 0);
	close(fd);
	victim_start_named(&v, "single", NULL, NULL);
	snprintf(line, sizeof(line), "ulimit -f 0; exec '%s' -p %d --audit %s trim",
		 program ? program : "./heapmedic", v.pid, log);
	run_with(&r, &o, args);
	run_expect(&r, 1);
	run_free(&r);
	unlink(log);
	victim_stop(&v);
}

/* The same at any moment of a session: a code of the table, and never a hang. */
Test(refuse, target_exits_at_any_moment, .timeout = 300)
{
	srandom((unsigned)getpid());
	for (int i = 0; i < 40; i++) {
		struct victim v;
		struct run r;
		pid_t killer;
		uint64_t delay = (uint64_t)random() % 12000000;

		victim_start_named(&v, "dying", NULL, NULL);
		killer = fork();
		if (killer == 0) {
			sleep_ns(delay);
			_exit(write(v.in, "x", 1) == 1 ? 0 : 1);
		}
		run(&r, v.pid, "trim", NULL);
		cr_assert(r.exit == 0 || r.exit == 3 || r.exit == 9, "exit %d: %s", r.exit, r.err);
		run_free(&r);
		cr_assert_eq(waitpid(killer, NULL, 0), killer);
		victim_wait_exit(&v, 0);
	}
}
