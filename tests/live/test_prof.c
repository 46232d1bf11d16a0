// SPDX-License-Identifier: GPL-3.0-or-later
/* jemalloc's heap profiles of a living process: switched, brought here, and nothing left behind. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define EVERY_ONE "MALLOC_CONF=prof:true,lg_prof_sample:0"
#define READY	  "MALLOC_CONF=prof:true,prof_active:false,lg_prof_sample:12"

/* The victim of that name; what is NULL-terminated. */
static void start(struct victim *v, const char *env, const char *threads, const char *what,
		  const char *number)
{
	struct victim_plan plan = { .argv = { "@sampled", threads, "300", what, number },
				    .env = env };

	victim_start(v, &plan);
}

/* A file that is not there. */
static const char *place(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/heapmedic-prof-%d.heap", (int)getpid());
	unlink(path);
	return path;
}

static char *content(const char *path)
{
	size_t size = 64 << 20, n;
	FILE *f = fopen(path, "re");
	char *text = malloc(size);

	cr_assert(f && text, "%s: %s", path, strerror(errno));
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	cr_assert_lt(n, size - 1);
	fclose(f);
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static json_t *ask(pid_t pid, const char *word, int exit)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--json", "prof", word, NULL);
	run_expect(&r, exit);
	o = run_json(&r, 0, pid, "prof");
	run_free(&r);
	return o;
}

static bool is_active(pid_t pid)
{
	json_t *o = ask(pid, "status", 0);
	bool active = json_bool(o, "result.active");

	json_decref(o);
	return active;
}

/* ---- status, on, off, reset */

Test(prof, status_says_what_is_in_force)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v, READY, "2", NULL, NULL);
	o = ask(v.pid, "status", 0);
	cr_assert(json_bool(o, "result.compiled"));
	cr_assert(json_bool(o, "result.enabled"));
	cr_assert_not(json_bool(o, "result.active"));
	cr_assert_eq(json_int(o, "result.lg_sample"), 12);
	cr_assert_eq(json_int(o, "result.sample_bytes"), 4096);
	/* it is as it was at the start */
	cr_assert_str_eq(json_text(o, "result.since_from"), "start");
	cr_assert(json_is_null(json_at(o, "result.environment")));
	json_decref(o);
	run(&r, v.pid, "prof", "status", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "one per 4.0 KiB (lg_sample 12)"), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "active           no"), "%s", r.out);
	run_free(&r);
	run_ok(v.pid, "prof", "on", NULL);
	o = ask(v.pid, "status", 0);
	cr_assert(json_bool(o, "result.active"));
	cr_assert(json_is_null(json_at(o, "result.since")), "another session has switched it");
	json_decref(o);
	victim_stop(&v);
}

/* What a session has switched itself it knows. */
Test(prof, a_session_knows_what_it_has_switched)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v, READY, "2", NULL, NULL);
	run(&r, v.pid, "--json", "-e", "prof on", "-e", "prof status", "-e", "prof off", "-e",
	    "prof off", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert_not(json_bool(o, "result.old"));
	cr_assert(json_bool(o, "result.new"));
	json_decref(o);
	o = run_json(&r, 1, v.pid, "prof");
	cr_assert_str_eq(json_text(o, "result.since_from"), "switch");
	cr_assert_eq(strlen(json_text(o, "result.since")), strlen("2026-01-31T12:00:00Z"));
	json_decref(o);
	o = run_json(&r, 2, v.pid, "prof");
	cr_assert(json_bool(o, "result.old"));
	cr_assert_not(json_bool(o, "result.new"));
	json_decref(o);
	o = run_json(&r, 3, v.pid, "prof");
	cr_assert_not(json_bool(o, "result.old"));
	json_decref(o);
	run_free(&r);
	victim_stop(&v);
}

static void expect_since(const struct run *r, size_t line, pid_t pid, const char *from)
{
	json_t *o = run_json(r, line, pid, "prof");

	if (from)
		cr_assert_str_eq(json_text(o, "result.since_from"), from);
	else
		cr_assert(json_is_null(json_at(o, "result.since")));
	json_decref(o);
}

/* Samples are not older than the reset that has forgotten them. */
Test(prof, since_is_no_older_than_the_last_reset)
{
	struct victim v;
	struct run r;

	start(&v, READY, "2", NULL, NULL);
	run(&r, v.pid, "--json", "-e", "prof off", "-e", "prof status", "-e", "prof reset", "-e",
	    "prof status", "-e", "prof reset 13", NULL);
	run_expect(&r, 0);
	expect_since(&r, 1, v.pid, "start"); /* off it was before */
	expect_since(&r, 3, v.pid, "switch");
	run_free(&r);
	run(&r, v.pid, "--json", "prof", "status", NULL);
	run_expect(&r, 0);
	expect_since(&r, 0, v.pid, NULL); /* the rate shows that it was reset, not when */
	run_free(&r);
	victim_stop(&v);
}

static void cannot_be_switched(const char *env, const char *line)
{
	static const char *const words[] = { "on", "off", "reset" };
	struct victim v;
	json_t *o;

	start(&v, env, "2", NULL, NULL);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		o = ask(v.pid, words[i], 1);
		cr_assert_str_eq(json_text(o, "error.code"), "prof-not-enabled");
		cr_assert_not_null(strstr(json_text(o, "error.hint"), line), "%s",
				   json_text(o, "error.hint"));
		json_decref(o);
	}
	o = ask(v.pid, "status", 0);
	cr_assert(json_bool(o, "result.compiled"));
	cr_assert_not(json_bool(o, "result.enabled"));
	cr_assert_not(json_bool(o, "result.active"));
	cr_assert(json_is_null(json_at(o, "result.lg_sample")));
	cr_assert(json_is_null(json_at(o, "result.since")));
	cr_assert_str_eq(json_text(o, "result.environment"), line);
	json_decref(o);
	victim_stop(&v);
}

Test(prof, not_enabled_at_start)
{
	cannot_be_switched(NULL, "MALLOC_CONF=prof:true,prof_active:false");
	cannot_be_switched("MALLOC_CONF=narenas:3",
			   "MALLOC_CONF=narenas:3,prof:true,prof_active:false");
}

Test(prof, a_target_without_jemalloc)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "retained", "2", "10");
	o = ask(v.pid, "status", 5);
	cr_assert_str_eq(json_text(o, "error.code"), "no-jemalloc");
	json_decref(o);
	victim_stop(&v);
}

Test(prof, a_dry_run_switches_nothing)
{
	const char *path = place();
	struct victim v;

	start(&v, READY, "2", NULL, NULL);
	run_ok(v.pid, "--dry-run", "prof", "on", NULL);
	cr_assert_not(is_active(v.pid));
	run_ok(v.pid, "prof", "on", NULL);
	run_ok(v.pid, "--dry-run", "prof", "off", NULL);
	cr_assert(is_active(v.pid));
	run_ok(v.pid, "--dry-run", "prof", "dump", path, NULL);
	cr_assert_eq(access(path, F_OK), -1);
	victim_stop(&v);
}

Test(prof, reset_forgets_and_sets_the_rate)
{
	const char *path = place();
	struct victim v;
	char *text;
	json_t *o;
	struct run r;

	start(&v, EVERY_ONE, "0", NULL, NULL);
	run_ok(v.pid, "prof", "off", NULL);
	run(&r, v.pid, "--json", "prof", "reset", "21", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert_eq(json_int(o, "result.old"), 0);
	cr_assert_eq(json_int(o, "result.new"), 21);
	cr_assert_eq(json_int(o, "result.sample_bytes"), 2 << 20);
	json_decref(o);
	run_free(&r);
	run_ok(v.pid, "prof", "dump", "--raw", path, NULL);
	text = content(path);
	cr_assert_eq(strncmp(text, "heap_v2/2097152\n", 16), 0, "%.60s", text);
	cr_assert_lt(count(text, "\n@ "), 10, "it has forgotten nothing");
	free(text);
	/* the same rate, when none is given */
	o = ask(v.pid, "reset", 0);
	cr_assert_eq(json_int(o, "result.new"), 21);
	json_decref(o);
	run(&r, v.pid, "--json", "prof", "reset", "4", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert(json_warned(o, "sampling-costs"));
	json_decref(o);
	run_free(&r);
	unlink(path);
	victim_stop(&v);
}

/* ---- on --for */

/* `prof on --for TIME` that a test can send signals to. */
static pid_t start_sampling(pid_t target, const char *time)
{
	const char *path = getenv("HEAPMEDIC");
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", (int)target);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGINT, SIG_DFL);
		if (getenv("ASAN_OPTIONS"))
			setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		execl(path ? path : "./heapmedic", "heapmedic", "-q", "-p", number, "prof", "on",
		      "--for", time, NULL);
		_exit(126);
	}
	return pid;
}

/* Until the victim is, or is not, sampled. */
static void await_active(pid_t pid, bool active)
{
	const uint64_t until = now_ns() + 20000000000u;

	while (is_active(pid) != active) {
		cr_assert_lt(now_ns(), until, "the sampling does not go %s", active ? "on" : "off");
		sleep_ns(20000000);
	}
}

static void ended_by(int sig, const char *threads)
{
	static struct state before;
	struct victim v;
	int status;
	pid_t pid;

	start(&v, READY, threads, NULL, NULL);
	/* jemalloc has set up what it needs for one more thread */
	cr_assert_not(is_active(v.pid));
	state_take(&v, &before);
	pid = start_sampling(v.pid, "100s");
	await_active(v.pid, true);
	kill(pid, sig);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (sig == SIGKILL)
		cr_assert(WIFSIGNALED(status));
	else
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
	if (sig == SIGKILL)
		await_active(v.pid, false);
	else
		cr_assert_not(is_active(v.pid));
	state_same(&v, &before, STATE_EXACT);
	victim_report(&v, NULL, 0);
	victim_stop(&v);
}

Test(prof, on_for_ends_with_ctrl_c, .timeout = 60)
{
	ended_by(SIGINT, "2");
	ended_by(SIGINT, "0");
}

Test(prof, on_for_ends_with_sigterm, .timeout = 60)
{
	ended_by(SIGTERM, "2");
	ended_by(SIGTERM, "0");
}

/* Our thread in the target does it then. */
Test(prof, on_for_ends_when_heapmedic_is_killed, .timeout = 60)
{
	ended_by(SIGKILL, "2");
}

Test(prof, on_for_ends_by_itself)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v, READY, "2", NULL, NULL);
	run(&r, v.pid, "--json", "prof", "on", "--for", "300ms", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert_not(json_bool(o, "result.old"));
	cr_assert_not(json_bool(o, "result.new"));
	cr_assert_geq(json_real_value(json_at(o, "result.seconds")), 0.3);
	cr_assert_not(json_warned(o, "stays-on-if-killed"));
	json_decref(o);
	cr_assert_geq(r.ns, 300000000u);
	run_free(&r);
	cr_assert_not(is_active(v.pid));
	/* what is on already is not switched off for that */
	run_ok(v.pid, "prof", "on", NULL);
	run(&r, v.pid, "--json", "prof", "on", "--for", "100s", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert(json_warned(o, "was-on"));
	json_decref(o);
	run_free(&r);
	cr_assert(is_active(v.pid));
	victim_stop(&v);
}

/* Where no thread of ours waits there is nobody to do it, and that is said before. */
Test(prof, on_for_in_a_single_thread_says_what_a_kill_costs)
{
	struct victim v;
	struct run r;
	json_t *o;

	start(&v, READY, "0", NULL, NULL);
	/* as long as was asked for, not a moment less */
	run(&r, v.pid, "prof", "on", "--for", "100ms", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.err, "sampling for 100 ms;"), "%s", r.err);
	run_free(&r);
	run(&r, v.pid, "--json", "prof", "on", "--for", "100ms", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "prof");
	cr_assert(json_warned(o, "stays-on-if-killed"));
	json_decref(o);
	run_free(&r);
	cr_assert_not(is_active(v.pid));
	victim_stop(&v);
}

/* ---- dump */

static void no_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("only root may change the root directory and suspend filters");
}

static void check_dump(const char *path, const struct victim *v)
{
	char *text = content(path), exe[256] = "", link[64], *own = exe;
	const char *root = getenv("VICTIM_ROOT");
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(strncmp(text, "heap_v2/1\n", 10), 0, "%.60s", text);
	/* each of the stacks that it has made, and what its threads do */
	cr_assert_geq(count(text, "\n@ 0x"), 300);
	cr_assert_eq(count(text, "\nMAPPED_LIBRARIES:\n"), 1);
	snprintf(link, sizeof(link), "/proc/%d/exe", v->pid);
	cr_assert_gt(readlink(link, exe, sizeof(exe) - 1), 0);
	/* as it sees it itself */
	if (root && !strncmp(exe, root, strlen(root)))
		own += strlen(root);
	cr_assert_not_null(strstr(strstr(text, "MAPPED_LIBRARIES"), own), "%s", own);
	free(text);
}

static void dump_of(const struct victim_plan *plan)
{
	static struct state before;
	const char *path = place();
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, plan);
	/* jemalloc has set up what it needs for one more thread */
	cr_assert(is_active(v.pid));
	state_take(&v, &before);
	for (int i = 0; i < 5; i++) {
		run(&r, v.pid, "--json", "prof", "dump", "--raw", path, NULL);
		run_expect(&r, 0);
		o = run_json(&r, 0, v.pid, "prof");
		cr_assert_str_eq(json_text(o, "result.file"), path);
		cr_assert_gt(json_int(o, "result.bytes"), 10000);
		cr_assert_not(json_bool(o, "result.symbolised"));
		cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
		json_decref(o);
		run_free(&r);
		check_dump(path, &v);
		state_same(&v, &before, STATE_EXACT);
		victim_check(&v);
	}
	victim_report(&v, NULL, 0);
	unlink(path);
	victim_stop(&v);
}

Test(prof, dump_of_many_threads, .timeout = 60)
{
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "3", "300" }, .env = EVERY_ONE });
}

Test(prof, dump_of_one_thread, .timeout = 60)
{
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "0", "300" }, .env = EVERY_ONE });
}

Test(prof, dump_of_a_preloaded_jemalloc, .timeout = 60)
{
	const char *path = place();
	struct victim_plan plan = { .argv = { "env", "LD_PRELOAD=libjemalloc.so.2", "@retained",
					      "2", "100" },
				    .env = EVERY_ONE };
	struct victim v;
	char *text;

	victim_start(&v, &plan);
	run_ok(v.pid, "prof", "dump", "--raw", path, NULL);
	text = content(path);
	cr_assert_eq(strncmp(text, "heap_v2/1\n", 10), 0, "%.60s", text);
	cr_assert_not_null(strstr(text, "retained"));
	free(text);
	unlink(path);
	victim_stop(&v);
}

/* With names, when the program is there; they are good for a look when it is gone. */
Test(prof, dump_with_names, .timeout = 60)
{
	const char *path = place();
	const char *const options[] = { "--mangled", NULL };
	struct victim v;

	start(&v, EVERY_ONE, "2", NULL, NULL);
	for (size_t i = 0; i < 2; i++) {
		const char *heap;
		struct run r;
		char *text;
		json_t *o;

		run(&r, v.pid, "--json", "prof", "dump", path, options[i], NULL);
		run_expect(&r, 0);
		o = run_json(&r, 0, v.pid, "prof");
		cr_assert(json_bool(o, "result.symbolised"));
		json_decref(o);
		run_free(&r);
		text = content(path);
		cr_assert_eq(strncmp(text, "--- symbol\n", 11), 0, "%.60s", text);
		heap = strstr(text, "\n--- heap\nheap_v2/1\n");
		cr_assert_not_null(heap);
		cr_assert_gt(strstr(text, " left"), text);
		cr_assert_lt(strstr(text, " left"), heap);
		cr_assert_lt(strstr(text, " right"), heap);
		cr_assert_lt(strstr(text, " main"), heap);
		cr_assert_geq(count(text, "\n@ 0x"), 300);
		/* of the program, libjemalloc.so.2 and libc.so.6, for whoever has only this file */
		cr_assert_geq(count(text, "\n# build-id 0x"), 3);
		free(text);
	}
	victim_stop(&v);
	{
		const char *args[] = { "prof", "top", "--file", path, NULL };
		const struct run_opts plain = { 0 };
		struct run r;

		run_with(&r, &plain, args);
		run_expect(&r, 0);
		cr_assert_not_null(strstr(r.out, "right"), "%s", r.out);
		run_free(&r);
	}
	unlink(path);
}

/* Strings of 40 hexadecimal digits. */
static unsigned count_ids(const char *data, size_t len)
{
	unsigned n = 0;
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = data[i] && strchr("0123456789abcdef", data[i]) ? run + 1 : 0;
		n += run == 40;
	}
	return n;
}

/* Of the process itself; the files that no stack goes through, like libm, have their ids as well.
 */
Test(prof, export_of_the_process, .timeout = 60)
{
	static char message[1 << 20];
	char path[100], unpack[120];
	struct victim v;
	struct run r;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s.pb.gz", place());
	start(&v, EVERY_ONE, "2", NULL, NULL);
	run(&r, v.pid, "prof", "export", path, NULL);
	run_expect(&r, 0);
	run_free(&r);
	victim_stop(&v);
	snprintf(unpack, sizeof(unpack), "zcat %s", path);
	f = popen(unpack, "re");
	cr_assert_not_null(f);
	len = fread(message, 1, sizeof(message), f);
	cr_assert_eq(pclose(f), 0);
	cr_assert_geq(count_ids(message, len), 6);
	cr_assert_not_null(memmem(message, len, "right", 5));
	unlink(path);
}

/* In the program itself, under a prefix that its functions got from objcopy: its variable has none.
 */
Test(prof, dump_of_a_static_jemalloc_with_a_prefix, .timeout = 60)
{
	const char *path = place();
	struct victim_plan plan = { .argv = { "@jem-rust" }, .env = "MALLOC_CONF=narenas:2" };
	struct victim v;
	char *text;
	json_t *o;

	victim_start(&v, &plan);
	o = ask(v.pid, "status", 0);
	cr_assert_str_eq(json_text(o, "result.environment"),
			 "MALLOC_CONF=narenas:2,prof:true,prof_active:false");
	json_decref(o);
	victim_stop(&v);
	plan.env = EVERY_ONE;
	victim_start(&v, &plan);
	run_ok(v.pid, "prof", "dump", "--raw", path, NULL);
	text = content(path);
	cr_assert_eq(strncmp(text, "heap_v2/1\n", 10), 0, "%.60s", text);
	free(text);
	unlink(path);
	victim_stop(&v);
}

/*
 * The proc in its root is of another pid namespace: the number that it has in its own is another
 * process's there, or nobody's.
 */
Test(prof, dump_in_a_pid_namespace, .timeout = 60)
{
	const char *path = place();
	struct victim_plan plan = { .argv = { "unshare", "--pid", "--fork", "--kill-child",
					      "@sampled", "2", "300" },
				    .env = EVERY_ONE };
	struct victim v, child;
	char file[64];
	FILE *f;

	no_root();
	victim_start(&v, &plan);
	snprintf(file, sizeof(file), "/proc/%d/task/%d/children", v.pid, v.pid);
	f = fopen(file, "re");
	cr_assert(f && fscanf(f, "%d", &child.pid) == 1, "%s", file);
	fclose(f);
	run_ok(child.pid, "prof", "dump", "--raw", path, NULL);
	check_dump(path, &child);
	unlink(path);
	victim_stop(&v);
}

/* The thread of several that is borrowed shares its descriptors with the others. */
Test(prof, dump_by_a_borrowed_thread)
{
	static struct state before;
	const char *path = place();
	struct victim v;

	start(&v, EVERY_ONE, "3", NULL, NULL);
	run_ok(v.pid, "--via", "direct", "prof", "dump", "--raw", path, NULL);
	check_dump(path, &v);
	state_take(&v, &before);
	run_ok(v.pid, "--via", "direct", "prof", "dump", "--raw", path, NULL);
	state_same(&v, &before, STATE_EXACT);
	unlink(path);
	victim_stop(&v);
}

/* No file of the target is looked for by its name, so that it needs no proc. */
Test(prof, dump_without_proc, .timeout = 60)
{
	no_root();
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "3", "300", "chroot" },
				       .env = EVERY_ONE });
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "0", "300", "chroot" },
				       .env = EVERY_ONE });
}

Test(prof, dump_of_another_user)
{
	const char *path = place();
	const struct run_opts nobody = { .nobody = true };
	char pid[16];
	const char *args[] = { "-p", pid, "prof", "dump", "--raw", path, NULL };
	struct victim_plan plan = { .argv = { "setpriv", "--reuid=65534", "--regid=65534",
					      "--clear-groups", "@sampled", "2", "300" },
				    .env = EVERY_ONE };
	struct victim v;
	struct run r;

	no_root();
	victim_start(&v, &plan);
	run_ok(v.pid, "prof", "dump", "--raw", path, NULL);
	check_dump(path, &v);
	unlink(path);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_with(&r, &nobody, args);
	run_expect(&r, 0);
	run_free(&r);
	check_dump(path, &v);
	unlink(path);
	victim_stop(&v);
}

/* ---- a dump that fails */

static void fails(const struct victim_plan *plan, const char *via, int exit, const char *code)
{
	static struct state before;
	const char *path = place();
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, plan);
	run_ok(v.pid, "--via", via, "prof", "status", NULL);
	state_take(&v, &before);
	for (int i = 0; i < 3; i++) {
		run(&r, v.pid, "--json", "--via", via, "prof", "dump", path, NULL);
		run_expect(&r, exit);
		o = run_json(&r, 0, v.pid, "prof");
		cr_assert_str_eq(json_text(o, "error.code"), code, "%s",
				 json_text(o, "error.text"));
		cr_assert_gt(strlen(json_text(o, "error.hint")), 10);
		json_decref(o);
		run_free(&r);
		cr_assert_eq(access(path, F_OK), -1);
		state_same(&v, &before, STATE_EXACT);
		victim_report(&v, NULL, 0);
	}
	victim_stop(&v);
}

static void fails_at(const char *threads, const char *what, const char *number, const char *env,
		     const char *via, const char *code)
{
	fails(&(struct victim_plan){ .argv = { "@sampled", threads, "1000", what, number },
				     .env = env },
	      via, 1, code);
}

/* SIGXFSZ, which the kernel sends for it, would end the process. */
Test(prof, a_file_may_not_be_so_large, .timeout = 60)
{
	static const char *const limits[] = { "0", "4096", "70000" };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		fails_at("2", "fsize", limits[i], EVERY_ONE, "auto", "limit-file-size");
		fails_at("0", "fsize", limits[i], EVERY_ONE, "auto", "limit-file-size");
		fails_at("2", "fsize", limits[i], EVERY_ONE, "direct", "limit-file-size");
	}
}

/* Also with opt.abort jemalloc does not abort for a dump that was asked for by mallctl. */
Test(prof, a_dump_that_fails_aborts_nothing)
{
	static const char abort_too[] = EVERY_ONE ",abort:true,abort_conf:true";

	fails_at("2", "fsize", "4096", abort_too, "auto", "limit-file-size");
	fails_at("0", "nofile", "3", abort_too, "auto", "no-memory-file");
}

/* A limit that is not reached is no reason to refuse. */
Test(prof, a_file_may_be_large_enough, .timeout = 60)
{
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "0", "300", "fsize", "90000000" },
				       .env = EVERY_ONE });
	dump_of(&(struct victim_plan){ .argv = { "@sampled", "2", "300", "fsize", "90000000" },
				       .env = EVERY_ONE });
}

Test(prof, no_descriptor_is_left)
{
	fails_at("0", "nofile", "3", EVERY_ONE, "auto", "no-memory-file");
}

static struct victim_plan filtered_plan(const char *call, const char *action, const char *threads)
{
	return (struct victim_plan){ .argv = { "@filtered", call, action, "--", "@sampled", threads,
					       "300" },
				     .env = EVERY_ONE };
}

/* The filter is suspended while we are there; if we were killed, it would be the target's death. */
Test(prof, seccomp_filters, .timeout = 60)
{
	struct victim_plan plan;

	no_root();
	plan = filtered_plan("creat", "errno", "2");
	dump_of(&plan);
	plan = filtered_plan("creat", "errno", "0");
	dump_of(&plan);
	plan = filtered_plan("creat", "kill", "2");
	fails(&plan, "auto", 6, "seccomp-kills");
	plan = filtered_plan("creat", "kill", "0");
	fails(&plan, "auto", 6, "seccomp-kills");
}

Test(prof, what_is_there_is_not_replaced)
{
	const char *path = place();
	struct victim v;
	struct run r;
	FILE *f;
	char *text;

	start(&v, EVERY_ONE, "2", NULL, NULL);
	f = fopen(path, "we");
	cr_assert_not_null(f);
	fputs("mine\n", f);
	fclose(f);
	run(&r, v.pid, "prof", "dump", path, NULL);
	run_expect(&r, 2);
	run_free(&r);
	text = content(path);
	cr_assert_str_eq(text, "mine\n");
	free(text);
	run_ok(v.pid, "prof", "dump", "--raw", "--force", path, NULL);
	check_dump(path, &v);
	/* one profile over another one needs no word */
	run_ok(v.pid, "prof", "dump", "--raw", path, NULL);
	unlink(path);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	run(&r, v.pid, "prof", "dump", "--force", path, NULL);
	run_expect(&r, 2);
	run_free(&r);
	unlink(path);
	run(&r, v.pid, "prof", "dump", "/nowhere/at.all", NULL);
	run_expect(&r, 1);
	run_free(&r);
	victim_stop(&v);
}
