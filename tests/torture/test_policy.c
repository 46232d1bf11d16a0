// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Filters, limits, namespaces and permissions. Whatever stands in the way: heapmedic works, or
 * names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "torture.h"

/* What one command says of a process: its exit code, and the code of its error or "". */
struct answer {
	int exit;
	char code[40], text[1024];
};

/* How somebody asks. */
struct asking {
	bool nobody;		    /* as that user */
	const char *const *through; /* a program with its arguments, which becomes heapmedic */
	const char *how;	    /* option of check; NULL: none */
	bool no_leak_check;	    /* LeakSanitizer needs ptrace(2), which is filtered */
};

static const char *heapmedic_path(void)
{
	const char *program = getenv("HEAPMEDIC");

	return program ? program : "./heapmedic";
}

static void ask(pid_t pid, const struct asking *a, const char *command, const char *option,
		struct answer *out)
{
	char number[16];
	const char *args[RUN_ARGS + 1] = { 0 };
	struct run_opts o = { .nobody = a->nobody, .interrupted = a->no_leak_check };
	struct run r;
	json_t *json;
	size_t n = 0;

	snprintf(number, sizeof(number), "%d", pid);
	if (a->through) {
		o.program = a->through[0];
		for (size_t i = 1; a->through[i]; i++)
			args[n++] = a->through[i];
		args[n++] = heapmedic_path();
	}
	args[n++] = "-p";
	args[n++] = number;
	args[n++] = "--json";
	args[n++] = command;
	args[n++] = option;
	cr_assert_leq(n, RUN_ARGS);
	run_with(&r, &o, args);
	cr_assert_eq(r.sig, 0, "heapmedic died of signal %d: %s%s", r.sig, r.out, r.err);
	json = json_loads(r.out, 0, NULL);
	cr_assert_not_null(json, "no answer of %s: exit %d, %s%s", command, r.exit, r.out, r.err);
	memset(out, 0, sizeof(*out));
	out->exit = r.exit;
	cr_assert_eq(json_int(json, "exit"), r.exit);
	if (r.exit) {
		snprintf(out->code, sizeof(out->code), "%s", json_text(json, "error.code"));
		snprintf(out->text, sizeof(out->text), "%s", json_text(json, "error.text"));
		cr_assert_gt(strlen(json_text(json, "error.hint")), 0, "no next step: %s", r.out);
	}
	json_decref(json);
	run_free(&r);
}

static const struct asking plain = { 0 }, holding = { .how = "--hold" };
static const struct asking as_nobody = { .nobody = true };

/*
 * check and trim say the same, and it is this: exit and error code ("" for none). part is something
 * that the text names, or NULL.
 */
static void both_say(pid_t pid, const struct asking *a, int exit, const char *code,
		     const char *part)
{
	struct answer check, trim;

	ask(pid, a, "check", a->how, &check);
	ask(pid, a, "trim", NULL, &trim);
	cr_assert(check.exit == trim.exit && !strcmp(check.code, trim.code),
		  "check says %d %s (%s), trim says %d %s (%s)", check.exit, check.code, check.text,
		  trim.exit, trim.code, trim.text);
	cr_assert(trim.exit == exit && !strcmp(trim.code, code), "exit %d %s (%s), expected %d %s",
		  trim.exit, trim.code, trim.text, exit, code);
	cr_assert(!part || (strstr(trim.text, part) && strstr(check.text, part)),
		  "\"%s\" is not named: %s", part, trim.text);
}

/* A victim of which both say so, and which is as it was. */
static void victim_of(const char *name, const char *arg1, const char *arg2, int exit,
		      const char *code)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, arg1, arg2);
	state_take(&v, &state);
	both_say(v.pid, &holding, exit, code, NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

static bool is_root(void)
{
	return geteuid() == 0;
}

/* ---- filters */

static const char *const filtered_calls[] = {
	"mmap",		"mprotect", "munmap", "clone",	 "clone3",	   "memfd_create",
	"close_range",	"pipe2",    "futex",  "rseq",	 "rt_sigprocmask", "set_robust_list",
	"rt_sigreturn", "exit",	    "brk",    "madvise",
};
static const char *const actions[] = {
	"errno", "trap", "trap-handled", "kill-thread", "kill", "log"
};
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static bool in_list(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

/* Where an error is as bad as a kill. */
static bool refuses_error(const char *call)
{
	static const char *const needed[] = { "futex", "rt_sigreturn", "exit", "rseq" };

	return in_list(needed, COUNT(needed), call);
}

static bool is_refused(const char *call, const char *action)
{
	if (!strcmp(action, "log"))
		return false;
	return strcmp(action, "errno") || refuses_error(call);
}

Test(policy, seccomp_each_call_and_action, .timeout = 3600)
{
	unsigned step = torture_rounds(2, 13), n = 0, at = (unsigned)getpid() % step;

	if (!is_root())
		cr_skip_test("only root may ask a filter");
	for (size_t i = 0; i < COUNT(filtered_calls); i++) {
		for (size_t k = 0; k < COUNT(actions); k++) {
			bool refused = is_refused(filtered_calls[i], actions[k]);

			if (at++ % step)
				continue;
			victim_of("filtered", filtered_calls[i], actions[k], refused ? 6 : 0,
				  refused ? "seccomp-kills" : "");
			n++;
		}
	}
	torture_figure("%u filters, each one call and what it comes to: none did harm", n);
}

static unsigned killed_at_points(struct victim *v, unsigned step)
{
	const char *fault = getenv("HEAPMEDIC_FAULT");
	const struct run_opts o = { .program = fault ? fault : "build/heapmedic-fault" };
	char pid[16], point[16];
	const char *args[] = { "-p", pid, "trim", NULL };
	unsigned n = 0;

	snprintf(pid, sizeof(pid), "%d", v->pid);
	for (unsigned at = 1 + (unsigned)getpid() % step;; at += step) {
		struct run r;
		bool killed;

		snprintf(point, sizeof(point), "%u", at);
		setenv("HEAPMEDIC_KILL_AT", point, 1);
		run_with(&r, &o, args);
		unsetenv("HEAPMEDIC_KILL_AT");
		killed = r.sig == SIGKILL;
		if (!killed)
			run_expect(&r, 0);
		run_free(&r);
		if (!killed)
			return n;
		n++;
		sleep_ns(1000000);
		victim_check(v);
	}
}

/*
 * The filter is suspended only while we live. With one that allows nothing but what is asked for, a
 * call that has been forgotten is the victim's death; with one that answers an error, whatever was
 * going on is given up, and the next run has nothing left to complain of.
 */
Test(policy, seccomp_and_we_are_killed, .timeout = 3600)
{
	static struct state state;
	unsigned n = 0;

	if (!is_root())
		cr_skip_test("only root may suspend a filter");
	for (size_t i = 0; i <= COUNT(filtered_calls); i++) {
		bool listed = i == COUNT(filtered_calls);
		const char *call = listed ? "listed" : filtered_calls[i];
		const struct victim_plan plan = {
			.argv = { "@filtered", call, listed ? "eintr" : "errno",
				  listed ? NULL : "eintr" },
		};
		struct victim v;

		if (!listed && (!torture_full() || strcmp(call, "munmap")))
			continue;
		victim_start(&v, &plan);
		state_take(&v, &state);
		n += killed_at_points(&v, torture_rounds(listed ? 2 : 17, listed ? 3 : 11));
		state_await_threads(&v, state.threads);
		run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("killed %u times under a filter: it lives, and nothing is left", n);
}

Test(policy, memory_that_may_not_be_written_and_executed, .timeout = 600)
{
	victim_of("filtered", "wx", NULL, 0, "");
	victim_of("filtered", "mdwe", NULL, 0, "");
	victim_of("filtered", "mdwe-no-inherit", NULL, 0, "");
}

/* ---- limits */

Test(policy, limits_of_the_target, .timeout = 600)
{
	static const struct {
		const char *what;
		int exit;
		const char *code;
	} cases[] = {
		{ "plain", 0, "" },
		{ "nofile", 0, "" },
		{ "locked", 0, "" },
		{ "fewfiles", 1, "limit-files" },
		{ "as", 1, "limit-address-space" },
		{ "data", 1, "limit-data" },
		{ "memlock", 1, "limit-locked" },
		{ "nproc", 1, "limit-processes" },
	};
	static const char *const as_root[] = { "memlock", "nproc" };
	size_t n = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (!is_root() && in_list(as_root, COUNT(as_root), cases[i].what))
			continue;
		/* that memory is locked at once is seen only when there is some */
		victim_of("limited", cases[i].what, NULL, cases[i].exit, cases[i].code);
		n++;
	}
	torture_figure("%zu limits of a process: done, or told by check and trim alike", n);
}

/* Files of the target may not grow: our memory file is one. Only what prints needs it. */
Test(policy, no_file_may_grow, .timeout = 600)
{
	static const rlim_t sizes[] = { 0, 1, 100, 1 << 20 };
	static const char *const printing[] = { "stats", "info" };
	static struct state state;
	struct rlimit old;
	struct victim v;

	victim_start_named(&v, "limited", "plain", NULL);
	state_take(&v, &state);
	cr_assert_eq(prlimit(v.pid, RLIMIT_FSIZE, NULL, &old), 0);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct rlimit now = { sizes[i], old.rlim_max };

		cr_assert_eq(prlimit(v.pid, RLIMIT_FSIZE, &now, NULL), 0);
		both_say(v.pid, &plain, 0, "", NULL);
		for (size_t k = 0; k < COUNT(printing); k++) {
			struct answer a;

			ask(v.pid, &plain, printing[k], NULL, &a);
			cr_assert(a.exit == 0 ? sizes[i] > 1000 || k == 1
					      : a.exit == 1 && !strcmp(a.code, "limit-file-size"),
				  "%s with %lu: exit %d %s", printing[k], (unsigned long)sizes[i],
				  a.exit, a.text);
		}
	}
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* A cgroup for one test; made nowhere if that may not be. */
struct group {
	char dir[256];
};

static bool write_value(const struct group *g, const char *file, long long value)
{
	char path[320], text[32];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", g->dir, file);
	snprintf(text, sizeof(text), "%lld", value);
	f = fopen(path, "w");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

static long long read_value(const struct group *g, const char *file)
{
	char path[320];
	long long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", g->dir, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%lld", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

/* Version 1, or 2 with the controller handed down; "" if neither can be had. */
static bool group_make(struct group *g, const char *controller, const char *file)
{
	const char *const below[] = { controller, "" };

	for (size_t i = 0; i < COUNT(below); i++) {
		char probe[320];

		snprintf(g->dir, sizeof(g->dir), "/sys/fs/cgroup/%s/policy_test_%d", below[i],
			 (int)getpid());
		if (mkdir(g->dir, 0755))
			continue;
		snprintf(probe, sizeof(probe), "%s/%s", g->dir, file);
		if (access(probe, W_OK) == 0)
			return true;
		rmdir(g->dir);
	}
	g->dir[0] = '\0';
	return false;
}

static void group_remove(const struct group *g)
{
	for (int i = 0; i < 500 && rmdir(g->dir); i++)
		sleep_ns(10000000);
}

Test(policy, a_cgroup_without_a_pid_left, .timeout = 600)
{
	static struct state state;
	struct group g;
	struct victim v;

	if (!is_root() || !group_make(&g, "pids", "pids.max"))
		cr_skip_test("no cgroup with the pids controller can be made here");
	victim_start_named(&v, "limited", "plain", NULL);
	cr_assert(write_value(&g, "cgroup.procs", v.pid));
	state_take(&v, &state);
	cr_assert(write_value(&g, "pids.max", read_value(&g, "pids.current")));
	both_say(v.pid, &plain, 1, "limit-cgroup-pids", NULL);
	run_ok(v.pid, "--via", "direct", "trim", NULL);
	cr_assert(write_value(&g, "pids.max", 100));
	both_say(v.pid, &plain, 0, "", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
	group_remove(&g);
}

/*
 * The last page of a memory cgroup: what we would touch in the target is what the OOM killer would
 * kill it for.
 */
Test(policy, a_memory_cgroup_at_its_limit, .timeout = 600)
{
	static struct state state;
	const char *max, *usage;
	struct group g;
	struct victim v;
	unsigned rounds = torture_rounds(12, 2);

	if (is_root() && group_make(&g, "memory", "memory.limit_in_bytes")) {
		max = "memory.limit_in_bytes";
		usage = "memory.usage_in_bytes";
	} else if (is_root() && group_make(&g, "memory", "memory.max")) {
		max = "memory.max";
		usage = "memory.current";
	} else {
		cr_skip_test("no cgroup with the memory controller can be made here");
	}
	for (unsigned i = 0; i < rounds; i++) {
		const char *const argv = "echo $$ >\"$0/cgroup.procs\"; exec \"$1\" plain";
		const struct victim_plan plan = { .argv = { "sh", "-c", argv, g.dir, "@limited" } };

		victim_start(&v, &plan);
		state_take(&v, &state);
		/* what it does not need is dropped: it stays at what it cannot do without */
		(void)!write_value(&g, max, 4096);
		cr_assert(write_value(&g, max, read_value(&g, usage) + (long long)i * 8192));
		both_say(v.pid, &plain, 6, "limit-cgroup-memory", NULL);
		cr_assert(write_value(&g, max, 64 << 20));
		both_say(v.pid, &plain, 0, "", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	group_remove(&g);
	torture_figure("%u processes at the limit of their memory cgroup: none was killed for us",
		       rounds);
}

/* Each library costs us a descriptor, and ours may be few. */
Test(policy, few_descriptors_of_our_own, .timeout = 600)
{
	static const int few[] = { 3,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
				   17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28, 32 };
	static struct state state;
	const struct run_opts o = { .program = "sh" };
	struct victim v;
	unsigned done = 0;

	victim_start_named(&v, "limited", "plain", NULL);
	state_take(&v, &state);
	for (size_t i = 0; i < COUNT(few); i++) {
		char line[4300];
		const char *args[] = { "-c", line, NULL };
		struct run r;

		snprintf(line, sizeof(line), "ulimit -n %d; exec '%s' -p %d --json trim", few[i],
			 heapmedic_path(), v.pid);
		run_with(&r, &o, args);
		/* the loader cannot even start it with too few: then it has not touched anything */
		cr_assert(r.exit == 0 || r.exit == 10 || r.exit == 127,
			  "with %d: exit %d, signal %d: %s%s", few[i], r.exit, r.sig, r.out, r.err);
		cr_assert(r.exit != 10 || strstr(r.out, "\"no-descriptors\""), "with %d: %s",
			  few[i], r.out);
		done += r.exit == 0;
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
	}
	cr_assert_gt(done, 0);
	victim_stop(&v);
	torture_figure("%zu limits of our own descriptors: %u were enough", COUNT(few), done);
}

static void with_descriptors(pid_t pid, const char *ulimit, const char *limit, int exit,
			     const char *code)
{
	char line[128];
	const char *const through[] = { "sh", "-c", line, NULL };
	const struct asking a = { .through = through };

	/* heapmedic is $0, what follows are its words */
	snprintf(line, sizeof(line), "ulimit %s %s; exec \"$0\" \"$@\"", ulimit, limit);
	both_say(pid, &a, exit, code, NULL);
}

/* Each library costs a descriptor of ours. Those that are deleted are read from memory. */
Test(policy, three_hundred_libraries, .timeout = 600)
{
	static const char *const kinds[] = { NULL, "kept" };
	static struct state state;
	struct victim v;

	for (size_t i = 0; i < torture_rounds(COUNT(kinds), 1); i++) {
		const struct victim_plan plan = {
			.argv = { "@manylibs", "/lib/x86_64-linux-gnu/libdl.so.2", "300", kinds[i] }
		};

		victim_start(&v, &plan);
		state_take(&v, &state);
		both_say(v.pid, &plain, 0, "", NULL);
		with_descriptors(v.pid, "-Sn", "256", 0, "");
		with_descriptors(v.pid, "-n", "400", 0, "");
		with_descriptors(v.pid, "-n", "256", 10, "no-descriptors");
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
}

/* ---- who may */

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

Test(policy, users_and_capabilities, .timeout = 600)
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
Test(policy, not_dumpable, .timeout = 600)
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

Test(policy, namespaces, .timeout = 600)
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
Test(policy, a_filter_on_ourselves, .timeout = 600)
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

Test(policy, traced_already, .timeout = 600)
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

Test(policy, no_process_to_work_on, .timeout = 600)
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

/* ---- stacks */

static void all_commands(pid_t pid, unsigned rounds)
{
	static const char *const commands[] = { "trim", "stats", "info", "check" };

	for (unsigned i = 0; i < rounds; i++)
		run_ok(pid, commands[i % COUNT(commands)], NULL);
}

Test(policy, stacks_as_small_as_they_can_be, .timeout = 600)
{
	static const char *const names[] = { "stacks", "stackstls" };
	static struct state state;
	unsigned rounds = torture_rounds(60, 8);
	struct victim v;

	for (size_t i = 0; i < COUNT(names); i++) {
		victim_start_named(&v, names[i], i ? NULL : "small", NULL);
		state_take(&v, &state);
		both_say(v.pid, &plain, 0, "", NULL);
		all_commands(v.pid, rounds);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("%u calls among the smallest stacks, %u with 1 MiB of thread-local data",
		       rounds, rounds);
}

Test(policy, thread_local_data_that_no_stack_of_ours_holds, .timeout = 600)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, "stackshuge", NULL, NULL);
	state_take(&v, &state);
	both_say(v.pid, &plain, 5, "large-tls", "bytes of thread-local storage");
	run_ok(v.pid, "--via", "direct", "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* Every thread is on a malloc'ed stack nearly always: borrowed is none, or one that is not. */
Test(policy, fibers, .timeout = 600)
{
	static const char *const names[] = { "stacks", "stackstls" };
	static struct state state;
	unsigned rounds = torture_rounds(8, 2), refused = 0;
	struct victim v;

	for (unsigned i = 0; i < rounds; i++) {
		struct run r;

		victim_start_named(&v, names[i % COUNT(names)], "fiber", NULL);
		state_take(&v, &state);
		run(&r, v.pid, "--deadline", "300ms", "trim", NULL);
		cr_assert(r.exit == 0 || r.exit == 6, "exit %d: %s", r.exit, r.err);
		cr_assert(r.exit == 0 || strstr(r.err, "fiber") || strstr(r.err, "thread "), "%s",
			  r.err);
		refused += r.exit == 6;
		run_free(&r);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
	torture_figure("%u programs on fibers alone: %u calls refused, none harmed", rounds,
		       refused);
}

Test(policy, goroutines, .timeout = 600)
{
	struct victim v;

	victim_start_named(&v, "gopure", NULL, NULL);
	both_say(v.pid, &plain, 5, "no-libc", NULL);
	victim_stop(&v);
	victim_start_named(&v, "gocgo", NULL, NULL);
	all_commands(v.pid, torture_rounds(24, 4));
	victim_stop(&v);
}
