// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Limits of the target, of its cgroups, of ourselves. Whatever is full:
 * heapmedic works, or names the cause, the same in `check` and in `trim`, and has touched nothing.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../live/program.h"
#include "../live/victim.h"
#include "asking.h"
#include "torture.h"

Test(limits, limits_of_the_target, .timeout = 600)
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
Test(limits, no_file_may_grow, .timeout = 600)
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

Test(limits, a_cgroup_without_a_pid_left, .timeout = 600)
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

/* With the names of its limit and of what is used; else the test is skipped. */
static void memory_group(struct group *g, const char **max, const char **usage)
{
	if (is_root() && group_make(g, "memory", "memory.limit_in_bytes")) {
		*max = "memory.limit_in_bytes";
		*usage = "memory.usage_in_bytes";
	} else if (is_root() && group_make(g, "memory", "memory.max")) {
		*max = "memory.max";
		*usage = "memory.current";
	} else {
		cr_skip_test("no cgroup with the memory controller can be made here");
	}
}

/*
 * With a twentieth of a CPU for four threads that do nothing but malloc, who holds a lock gets on
 * again only in a later period: nobody is stuck.
 */
Test(limits, a_cgroup_with_little_cpu_time, .timeout = 600)
{
	static const char *const file[] = { "cpu.cfs_quota_us", "cpu.max" };
	const unsigned rounds = torture_rounds(200, 12);
	struct group g;
	struct victim v;
	size_t k = 0;

	if (!is_root())
		cr_skip_test("only root makes cgroups");
	while (k < COUNT(file) && !group_make(&g, "cpu", file[k]))
		k++;
	if (k == COUNT(file))
		cr_skip_test("no cgroup with the cpu controller can be made here");
	victim_start_named(&v, "busy", "4", NULL);
	cr_assert(write_value(&g, "cgroup.procs", v.pid));
	cr_assert(write_value(&g, file[k], 5000));
	for (unsigned i = 0; i < rounds; i++)
		run_ok(v.pid, "check", NULL);
	/* it has a little to do until its end */
	cr_assert(write_value(&g, file[k], 100000));
	victim_stop(&v);
	group_remove(&g);
}

/*
 * The last page of a memory cgroup: what we would touch in the target is what the OOM killer would
 * kill it for.
 */
Test(limits, a_memory_cgroup_at_its_limit, .timeout = 600)
{
	static struct state state;
	const char *max, *usage;
	struct group g;
	struct victim v;
	unsigned rounds = torture_rounds(12, 2);

	memory_group(&g, &max, &usage);
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

static void dump_says(pid_t pid, const char *path, int exit, const char *code)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--json", "prof", "dump", "--raw", path, NULL);
	run_expect(&r, exit);
	o = run_json(&r, 0, pid, "prof");
	if (exit)
		cr_assert_str_eq(json_text(o, "error.code"), code);
	json_decref(o);
	run_free(&r);
	cr_assert_eq(access(path, F_OK), exit ? -1 : 0);
	unlink(path);
}

/* A heap profile is kept in memory of the target until it is here. */
Test(limits, a_memory_cgroup_without_room_for_a_profile, .timeout = 600)
{
	const char *const argv = "echo $$ >\"$0/cgroup.procs\"; exec \"$1\" 2 300";
	const char *max, *usage;
	struct victim_plan plan = { .argv = { "sh", "-c", argv, NULL, "@sampled" },
				    .env = "MALLOC_CONF=prof:true,lg_prof_sample:0" };
	char path[64];
	struct group g;
	struct victim v;

	snprintf(path, sizeof(path), "/tmp/heapmedic-limit-%d.heap", (int)getpid());
	memory_group(&g, &max, &usage);
	plan.argv[3] = g.dir;
	victim_start(&v, &plan);
	cr_assert(write_value(&g, max, read_value(&g, usage) + (8 << 20)));
	dump_says(v.pid, path, 6, "no-room-for-dump");
	run_ok(v.pid, "prof", "status", NULL);
	cr_assert(write_value(&g, max, 128 << 20));
	dump_says(v.pid, path, 0, "");
	victim_stop(&v);
	group_remove(&g);
}

/* Each library costs us a descriptor, and ours may be few. */
Test(limits, few_descriptors_of_our_own, .timeout = 600)
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
Test(limits, three_hundred_libraries, .timeout = 600)
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
