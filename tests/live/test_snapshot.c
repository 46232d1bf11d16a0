// SPDX-License-Identifier: GPL-3.0-or-later
/* What is saved of a process is what was seen of it, also when it is gone, and two of them tell
 * what has grown. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define MIB   (1024ll * 1024)
#define STEP  (48 * MIB)
#define TRIES 20

/* ---- files of a test: in a directory of its own, which is gone with them */

struct place {
	char dir[64], a[96], b[96];
};

static void place_make(struct place *p)
{
	strcpy(p->dir, "/tmp/heapmedic-live-XXXXXX");
	cr_assert(mkdtemp(p->dir));
	snprintf(p->a, sizeof(p->a), "%s/a.hms", p->dir);
	snprintf(p->b, sizeof(p->b), "%s/b.hms", p->dir);
}

static void place_end(struct place *p)
{
	unlink(p->a);
	unlink(p->b);
	cr_assert_eq(rmdir(p->dir), 0, "something is left in %s", p->dir);
}

static void run_any(struct run *r, const char *const *args)
{
	static const struct run_opts o = { 0 };

	run_with(r, &o, args);
}

/* heapmedic WORD..., the last is NULL. */
static void program(struct run *r, ...)
{
	const char *args[RUN_ARGS + 1];
	size_t n = 0;
	va_list ap;

	va_start(ap, r);
	while ((args[n] = va_arg(ap, const char *)))
		cr_assert_lt(++n, RUN_ARGS);
	va_end(ap);
	run_any(r, args);
}

/* ---- the same text */

/* Drops the lines that are another at each look: of the clock, of the machine. */
static void drop_moving(char *text)
{
	static const char *const moving[] = { "uptime", "minflt", "cgroup" };
	char *w = text;

	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');
		size_t len = (size_t)(end - line) + (*end == '\n');
		bool drop = false;

		for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
			drop |= strncmp(line, moving[i], strlen(moving[i])) == 0;
		if (!drop) {
			memmove(w, line, len);
			w += len;
		}
		line += len;
	}
	*w = '\0';
}

static void drop_members(json_t *o)
{
	static const char *const moving[] = { "uptime",	     "minflt",		"cgroup",
					      "cgroup.used", "cgroup.fraction", "cgroup.limit",
					      "pss" };
	const char *const in[] = { NULL, "facts", "origins" };
	json_t *result = json_at(o, "result");

	for (size_t k = 0; k < 3; k++) {
		json_t *at = in[k] ? json_object_get(result, in[k]) : result;

		for (size_t i = 0; at && i < sizeof(moving) / sizeof(moving[0]); i++)
			json_object_del(at, moving[i]);
	}
}

#define WORDS 8
/* "maps --all" as arguments behind n others. */
static void add_words(const char *command, char *copy, const char **args, size_t n)
{
	char *save = NULL;

	strcpy(copy, command);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		args[n++] = w;
	args[n] = NULL;
}

static void look(struct run *r, pid_t pid, const char *command)
{
	char number[16], copy[64];
	const char *args[3 + WORDS] = { "-p", number, "--passive" };

	snprintf(number, sizeof(number), "%d", (int)pid);
	add_words(command, copy, args, 3);
	run_any(r, args);
	drop_moving(r->out);
}

static void load(struct run *r, const char *path, const char *command)
{
	const char *args[2 + WORDS] = { "--load", path };
	char copy[64], *talk;

	add_words(command, copy, args, 2);
	run_any(r, args);
	drop_moving(r->out);
	/* the heading is what it says more */
	talk = strchr(r->err, '\n');
	cr_assert(talk && strstr(r->err, "a snapshot of "), "no heading: %s", r->err);
	memmove(r->err, talk + 1, strlen(talk + 1) + 1);
}

static bool same_answer(const struct run *a, const struct run *b)
{
	return a->exit == b->exit && !strcmp(a->out, b->out) && !strcmp(a->err, b->err);
}

static bool is_json(const char *command)
{
	return strstr(command, "--json") != NULL;
}

static json_t *answer_of(const struct run *r, pid_t pid, const char *command)
{
	char name[32];
	json_t *o;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(command, " "), command);
	o = run_json(r, 0, pid, name);
	drop_members(o);
	json_object_del(o, "time");
	return o;
}

static bool same_json(const struct run *a, const struct run *b, pid_t pid, const char *command)
{
	json_t *x = answer_of(a, pid, command), *y = answer_of(b, pid, command);
	bool same = a->exit == b->exit && json_equal(x, y);

	json_decref(x);
	json_decref(y);
	return same;
}

/* A thread that wakes up for a moment, or allocates, is seen in one look and not in another; what
 * is not the same in any of many is a fault. */
static void check_command(struct victim *v, const char *path, const char *command)
{
	struct run seen, saved, r;
	bool same = false;

	for (int i = 0; i < TRIES && !same; i++) {
		look(&seen, v->pid, command);
		run(&r, v->pid, "--passive", "snapshot", path, NULL);
		run_expect(&r, 0);
		run_free(&r);
		load(&saved, path, command);
		same = is_json(command) ? same_json(&seen, &saved, v->pid, command)
					: same_answer(&seen, &saved);
		cr_assert(same || i < TRIES - 1, "%s: %s%s--- is from the snapshot\n%s%s", command,
			  seen.out, seen.err, saved.out, saved.err);
		run_free(&seen);
		run_free(&saved);
	}
}

static const char *const commands[] = {
	"diagnose",
	"maps",
	"maps --all",
	"arenas",
	"arenas --all",
	"threads",
	"facts",
	"diagnose --json",
	"maps --all --json",
	"arenas --json",
	"threads --json",
	"facts --json",
	"diagnose --bytes",
	"arenas --bytes",
	"facts glibc. jemalloc. go.heap_mapped",
};

static void check_victim(const char *name, const char *arg)
{
	struct victim v;
	struct place p;

	place_make(&p);
	victim_start_named(&v, name, arg, NULL);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		check_command(&v, p.a, commands[i]);
	victim_stop(&v);
	place_end(&p);
}

Test(snapshot, retained, .timeout = 300)
{
	check_victim("retained", "4");
}

/* One that allocates all the time stands still for this. */
static void check_stopped(const char *name)
{
	struct victim v;
	struct place p;

	place_make(&p);
	victim_start_named(&v, name, NULL, NULL);
	kill(v.pid, SIGSTOP);
	proc_wait_state(v.pid, "T");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		check_command(&v, p.a, commands[i]);
	victim_kill(&v);
	place_end(&p);
}

Test(snapshot, eight, .timeout = 300)
{
	check_stopped("eight");
}

Test(snapshot, cached, .timeout = 300)
{
	check_victim("cached", NULL);
}

/* Errors are kept as well: these have no arenas of glibc's. */
Test(snapshot, nolibc, .timeout = 300)
{
	check_victim("nolibc", NULL);
}

Test(snapshot, musl, .timeout = 300)
{
	check_stopped("musl");
}

/* Not asked: each call is one more thread that allocates, and changes what is answered. */
Test(snapshot, jemalloc, .timeout = 300)
{
	check_victim("jemlinked", "2");
}

/* What was answered is saved: a snapshot asks nobody. */
Test(snapshot, jemalloc_asked)
{
	struct victim v;
	struct place p;
	struct run r;
	json_t *o;

	place_make(&p);
	victim_start_named(&v, "jemlinked", "2", NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	victim_kill(&v);
	load(&r, p.a, "diagnose --json");
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "diagnose");
	cr_assert_str_eq(json_text(o, "result.verdict"), "retained");
	cr_assert_gt(
		json_integer_value(json_object_get(json_at(o, "result.facts"), "jemalloc.active")),
		0);
	cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
	json_decref(o);
	run_free(&r);
	load(&r, p.a, "arenas");
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "arenas are initialised"), "%s", r.out);
	run_free(&r);
	/* as much as was in use then, with its epoch */
	load(&r, p.a, "arenas --json");
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "arenas");
	cr_assert_geq(json_array_size(json_at(o, "result.arenas")), 2);
	cr_assert_gt(json_int(o, "result.jemalloc.total.active"), 0);
	cr_assert_gt(json_int(o, "result.jemalloc.epoch"), 0);
	json_decref(o);
	run_free(&r);
	place_end(&p);
}

/* ---- without the process */

Test(snapshot, loaded_when_the_process_is_gone)
{
	struct run before[sizeof(commands) / sizeof(commands[0])], after;
	const size_t n = sizeof(commands) / sizeof(commands[0]);
	struct victim v;
	struct place p;

	place_make(&p);
	victim_start_named(&v, "retained", "2", NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	for (size_t i = 0; i < n; i++)
		load(&before[i], p.a, commands[i]);
	victim_kill(&v);
	for (size_t i = 0; i < n; i++) {
		load(&after, p.a, commands[i]);
		run_expect(&after, 0);
		cr_assert(same_answer(&before[i], &after), "%s", commands[i]);
		run_free(&before[i]);
		run_free(&after);
	}
	place_end(&p);
}

Test(snapshot, what_needs_the_process_says_so)
{
	static const char *const words[] = { "trim",
					     "check",
					     "bt",
					     "info",
					     "stats",
					     "mallopt M_ARENA_MAX 2",
					     "mallctl opt.abort",
					     "snapshot /tmp/x" };
	const char *args[WORDS];
	struct victim v;
	struct place p;
	struct run r;
	char copy[64];

	place_make(&p);
	victim_start_named(&v, "single", NULL, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		args[0] = "--load";
		args[1] = p.a;
		add_words(words[i], copy, args, 2);
		run_any(&r, args);
		run_expect(&r, 2);
		cr_assert(strstr(r.err, "needs the process itself"), "%s: %s", words[i], r.err);
		cr_assert_str_eq(r.out, "");
		run_free(&r);
	}
	/* before anything of a script is done */
	program(&r, "--load", p.a, "-e", "facts; trim", NULL);
	run_expect(&r, 2);
	cr_assert_str_eq(r.out, "");
	cr_assert(strstr(r.err, "-e:1"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

Test(snapshot, not_together_with_a_process)
{
	static const char *const with[][2] = { { "-p", "1" }, { "-n", "init" }, { "-g", "/" } };
	struct run r;

	for (size_t i = 0; i < 3; i++) {
		program(&r, "--load", "x", with[i][0], with[i][1], "facts", NULL);
		run_expect(&r, 2);
		cr_assert(strstr(r.err, "do not go together"), "%s", r.err);
		run_free(&r);
	}
	program(&r, "--load", "x", "--load", "y", "facts", NULL);
	run_expect(&r, 2);
	run_free(&r);
	program(&r, "--load", "/no/such/file", "facts", NULL);
	run_expect(&r, 2);
	cr_assert(strstr(r.err, "/no/such/file"), "%s", r.err);
	run_free(&r);
}

/* -e, a runbook, stdin: all speak of the process and the time of the snapshot. */
Test(snapshot, scripts_and_json)
{
	struct run_opts o = { .input = "facts\nthreads\n" };
	const char *in[] = { "--load", NULL, "--json", NULL };
	struct victim v;
	struct place p;
	struct run r;
	char time[64];
	json_t *a, *b;
	FILE *f;

	place_make(&p);
	victim_start_named(&v, "single", NULL, NULL);
	run(&r, v.pid, "--json", "snapshot", p.a, NULL);
	run_expect(&r, 0);
	a = run_json(&r, 0, v.pid, "snapshot");
	cr_assert_str_eq(json_text(a, "result.file"), p.a);
	cr_assert_gt(json_int(a, "result.bytes"), 500);
	json_decref(a);
	run_free(&r);
	program(&r, "--load", p.a, "--json", "-e", "facts", "-e", "echo $$; threads", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 2, "%s", r.out);
	a = run_json(&r, 0, v.pid, "facts");
	b = run_json(&r, 1, v.pid, "threads");
	cr_assert_str_eq(json_text(a, "comm"), "single");
	snprintf(time, sizeof(time), "%s", json_text(a, "time"));
	cr_assert_str_eq(json_text(b, "time"), time);
	json_decref(a);
	json_decref(b);
	run_free(&r);
	in[1] = p.a;
	run_with(&r, &o, in);
	run_expect(&r, 0);
	a = run_json(&r, 1, v.pid, "threads");
	cr_assert_str_eq(json_text(a, "time"), time);
	json_decref(a);
	run_free(&r);
	f = fopen(p.b, "w");
	cr_assert(f && fputs("maps\ntrim\n", f) >= 0 && fclose(f) == 0);
	program(&r, "--load", p.a, "-f", p.b, NULL);
	run_expect(&r, 2);
	cr_assert(strstr(r.err, "b.hms:2"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

static void await(int fd, char *text, size_t size, const char *what)
{
	size_t len = strlen(text);
	uint64_t end = now_ns() + 20000000000u;

	while (!strstr(text, what)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n = 0;

		cr_assert(now_ns() < end, "no '%s' in: %s", what, text);
		if (poll(&p, 1, 100) > 0)
			n = read(fd, text + len, size - 1 - len);
		cr_assert_geq(n, 0, "no '%s' in: %s", what, text);
		len += (size_t)n;
		text[len] = '\0';
	}
}

Test(snapshot, shell)
{
	const char *path = getenv("HEAPMEDIC");
	static char text[65536];
	struct victim v;
	struct place p;
	int fd, status = 0;
	pid_t pid;

	place_make(&p);
	victim_start_named(&v, "single", NULL, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	victim_kill(&v);
	pid = forkpty(&fd, NULL, NULL, NULL);
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		setenv("TERM", "dumb", 1);
		setenv("HOME", "/nonexistent", 1);
		path = path ? path : "./heapmedic";
		execl(path, "heapmedic", "--load", p.a, (char *)NULL);
		_exit(126);
	}
	await(fd, text, sizeof(text), " snapshot> ");
	cr_assert_eq(write(fd, "facts\r", 6), 6);
	await(fd, text, sizeof(text), "glibc.version");
	cr_assert_eq(write(fd, "trim\r", 5), 5);
	await(fd, text, sizeof(text), "needs the process itself");
	cr_assert_eq(write(fd, "quit\r", 5), 5);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: %s", status, text);
	close(fd);
	place_end(&p);
}

/* ---- the file */

static void step(struct victim *v, char what)
{
	char answer[5];
	size_t n = 0;

	cr_assert_eq(write(v->in, &what, 1), 1);
	while (n < sizeof(answer)) {
		ssize_t got = read(v->out, answer + n, sizeof(answer) - n);

		cr_assert_gt(got, 0, "the victim does not answer");
		n += (size_t)got;
	}
	cr_assert_eq(memcmp(answer, "done\n", 5), 0);
}

Test(snapshot, nothing_that_the_program_has_stored)
{
	struct run_opts zcat = { .program = "zcat" }, python = { .program = "sh" };
	const char *args[] = { NULL, NULL };
	char command[160];
	const char *pretty[] = { "-c", command, NULL };
	struct victim v;
	struct place p;
	struct run r;

	place_make(&p);
	victim_start_named(&v, "steps", NULL, NULL);
	step(&v, 'a');
	run_ok(v.pid, "snapshot", p.a, NULL);
	args[0] = p.a;
	run_with(&r, &zcat, args);
	run_expect(&r, 0);
	cr_assert_eq(strncmp(r.out, "{\"schema\":\"heapmedic-snapshot/1\"", 32), 0, "%.100s",
		     r.out);
	cr_assert(strstr(r.out, "libc"));
	cr_assert_null(strstr(r.out, "what the program"));
	run_free(&r);
	/* as the manual says */
	snprintf(command, sizeof(command), "zcat %s | python3 -m json.tool", p.a);
	run_with(&r, &python, pretty);
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "\"schema\": \"heapmedic-snapshot/1\""));
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

Test(snapshot, to_stdout_and_over_other_files)
{
	struct run_opts sh = { .program = "sh" };
	char command[512];
	const char *args[] = { "-c", command, NULL };
	const char *path = getenv("HEAPMEDIC");
	struct victim v;
	struct place p;
	struct stat st;
	struct run r;
	FILE *f;

	place_make(&p);
	victim_start_named(&v, "single", NULL, NULL);
	snprintf(command, sizeof(command),
		 "%s -p %d snapshot - | %s --load /dev/stdin threads --json",
		 path ? path : "./heapmedic", (int)v.pid, path ? path : "./heapmedic");
	run_with(&r, &sh, args);
	run_expect(&r, 0);
	json_decref(run_json(&r, 0, v.pid, "threads"));
	run_free(&r);
	run(&r, v.pid, "--json", "snapshot", "-", NULL);
	run_expect(&r, 2);
	run_free(&r);
	f = fopen(p.a, "w");
	cr_assert(f && fputs("precious", f) >= 0 && fclose(f) == 0);
	run(&r, v.pid, "snapshot", p.a, NULL);
	run_expect(&r, 2);
	cr_assert(strstr(r.err, "--force"), "%s", r.err);
	run_free(&r);
	cr_assert(stat(p.a, &st) == 0 && st.st_size == 8);
	run_ok(v.pid, "snapshot", "--force", p.a, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	cr_assert(stat(p.a, &st) == 0 && (st.st_mode & 0777) == 0600);
	run(&r, v.pid, "snapshot", "/no/such/place", NULL);
	run_expect(&r, 1);
	cr_assert(strstr(r.err, "/no/such/place"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

static void is_of(const char *path, pid_t pid)
{
	struct run r;

	load(&r, path, "facts --json");
	json_decref(run_json(&r, 0, pid, "facts"));
	run_free(&r);
}

/* Of several targets none gets the place of another. */
Test(snapshot, several_targets_do_not_share_a_file)
{
	char one[16], two[16], each[256];
	struct victim v, w;
	struct place p;
	struct run r;

	place_make(&p);
	victim_start_named(&v, "single", NULL, NULL);
	victim_start_named(&w, "single", NULL, NULL);
	snprintf(one, sizeof(one), "%d", (int)v.pid);
	snprintf(two, sizeof(two), "%d", (int)w.pid);
	program(&r, "-p", one, "-p", two, "snapshot", p.a, NULL);
	run_expect(&r, 2);
	cr_assert_not_null(strstr(r.err, one), "%s", r.err);
	cr_assert_not_null(strstr(r.err, "$$"), "%s", r.err);
	run_free(&r);
	is_of(p.a, v.pid);
	/* the same one may be saved again, and each under a name of its own */
	snprintf(each, sizeof(each), "snapshot %s.$$; snapshot %s.$$", p.a, p.a);
	program(&r, "-p", one, "-p", two, "-e", each, NULL);
	run_expect(&r, 0);
	run_free(&r);
	for (int i = 0; i < 2; i++) {
		snprintf(each, sizeof(each), "%s.%s", p.a, i ? two : one);
		is_of(each, i ? w.pid : v.pid);
		cr_assert_eq(unlink(each), 0);
	}
	victim_stop(&v);
	victim_stop(&w);
	place_end(&p);
}

/* Who may not write there leaves nothing there. */
Test(snapshot, a_dry_run_writes_nothing)
{
	struct victim v;
	struct place p;
	struct run r;

	place_make(&p);
	victim_start_named(&v, "retained", NULL, NULL);
	run(&r, v.pid, "--dry-run", "snapshot", p.a, NULL);
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "would be saved in"), "%s", r.out);
	run_free(&r);
	cr_assert_eq(access(p.a, F_OK), -1);
	/* what would be refused is refused */
	cr_assert_eq(symlink("/dev/null", p.a), 0);
	run(&r, v.pid, "--dry-run", "snapshot", "--force", p.a, NULL);
	run_expect(&r, 2);
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

Test(snapshot, in_a_directory_of_others)
{
	struct run_opts o = { .nobody = true };
	char pid[16], path[96];
	const char *args[] = { "-p", pid, "snapshot", path, NULL };
	struct victim v;
	struct place p;
	struct run r;

	if (geteuid() != 0)
		cr_skip_test("needs another user");
	place_make(&p);
	snprintf(path, sizeof(path), "%s/a.hms", p.dir);
	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	run_with(&r, &o, args);
	cr_assert(r.exit == 1 || r.exit == 4, "exit %d: %s", r.exit, r.err);
	run_free(&r);
	victim_stop(&v);
	place_end(&p);
}

/* ---- what has grown */

static json_t *diff(const char *a, const char *b)
{
	struct run r;
	json_t *o;

	program(&r, "--json", "diff", a, b, NULL);
	run_expect(&r, 0);
	o = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);
	cr_assert_not_null(o, "%s", r.out);
	cr_assert_str_eq(json_text(o, "command"), "diff");
	cr_assert(json_is_null(json_at(o, "pid")) && json_is_null(json_at(o, "comm")));
	run_free(&r);
	return o;
}

static json_t *first_row(json_t *o)
{
	json_t *row = json_array_get(json_at(o, "result.rows"), 0);

	cr_assert_not_null(row);
	return row;
}

static void check_sums(json_t *o)
{
	long long before = 0, after = 0, last = INT64_MAX;
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.rows"), i, row)
	{
		before += json_int(row, "before_bytes");
		after += json_int(row, "after_bytes");
		cr_assert_eq(json_int(row, "delta_bytes"),
			     json_int(row, "after_bytes") - json_int(row, "before_bytes"));
		cr_assert_leq(json_int(row, "delta_bytes"), last);
		last = json_int(row, "delta_bytes");
		json_text(row, "detail");
	}
	cr_assert_eq(before, json_int(o, "result.total.before_bytes"));
	cr_assert_eq(after, json_int(o, "result.total.after_bytes"));
	cr_assert_gt(json_number_value(json_at(o, "result.seconds")), 0);
}

/* A step between two snapshots; the answer is of the right kind, and no fact but the step's. */
static json_t *grown(struct victim *v, struct place *p, char what, const char *growth)
{
	json_t *o;

	run_ok(v->pid, "snapshot", p->a, NULL);
	step(v, what);
	run_ok(v->pid, "snapshot", p->b, NULL);
	o = diff(p->a, p->b);
	cr_assert_str_eq(json_text(o, "result.growth"), growth, "%s",
			 json_text(o, "result.summary"));
	cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
	check_sums(o);
	return o;
}

Test(diff, live_retained_and_neither, .timeout = 120)
{
	json_t *o, *row;
	struct victim v;
	struct place p;

	place_make(&p);
	victim_start_named(&v, "steps", NULL, NULL);
	o = grown(&v, &p, 'a', "live");
	row = first_row(o);
	cr_assert_str_eq(json_text(row, "owner"), "glibc-main");
	cr_assert_geq(json_int(row, "delta_bytes"), STEP);
	cr_assert_lt(json_int(row, "delta_bytes"), STEP + 2 * MIB);
	row = json_array_get(json_at(o, "result.arenas"), 0);
	cr_assert_geq(json_int(row, "in_use_delta_bytes"), STEP);
	json_decref(o);
	/* what is freed stays resident: nothing has grown, but its kind is another */
	o = grown(&v, &p, 'f', "none");
	row = json_array_get(json_at(o, "result.arenas"), 0);
	cr_assert_leq(json_int(row, "in_use_delta_bytes"), -STEP);
	cr_assert_geq(json_int(row, "free_delta_bytes"), STEP);
	json_decref(o);
	o = grown(&v, &p, 'm', "not-allocator");
	row = first_row(o);
	cr_assert_str_eq(json_text(row, "owner"), "unclaimed");
	cr_assert_geq(json_int(row, "delta_bytes"), STEP);
	json_decref(o);
	o = grown(&v, &p, 't', "none");
	cr_assert_eq(json_array_size(json_at(o, "result.threads.new")), 1);
	row = json_array_get(json_at(o, "result.threads.new"), 0);
	cr_assert_str_eq(json_text(row, "name"), "late");
	cr_assert_eq(json_array_size(json_at(o, "result.threads.gone")), 0);
	json_decref(o);
	victim_stop(&v);
	place_end(&p);
}

/* From before what is now free was allocated: not a leak. */
Test(diff, retained)
{
	struct victim v;
	struct place p;
	json_t *o;

	place_make(&p);
	victim_start_named(&v, "steps", NULL, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	step(&v, 'a');
	step(&v, 'f');
	run_ok(v.pid, "snapshot", p.b, NULL);
	o = diff(p.a, p.b);
	cr_assert_str_eq(json_text(o, "result.growth"), "retained", "%s",
			 json_text(o, "result.summary"));
	json_decref(o);
	victim_stop(&v);
	place_end(&p);
}

Test(diff, other_order_other_process)
{
	struct victim v, w;
	struct place p;
	json_t *o;

	place_make(&p);
	victim_start_named(&v, "steps", NULL, NULL);
	victim_start_named(&w, "single", NULL, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	step(&v, 'a');
	run_ok(v.pid, "snapshot", p.b, NULL);
	o = diff(p.b, p.a);
	cr_assert(json_warned(o, "wrong-order"));
	cr_assert_not(json_warned(o, "other-process"));
	cr_assert_lt(json_number_value(json_at(o, "result.seconds")), 0);
	cr_assert_lt(json_int(o, "result.total.delta_bytes"), -STEP + MIB);
	json_decref(o);
	run_ok(w.pid, "snapshot", p.b, NULL);
	o = diff(p.a, p.b);
	cr_assert(json_warned(o, "other-process"));
	json_decref(o);
	victim_stop(&v);
	victim_stop(&w);
	place_end(&p);
}

/* One file and what is there now: the process, or what is loaded. */
Test(diff, against_now)
{
	struct victim v;
	struct place p;
	struct run r;

	place_make(&p);
	victim_start_named(&v, "steps", NULL, NULL);
	run_ok(v.pid, "snapshot", p.a, NULL);
	step(&v, 'a');
	sleep_ns(1100000000); /* there are no rates of less */
	run(&r, v.pid, "diff", p.a, NULL);
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "growth   live: "), "%s", r.out);
	cr_assert(strstr(r.out, "PER MIN"), "%s", r.out);
	cr_assert_null(strstr(r.err, "warning"), "%s", r.err);
	run_free(&r);
	run_ok(v.pid, "snapshot", p.b, NULL);
	victim_stop(&v);
	program(&r, "--load", p.b, "diff", p.a, NULL);
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "growth   live: "), "%s", r.out);
	run_free(&r);
	program(&r, "diff", p.a, NULL);
	run_expect(&r, 2);
	run_free(&r);
	program(&r, "diff", p.a, p.dir, NULL);
	run_expect(&r, 2);
	run_free(&r);
	program(&r, "diff", p.a, p.a, NULL);
	run_expect(&r, 0);
	cr_assert(strstr(r.out, "growth   none: "), "%s", r.out);
	run_free(&r);
	place_end(&p);
}
