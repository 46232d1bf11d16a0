// SPDX-License-Identifier: GPL-3.0-or-later
#include "victim.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS  60000
#define END_MS	  20000
#define REPORT_MS 70000 /* after 60 s the victim itself complains */

#ifdef __SANITIZE_ADDRESS__
/* A test that fails leaves its buffers behind. Leaks of heapmedic itself, another process, are
 * looked for. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
			       .tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

const char *victim_path(const char *name)
{
	static char path[PATH_MAX];
	const char *dir = getenv("VICTIMS");

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "build/victims", name);
	return path;
}

/* putenv(3) keeps the string. */
static int take_env(const char *env)
{
	const char *at = strchr(env, '@');
	char text[PATH_MAX + 64];

	snprintf(text, sizeof(text), "%.*s%s", (int)(at ? at - env : PATH_MAX), env,
		 at ? victim_path(at + 1) : "");
	return putenv(strdup(text));
}

/* In the child: never returns. The parent sees exit 126 when the program cannot be started. */
static void become(const struct victim_plan *plan, const int in[2], const int out[2],
		   const int err[2])
{
	const char *argv[sizeof(plan->argv) / sizeof(plan->argv[0]) + 1] = { 0 };
	const char *root = getenv("VICTIM_ROOT");

	for (size_t i = 0; i + 1 < sizeof(argv) / sizeof(argv[0]) && plan->argv[i]; i++) {
		argv[i] = plan->argv[i];
		if (argv[i][0] == '@')
			argv[i] = strdup(victim_path(argv[i] + 1));
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Victims of another release live in a root of their own. */
	if (root && (chroot(root) || chdir("/")))
		_exit(126);
	/* Of no use as root. Under yama's scope 1 it lets a sibling attach, and exec keeps it. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (plan->env && take_env(plan->env))
		_exit(126);
	if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	_exit(126);
}

/* The next bytes of fd, or "" after ms or at its end. */
static size_t read_some(int fd, char *buf, size_t size, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n = 0;

	buf[0] = '\0';
	if (poll(&p, 1, ms) > 0)
		n = read(fd, buf, size - 1);
	if (n < 0)
		n = 0;
	buf[n] = '\0';
	return (size_t)n;
}

/* A root of another release has the victims that need its libc and its jemalloc, and no other
 * program or library. */
static bool is_in_root(const struct victim_plan *plan)
{
	const char *root = getenv("VICTIM_ROOT");
	const char *env = plan->env ? plan->env : "";
	char path[2 * PATH_MAX];

	if (!root)
		return true;
	if (plan->argv[0][0] != '@' ||
	    (!strncmp(env, "LD_PRELOAD=", 11) && strcmp(env, "LD_PRELOAD=libjemalloc.so.2") != 0))
		return false;
	snprintf(path, sizeof(path), "%s%s", root, victim_path(plan->argv[0] + 1));
	return access(path, X_OK) == 0;
}

const char *victim_jemalloc(void)
{
	const char *version = getenv("VICTIM_JEMALLOC");

	return version ? version : "5.3.0";
}

void victim_start(struct victim *v, const struct victim_plan *plan)
{
	int in[2], out[2], err[2];
	char line[256] = "", more[256];
	size_t have = 0;

	if (!is_in_root(plan))
		cr_skip_test("the root of another release does not have it");
	cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
	v->pid = fork();
	cr_assert_neq(v->pid, -1, "fork: %s", strerror(errno));
	if (v->pid == 0)
		become(plan, in, out, err);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	v->in = in[1];
	v->out = out[0];
	v->err = err[0];
	if (plan->silent)
		return;
	while (have < 6 && read_some(v->out, line + have, sizeof(line) - have, READY_MS))
		have = strlen(line);
	read_some(v->err, more, sizeof(more), 0);
	cr_assert_str_eq(line, "ready\n", "%s did not start: \"%s\" \"%s\"", plan->argv[0], line,
			 more);
}

bool victim_can_run(const char *name)
{
	char *argv[] = { (char *)(uintptr_t)name, NULL };
	pid_t pid;
	int err = posix_spawn(&pid, victim_path(name), NULL, NULL, argv, NULL);

	/* of those that are not there victim_start says so */
	if (err == ENOENT)
		return true;
	if (err) {
		cr_assert_eq(err, ENOEXEC, "%s: %s", name, strerror(err));
		return false;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return true;
}

void victim_start_named(struct victim *v, const char *name, const char *arg1, const char *arg2)
{
	char at[64];
	struct victim_plan plan = { .argv = { at, arg1, arg2 } };

	snprintf(at, sizeof(at), "@%s", name);
	victim_start(v, &plan);
}

static void must_be_silent(struct victim *v)
{
	char said[512];

	cr_assert_eq(read_some(v->err, said, sizeof(said), 0), 0, "the victim says: %s", said);
	cr_assert_eq(read_some(v->out, said, sizeof(said), 0), 0, "on its stdout stands: %s", said);
}

/*
 * Its state. The main thread is shown as a zombie, or as dead, also for the moment in which another
 * thread takes its place by execve(2).
 */
static char living_state(struct victim *v)
{
	const uint64_t until = now_ns() + END_MS * 1000000ull;
	char c;

	while (((c = proc_state(v->pid)) == 'Z' || c == 'X') && now_ns() < until) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_PID, (id_t)v->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0)
			cr_assert_neq(si.si_pid, v->pid, "the victim has ended: code %d, status %d",
				      si.si_code, si.si_status);
		sleep_ns(1000000);
	}
	return c;
}

void victim_check(struct victim *v)
{
	char c;

	must_be_silent(v);
	c = living_state(v);
	cr_assert(c == 'R' || c == 'S' || c == 'D', "the victim's state is '%c'", c ? c : '-');
}

unsigned victim_report(struct victim *v, char *more, size_t size)
{
	char line[256] = "";
	unsigned eintr = 0;
	int at = 0;

	must_be_silent(v);
	cr_assert_eq(write(v->in, "r", 1), 1, "the victim: %s", strerror(errno));
	read_some(v->out, line, sizeof(line), REPORT_MS);
	must_be_silent(v);
	cr_assert(sscanf(line, "report eintr %u %n", &eintr, &at) == 1 && at,
		  "instead of a report the victim says: \"%s\"", line);
	if (more)
		snprintf(more, size, "%s", line + at);
	return eintr;
}

static bool reap(pid_t pid, int *status)
{
	for (uint64_t end = now_ns() + END_MS * 1000000ull; now_ns() < end; sleep_ns(2000000))
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
	return false;
}

static void close_all(struct victim *v)
{
	if (v->in >= 0)
		close(v->in);
	close(v->out);
	close(v->err);
	v->in = v->out = v->err = -1;
}

void victim_wait_exit(struct victim *v, int want)
{
	int status = 0;
	bool ended = reap(v->pid, &status);

	must_be_silent(v);
	cr_assert(ended, "the victim does not end");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == want,
		  "the victim ended with status %#x, not with exit %d", status, want);
	close_all(v);
}

void victim_stop(struct victim *v)
{
	victim_check(v);
	close(v->in);
	v->in = -1;
	victim_wait_exit(v, 0);
}

void victim_kill(struct victim *v)
{
	int status;

	kill(v->pid, SIGKILL);
	cr_assert(reap(v->pid, &status), "the victim survives SIGKILL");
	close_all(v);
}

long victim_settle(struct victim *v)
{
	long rss = -1, before;
	int same = 0;

	for (int i = 0; same < 10; i++) {
		cr_assert_lt(i, 1000, "the victim does not come to rest");
		before = rss;
		sleep_ns(20000000);
		rss = proc_number(v->pid, "smaps_rollup", "Rss:");
		same = rss == before ? same + 1 : 0;
	}
	return rss;
}

static FILE *proc_open(pid_t pid, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return fopen(path, "re");
}

/* The rest of the line that begins with key, or false. */
static bool proc_line(pid_t pid, const char *file, const char *key, char *buf, size_t size)
{
	FILE *f = proc_open(pid, file);
	bool found = false;

	while (f && !found && fgets(buf, (int)size, f))
		if (!strncmp(buf, key, strlen(key))) {
			memmove(buf, buf + strlen(key), strlen(buf + strlen(key)) + 1);
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

long proc_number(pid_t pid, const char *file, const char *key)
{
	char buf[512];

	return proc_line(pid, file, key, buf, sizeof(buf)) ? strtol(buf, NULL, 10) : -1;
}

char proc_state(pid_t pid)
{
	char buf[512];

	if (!proc_line(pid, "status", "State:", buf, sizeof(buf)))
		return '\0';
	return buf[strspn(buf, " \t")];
}

void proc_wait_state(pid_t pid, const char *letters)
{
	char c = '\0';

	for (uint64_t end = now_ns() + 10000000000u; now_ns() < end; sleep_ns(1000000)) {
		c = proc_state(pid);
		if (c && strchr(letters, c))
			return;
	}
	cr_assert_fail("process %d is in state '%c', not in one of \"%s\"", pid, c ? c : '-',
		       letters);
}

void proc_wait_name(pid_t pid, const char *name)
{
	char said[512] = "", want[64];

	snprintf(want, sizeof(want), "\t%s\n", name);
	for (uint64_t end = now_ns() + 10000000000u; now_ns() < end; sleep_ns(1000000))
		if (proc_line(pid, "status", "Name:", said, sizeof(said)) && !strcmp(said, want)) {
			proc_wait_state(pid, "S");
			return;
		}
	cr_assert_fail("process %d is%s, not %s", pid, said, name);
}

size_t proc_tids(pid_t pid, pid_t *tid, size_t max)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	cr_assert_not_null(dir, "%s: %s", path, strerror(errno));
	while (n < max && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			tid[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(dir);
	return n;
}
