// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Users, capabilities, namespaces, tracers. Whoever may or may not:
 * heapmedic works, or names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/victim.h"
#include "asking.h"
#include "torture.h"

#define THROUGH(...)                                                                               \
	{                                                                                          \
		.through = (const char *const[])                                                   \
		{                                                                                  \
			__VA_ARGS__, NULL                                                          \
		}                                                                                  \
	}

/* A service of root and one of nobody, for all that asks. */
static void start_both(struct victim *root, struct victim *nobody)
{
	const struct victim_plan plan = { .argv = { "setpriv", "--reuid=65534", "--regid=65534",
						    "--clear-groups", "@limited", "plain" } };

	victim_start_named(root, "limited", "plain", NULL);
	victim_start(nobody, &plan);
}

Test(permission, users_and_capabilities, .timeout = 600)
{
	const struct asking no_ptrace =
		THROUGH("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace");
	const struct asking no_admin =
		THROUGH("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin");
	const struct asking no_new = THROUGH("setpriv", "--no-new-privs");
	static struct state of_root, of_nobody;
	struct victim root, nobody;

	if (!is_root())
		cr_skip_test("only root can become somebody else");
	start_both(&root, &nobody);
	state_take(&root, &of_root);
	state_take(&nobody, &of_nobody);
	both_say(root.pid, &as_nobody, 4, "not-permitted-other-user", "the uids 0 0 0");
	both_say(1, &as_nobody, 4, "not-permitted-other-user", "uid 65534");
	both_say(nobody.pid, &as_nobody, 0, "", NULL);
	both_say(root.pid, &no_ptrace, 4, "not-permitted-capabilities", "CAP_SYS_PTRACE");
	both_say(nobody.pid, &no_ptrace, 4, "not-permitted-other-user", "bounding set");
	both_say(root.pid, &no_new, 0, "", NULL);
	both_say(nobody.pid, &no_new, 0, "", NULL);
	both_say(nobody.pid, &no_admin, 0, "", NULL);
	state_same(&root, &of_root, STATE_EXACT);
	state_same(&nobody, &of_nobody, STATE_EXACT);
	victim_stop(&root);
	victim_stop(&nobody);
}

/* Who changes its user, or says so itself, and who executes what nobody may read. */
Test(permission, not_dumpable, .timeout = 600)
{
	static const char *const kinds[] = { "undumpable", "changed" };
	const struct asking no_ptrace =
		THROUGH("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace");
	char unreadable[] = "/tmp/heapmedic-unreadable-XXXXXX", command[4300];
	/* only the second exec(2) is without capabilities, which would let it read */
	const struct victim_plan plan = { .argv = { "setpriv", "--reuid=65534", "--regid=65534",
						    "--clear-groups", "sh", "-c",
						    "exec \"$0\" plain", unreadable } };
	static struct state state;
	struct victim v;

	if (!is_root())
		cr_skip_test("only root can become somebody else");
	for (size_t i = 0; i < COUNT(kinds); i++) {
		victim_start_named(&v, "limited", kinds[i], NULL);
		state_take(&v, &state);
		both_say(v.pid, &as_nobody, 4, "not-permitted-not-dumpable", "not dumpable");
		both_say(v.pid, &no_ptrace, 4, "not-permitted-other-user", "65534");
		both_say(v.pid, &plain, 0, "", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	close(mkstemp(unreadable));
	snprintf(command, sizeof(command), "cp '%s' %s && chmod 111 %s", victim_path("limited"),
		 unreadable, unreadable);
	cr_assert_eq(system(command), 0);
	victim_start(&v, &plan);
	state_take(&v, &state);
	both_say(v.pid, &as_nobody, 4, "not-permitted-not-dumpable", "unreadable");
	both_say(v.pid, &plain, 0, "", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	unlink(unreadable);
}

/* The process behind a program that has put it into namespaces. */
static pid_t only_child(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	cr_assert_gt(child, 0, "process %d has no child", pid);
	return child;
}

Test(permission, namespaces, .timeout = 600)
{
	const struct asking in_userns = THROUGH("unshare", "-U", "-r");
	const struct victim_plan plan = { .argv = { "unshare", "-U", "-r", "-p", "-f", "-m",
						    "--mount-proc", "@limited", "plain" } };
	const struct victim_plan chrooted = { .argv = { "unshare", "-p", "-f", "-m", "sh", "-c",
							"mount --bind / /mnt && "
							"exec chroot /mnt \"$0\" "
							"plain",
							"@limited" } };
	char number[16];
	const char *const enter[] = {
		"nsenter", "-t", number, "-U", "-m", "-p", "--preserve-credentials", NULL
	};
	const struct asking inside = { .through = enter };
	static struct state state;
	struct victim v, outside, inner;

	if (!is_root() || system("unshare -U -r -p -f -m --mount-proc true") != 0)
		cr_skip_test("namespaces cannot be made here");
	victim_start_named(&outside, "limited", "plain", NULL);
	victim_start(&v, &plan);
	inner = v;
	inner.pid = only_child(v.pid);
	state_take(&inner, &state);
	both_say(inner.pid, &plain, 0, "", NULL);
	both_say(inner.pid, &as_nobody, 4, "not-permitted-other-user", "the uids 0 0 0");
	/* root of one user namespace against the processes of another */
	both_say(inner.pid, &in_userns, 4, "not-permitted-userns", "does not count there");
	both_say(outside.pid, &in_userns, 4, "not-permitted-userns", "another than ours");
	snprintf(number, sizeof(number), "%d", inner.pid);
	both_say(1, &inside, 0, "", NULL);
	state_same(&inner, &state, STATE_EXACT);
	victim_stop(&v);
	victim_stop(&outside);
	/* a root that has another /proc than its own, or none at all that is right */
	victim_start(&v, &chrooted);
	inner = v;
	inner.pid = only_child(v.pid);
	state_take(&inner, &state);
	both_say(inner.pid, &plain, 0, "", NULL);
	state_same(&inner, &state, STATE_EXACT);
	victim_stop(&v);
}

/* What heapmedic itself is under. */
Test(permission, a_filter_on_ourselves, .timeout = 600)
{
	static const char *const own[] = { "ptrace", "process_vm_readv", "process_vm_writev",
					   "pidfd_open", "openat2" };
	static const char *const ways[] = { "errno", "enosys", "trap", "kill-thread", "kill" };
	static struct state state;
	struct victim v;
	unsigned step = torture_rounds(1, 4), at = (unsigned)getpid(), n = 0;

	victim_start_named(&v, "limited", "plain", NULL);
	state_take(&v, &state);
	for (size_t i = 0; i < COUNT(own); i++) {
		for (size_t k = 0; k < COUNT(ways); k++) {
			const char *const through[] = { victim_path("filtered"), own[i], ways[k],
							"--", NULL };
			const struct asking a = { .through = through, .no_leak_check = true };
			bool deadly = k > 1, no = deadly || i == 0;

			if (at++ % step)
				continue;
			both_say(v.pid, &a, no ? 4 : 0, no ? "not-permitted-seccomp-self" : "",
				 no ? own[i] : NULL);
			n++;
		}
	}
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	torture_figure("%u filters on heapmedic: done, or told before anything was touched", n);
}

static pid_t start_tracer(const char *const *argv, int *in)
{
	int p[2], null;
	pid_t pid;

	cr_assert_eq(pipe(p), 0);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		null = open("/dev/null", O_WRONLY);
		dup2(p[0], 0);
		dup2(null, 1);
		dup2(null, 2);
		close(p[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[0], (char *const *)argv);
		_exit(126);
	}
	close(p[0]);
	*in = p[1];
	return pid;
}

static void await_tracer(pid_t pid, bool traced)
{
	for (int i = 0; i < 3000; i++) {
		if ((proc_number(pid, "status", "TracerPid:") > 0) == traced)
			return;
		sleep_ns(10000000);
	}
	cr_assert_fail("process %d is%s traced", pid, traced ? " not" : " still");
}

Test(permission, traced_already, .timeout = 600)
{
	static const char *const names[] = { "strace", "gdb" };
	static struct state state;
	struct victim v;
	char number[16];
	const char *const argv[][6] = {
		{ "strace", "-f", "-p", number, NULL },
		{ "gdb", "-nx", "-q", "-p", number, NULL },
	};

	for (size_t i = 0; i < torture_rounds(COUNT(names), 1); i++) {
		char named[64];
		int in, status;
		pid_t tracer;

		victim_start_named(&v, "limited", "plain", NULL);
		state_take(&v, &state);
		snprintf(number, sizeof(number), "%d", v.pid);
		tracer = start_tracer(argv[i], &in);
		await_tracer(v.pid, true);
		snprintf(named, sizeof(named), "process %d (%s)", tracer, names[i]);
		both_say(v.pid, &plain, 4, "not-permitted-traced", named);
		if (i)
			cr_assert_eq(write(in, "detach\nquit\n", 12), 12);
		else
			kill(tracer, SIGINT);
		close(in);
		await_tracer(v.pid, false);
		cr_assert_eq(waitpid(tracer, &status, 0), tracer);
		proc_wait_state(v.pid, "SR");
		both_say(v.pid, &plain, 0, "", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
}

Test(permission, no_process_to_work_on, .timeout = 600)
{
	static struct state state;
	struct victim v;
	pid_t pid;

	victim_start_named(&v, "limited", "plain", NULL);
	state_take(&v, &state);
	kill(v.pid, SIGSTOP);
	proc_wait_state(v.pid, "T");
	both_say(v.pid, &plain, 6, "stopped", "state T");
	cr_assert_eq(proc_state(v.pid), 'T');
	kill(v.pid, SIGCONT);
	proc_wait_state(v.pid, "SR");
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	pid = fork();
	if (pid == 0)
		_exit(0);
	proc_wait_state(pid, "Z");
	both_say(pid, &plain, 3, "zombie", "its parent is");
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	both_say(pid, &plain, 3, "no-process", NULL);
	if (proc_number(2, "status", "PPid:") == 0 && proc_number(2, "status", "VmSize:") == -1)
		both_say(2, &plain, 5, "kernel-thread", "(kthreadd)");
}
