// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Filters, limits, namespaces and permissions. Whatever stands in the way: heapmedic works, or
 * names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "torture.h"

/* What one command says of a process: its exit code, and the code of its error or "". */
struct answer {
	int exit;
	char code[40], text[1024];
};

static void ask(pid_t pid, const struct run_opts *o, const char *const *words, struct answer *out)
{
	char number[16];
	const char *args[RUN_ARGS + 1] = { "-p", number, "--json" };
	struct run r;
	json_t *json;
	size_t n = 3;

	snprintf(number, sizeof(number), "%d", pid);
	for (size_t i = 0; words[i]; i++)
		args[n++] = words[i];
	run_with(&r, o, args);
	cr_assert_eq(r.sig, 0, "heapmedic died of signal %d: %s%s", r.sig, r.out, r.err);
	json = json_loads(r.out, 0, NULL);
	cr_assert_not_null(json, "no answer of %s: exit %d, %s%s", words[0], r.exit, r.out, r.err);
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

static const struct run_opts plain;
static unsigned asked;

/*
 * check and trim say the same, and it is this: exit and error code ("" for none). how is what check
 * is asked with.
 */
static void both_say(pid_t pid, const struct run_opts *o, const char *how, int exit,
		     const char *code)
{
	struct answer check, trim;

	ask(pid, o, (const char *[]){ "check", how, NULL }, &check);
	ask(pid, o, (const char *[]){ "trim", NULL }, &trim);
	asked++;
	cr_assert(check.exit == trim.exit && !strcmp(check.code, trim.code),
		  "check says %d %s (%s), trim says %d %s (%s)", check.exit, check.code, check.text,
		  trim.exit, trim.code, trim.text);
	cr_assert(trim.exit == exit && !strcmp(trim.code, code), "exit %d %s (%s), expected %d %s",
		  trim.exit, trim.code, trim.text, exit, code);
}

/* A victim of which both say so, and which is as it was. */
static void victim_of(const char *name, const char *arg1, const char *arg2, const char *how,
		      int exit, const char *code)
{
	static struct state state;
	struct victim v;

	victim_start_named(&v, name, arg1, arg2);
	state_take(&v, &state);
	both_say(v.pid, &plain, how, exit, code);
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
	unsigned step = torture_rounds(1, 7), n = 0, at = (unsigned)getpid() % step;

	if (!is_root())
		cr_skip_test("only root may ask a filter");
	for (size_t i = 0; i < COUNT(filtered_calls); i++) {
		for (size_t k = 0; k < COUNT(actions); k++) {
			bool refused = is_refused(filtered_calls[i], actions[k]);

			if (at++ % step)
				continue;
			victim_of("filtered", filtered_calls[i], actions[k], "--hold",
				  refused ? 6 : 0, refused ? "seccomp-kills" : "");
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
	victim_of("filtered", "wx", NULL, "--hold", 0, "");
	victim_of("filtered", "mdwe", NULL, "--hold", 0, "");
	victim_of("filtered", "mdwe-no-inherit", NULL, "--hold", 0, "");
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
		victim_of("limited", cases[i].what, NULL, "--hold", cases[i].exit, cases[i].code);
		n++;
	}
	torture_figure("%zu limits of a process: done, or told by check and trim alike", n);
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
	both_say(v.pid, &plain, NULL, 1, "limit-cgroup-pids");
	run_ok(v.pid, "--via", "direct", "trim", NULL);
	cr_assert(write_value(&g, "pids.max", 100));
	both_say(v.pid, &plain, NULL, 0, "");
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
		both_say(v.pid, &plain, NULL, 6, "limit-cgroup-memory");
		cr_assert(write_value(&g, max, 64 << 20));
		both_say(v.pid, &plain, NULL, 0, "");
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
	const char *program = getenv("HEAPMEDIC");
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
			 program ? program : "./heapmedic", v.pid);
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
