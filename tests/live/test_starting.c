// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A program is asked about between its execve(2) and the end of the dynamic linker's work. Under
 * load, or on a slow disk, that is long: nothing is said then that will not be true a moment later.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

/* One command, refused at the deadline for something that may pass. */
static void is_starting(pid_t pid, const char *command)
{
	struct run r;
	json_t *json;

	run(&r, pid, "--json", "--deadline", "300ms", command, NULL);
	run_expect(&r, 6);
	json = run_json(&r, 0, pid, command);
	cr_assert_str_eq(json_text(json, "error.code"), "starting");
	cr_assert_not_null(strstr(json_text(json, "error.text"), "ld.so has not set up"), "%s",
			   r.out);
	cr_assert_geq(r.ns, 300000000u, "it was not waited for");
	json_decref(json);
	run_free(&r);
}

/* Writes to fd while the next command waits. */
static pid_t later(int fd, const char *text)
{
	pid_t pid = fork();

	cr_assert_neq(pid, -1);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep_ns(400000000);
	_exit(write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 1);
}

static void is_done(pid_t helper)
{
	int status = 1;

	cr_assert_eq(waitpid(helper, &status, 0), helper);
	cr_assert_eq(status, 0);
}

static void says(int fd, const char *text)
{
	char said[64] = "";

	for (size_t n = 0; n < strlen(text);) {
		ssize_t k = read(fd, said + n, strlen(text) - n);

		cr_assert_gt(k, 0);
		n += (size_t)k;
	}
	cr_assert_str_eq(said, text);
}

/* Not even the address of its list is there: the first instruction of ld.so has not run. */
Test(starting, before_the_dynamic_linker, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "@slowstart", "@single" }, .silent = true };
	static struct state state;
	struct victim v;
	pid_t goer;

	victim_start(&v, &plan);
	proc_wait_name(v.pid, "slowstart");
	state_take(&v, &state);
	is_starting(v.pid, "trim");
	is_starting(v.pid, "check");
	state_same(&v, &state, STATE_EXACT);
	/* what makes no call works */
	run_ok(v.pid, "--deadline", "1ms", "maps", NULL);
	goer = later(v.in, "x");
	run_ok(v.pid, "--deadline", "60s", "trim", NULL);
	is_done(goer);
	says(v.out, "ready\n");
	victim_stop(&v);
}

/* Its list is there, its libraries are not: it opens the first of them. */
Test(starting, within_the_dynamic_linker, .timeout = 120)
{
	static const char want[] = "ERROR: ld.so: object '";
	char dir[] = "/tmp/starting-XXXXXX", fifo[64], env[96], said[512] = "";
	const struct victim_plan plan = { .argv = { "@single" }, .env = env, .silent = true };
	struct victim v;
	pid_t opener;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(env, sizeof(env), "LD_PRELOAD=%s", fifo);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	victim_start(&v, &plan);
	proc_wait_name(v.pid, "single");
	is_starting(v.pid, "trim");
	opener = fork();
	if (!opener) {
		sleep_ns(400000000);
		_exit(open(fifo, O_WRONLY | O_CLOEXEC) < 0);
	}
	run_ok(v.pid, "--deadline", "60s", "trim", NULL);
	is_done(opener);
	/* an empty file is no library, which ld.so says */
	cr_assert_gt(read(v.err, said, sizeof(said) - 1), 0);
	cr_assert_eq(strncmp(said, want, sizeof(want) - 1), 0, "%s", said);
	says(v.out, "ready\n");
	victim_stop(&v);
	unlink(fifo);
	rmdir(dir);
}

/* In the middle of a session it becomes a program that is long in starting. */
Test(starting, in_a_session, .timeout = 120)
{
	const struct victim_plan plan = {
		.argv = { "sh", "-c", "echo ready; read x; exec \"$0\"", "@slowstart" },
	};
	const char script[] = "trim\nsleep 1s\ntrim\n";
	const struct run_opts o = { .input = script };
	char pid[16];
	const char *args[] = { "-y", "--deadline", "300ms", "-p", pid, "-f", "-", NULL };
	struct victim v;
	struct run r;
	pid_t goer;

	victim_start(&v, &plan);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	goer = later(v.in, "x\n");
	run_with(&r, &o, args);
	is_done(goer);
	run_expect(&r, 6);
	cr_assert_not_null(strstr(r.err, "still starting"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}
