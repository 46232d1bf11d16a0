// SPDX-License-Identifier: GPL-3.0-or-later
#include "program.h"
#include "victim.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST_NS 120000000000ull
#define MOST_TEXT  ((size_t)16 << 20)

static const char *program_path(void)
{
	const char *path = getenv("HEAPMEDIC");

	return path ? path : "./heapmedic";
}

/* The tree may be where nobody cannot reach it: the descriptor is opened before the user changes.
 */
static void become(const struct run_opts *o, const char *const *args, const int in[2],
		   const int out[2], const int err[2])
{
	const char *argv[RUN_ARGS + 2] = { o->program ? o->program : "heapmedic" };
	int fd = o->nobody ? open(program_path(), O_RDONLY | O_CLOEXEC) : -1;

	for (size_t i = 0; i < RUN_ARGS && args[i]; i++)
		argv[i + 1] = args[i];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* LeakSanitizer stops a process at its end to look at it; killed then, it would stay
	 * stopped. */
	if ((o->kill_after_ns || o->interrupted || o->may_not_trace) && getenv("ASAN_OPTIONS"))
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	if (o->nobody && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			  setresuid(65534, 65534, 65534)))
		_exit(126);
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	if (o->program)
		execvp(o->program, (char *const *)argv);
	else if (o->nobody)
		fexecve(fd, (char *const *)argv, environ);
	else
		execv(program_path(), (char *const *)argv);
	_exit(126);
}

/* Appends what fd has; false at its end. */
static bool take(int fd, char **text, size_t *len)
{
	char buf[65536];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	cr_assert_lt(*len + (size_t)n, MOST_TEXT, "heapmedic does not stop talking");
	*text = realloc(*text, *len + (size_t)n + 1);
	cr_assert_not_null(*text);
	memcpy(*text + *len, buf, (size_t)n);
	*len += (size_t)n;
	(*text)[*len] = '\0';
	return true;
}

/* Until both ends are closed or the time is up; then it is killed. */
static void collect(struct run *r, int out, int err, uint64_t kill_at, uint64_t give_up)
{
	struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	size_t out_len = 0, err_len = 0;
	bool killed = false;

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		uint64_t now = now_ns(), end = kill_at && !killed ? kill_at : give_up;
		struct timespec left = { .tv_sec = 0 };

		if (now >= end) {
			kill(r->pid, SIGKILL);
			cr_assert(kill_at && now < give_up,
				  "heapmedic does not end; it said: %s %s", r->out, r->err);
			killed = true;
			continue;
		}
		left.tv_sec = (time_t)((end - now) / 1000000000u);
		left.tv_nsec = (long)((end - now) % 1000000000u);
		if (ppoll(p, 2, &left, NULL) <= 0)
			continue;
		if (p[0].revents && !take(out, &r->out, &out_len))
			p[0].fd = -1;
		if (p[1].revents && !take(err, &r->err, &err_len))
			p[1].fd = -1;
	}
}

void run_with(struct run *r, const struct run_opts *o, const char *const *args)
{
	int in[2], out[2], err[2], status = 0;
	uint64_t start = now_ns();
	struct rusage usage;

	memset(r, 0, sizeof(*r));
	r->out = calloc(1, 1);
	r->err = calloc(1, 1);
	cr_assert(r->out && r->err);
	cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
	r->pid = fork();
	cr_assert_neq(r->pid, -1, "fork: %s", strerror(errno));
	if (r->pid == 0)
		become(o, args, in, out, err);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	if (o->input) {
		/* Small enough for the pipe's buffer, so that this cannot block. */
		size_t len = strlen(o->input);

		cr_assert_lt(len, 65536);
		cr_assert_eq(write(in[1], o->input, len), (ssize_t)len);
	}
	close(in[1]);
	collect(r, out[0], err[0], o->kill_after_ns ? start + o->kill_after_ns : 0,
		start + LONGEST_NS);
	close(out[0]);
	close(err[0]);
	cr_assert_eq(wait4(r->pid, &status, 0, &usage), r->pid);
	r->ns = now_ns() - start;
	r->peak_kib = usage.ru_maxrss;
	r->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	cr_assert_neq(r->exit, 126, "%s cannot be started",
		      o->program ? o->program : program_path());
}

void run_free(struct run *r)
{
	free(r->out);
	free(r->err);
	r->out = r->err = NULL;
}

static void run_list(struct run *r, pid_t pid, va_list ap)
{
	char number[16];
	const char *args[RUN_ARGS + 1] = { "-p", number };
	const struct run_opts o = { 0 };
	size_t n = 2;

	snprintf(number, sizeof(number), "%d", pid);
	while ((args[n] = va_arg(ap, const char *)))
		cr_assert_lt(++n, RUN_ARGS);
	run_with(r, &o, args);
}

void run(struct run *r, pid_t pid, ...)
{
	va_list ap;

	va_start(ap, pid);
	run_list(r, pid, ap);
	va_end(ap);
}

void run_ok(pid_t pid, ...)
{
	struct run r;
	va_list ap;

	va_start(ap, pid);
	run_list(&r, pid, ap);
	va_end(ap);
	run_expect(&r, 0);
	run_free(&r);
}

void run_expect(const struct run *r, int exit)
{
	cr_assert_eq(r->exit, exit, "exit %d (signal %d), expected %d; stdout: %s stderr: %s",
		     r->exit, r->sig, exit, r->out, r->err);
	cr_assert(exit == 0 || r->err[0] || r->out[0], "exit %d without a word", exit);
}

size_t run_lines(const struct run *r)
{
	size_t n = 0;

	for (const char *p = r->out; *p; p++)
		n += *p == '\n';
	return n;
}

json_t *run_json(const struct run *r, size_t line, pid_t pid, const char *command)
{
	json_error_t error;
	const char *p = r->out, *end;
	json_t *o;

	for (; line > 0 && (p = strchr(p, '\n')); line--)
		p++;
	cr_assert(p && *p, "there is no such line in: %s (stderr: %s)", r->out, r->err);
	end = strchr(p, '\n');
	cr_assert_not_null(end, "the last line is not ended: %s", p);
	o = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, &error);
	cr_assert_not_null(o, "%s at %d: %s", error.text, error.position, p);
	cr_assert_str_eq(json_text(o, "schema"), "heapmedic/1");
	cr_assert_str_eq(json_text(o, "command"), command);
	cr_assert_eq(json_int(o, "pid"), pid);
	cr_assert_gt(strlen(json_text(o, "comm")), 0);
	cr_assert_eq(strlen(json_text(o, "time")), strlen("2026-01-31T12:00:00.123Z"));
	cr_assert(json_is_array(json_at(o, "warnings")));
	json_at(o, "result");
	cr_assert_eq(json_bool(o, "ok"), json_int(o, "exit") == 0);
	if (json_bool(o, "ok")) {
		cr_assert(json_is_null(json_at(o, "error")));
	} else {
		cr_assert_gt(strlen(json_text(o, "error.code")), 0);
		cr_assert_gt(strlen(json_text(o, "error.text")), 0);
		json_text(o, "error.hint");
	}
	return o;
}

json_t *json_at(json_t *o, const char *path)
{
	json_t *v = o;
	const char *p = path;

	while (v && *p) {
		size_t n = strcspn(p, ".");
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)n, p);
		v = json_is_array(v) ? json_array_get(v, strtoul(key, NULL, 10))
				     : json_object_get(v, key);
		p += n + (p[n] == '.');
	}
	if (!v) {
		char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);

		cr_assert_fail("no %s in %s", path, text ? text : "?");
	}
	return v;
}

long long json_int(json_t *o, const char *path)
{
	json_t *v = json_at(o, path);

	cr_assert(json_is_integer(v), "%s is not an integer", path);
	return json_integer_value(v);
}

const char *json_text(json_t *o, const char *path)
{
	json_t *v = json_at(o, path);

	cr_assert(json_is_string(v), "%s is not a string", path);
	return json_string_value(v);
}

bool json_bool(json_t *o, const char *path)
{
	json_t *v = json_at(o, path);

	cr_assert(json_is_boolean(v), "%s is not true or false", path);
	return json_is_true(v);
}

bool json_warned(json_t *o, const char *code)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "warnings"), i, row)
	{
		if (!strcmp(json_text(row, "code"), code))
			return true;
	}
	return false;
}
