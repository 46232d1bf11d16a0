// SPDX-License-Identifier: GPL-3.0-or-later
#include "victim.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS 60000
#define END_MS	 20000

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
	if (plan->env && putenv(strdup(plan->env)))
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

void victim_start(struct victim *v, const struct victim_plan *plan)
{
	int in[2], out[2], err[2];
	char line[256] = "", more[256];
	size_t have = 0;

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

void victim_check(struct victim *v)
{
	char c;

	must_be_silent(v);
	c = proc_state(v->pid);
	cr_assert(c == 'R' || c == 'S' || c == 'D', "the victim's state is '%c'", c ? c : '-');
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

static uint64_t proc_mask(pid_t pid, const char *file, const char *key)
{
	char buf[512];

	return proc_line(pid, file, key, buf, sizeof(buf)) ? strtoull(buf, NULL, 16) : 0;
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

static size_t count_fds(pid_t pid)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert_not_null(dir, "%s: %s", path, strerror(errno));
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Executable memory without a file. ours counts what carries our name. */
static size_t count_code(pid_t pid, size_t *ours)
{
	FILE *f = proc_open(pid, "maps");
	char line[PATH_MAX + 128];
	size_t n = 0;

	cr_assert_not_null(f, "the maps of %d: %s", pid, strerror(errno));
	*ours = 0;
	while (fgets(line, sizeof(line), f)) {
		char perm[5] = "";
		unsigned long inode = 0;

		sscanf(line, "%*s %4s %*s %*s %lu", perm, &inode);
		n += perm[2] == 'x' && inode == 0 && !strchr(line, '[');
		/* A victim's own files may lie in a directory of that name. */
		*ours += inode == 0 && strstr(line, "heapmedic") != NULL;
		*ours += strstr(line, "memfd:heapmedic") != NULL;
	}
	fclose(f);
	return n;
}

static unsigned long blocked_now(const struct victim *v, pid_t tid)
{
	char file[64];

	snprintf(file, sizeof(file), "task/%d/status", tid);
	return proc_mask(v->pid, file, "SigBlk:");
}

void state_take(const struct victim *v, struct state *s)
{
	pid_t tid[STATE_MAX];
	size_t ours;

	memset(s, 0, sizeof(*s));
	s->threads = proc_tids(v->pid, tid, STATE_MAX);
	for (size_t i = 0; i < s->threads; i++) {
		s->thread[i].tid = tid[i];
		s->thread[i].blocked = blocked_now(v, tid[i]);
	}
	s->ignored = proc_mask(v->pid, "status", "SigIgn:");
	s->caught = proc_mask(v->pid, "status", "SigCgt:");
	s->fds = count_fds(v->pid);
	/* A victim's own, short-lived ones must not get into what others are compared with. */
	for (int i = 0; i < 4; i++) {
		size_t n;

		sleep_ns(1000000);
		n = count_fds(v->pid);
		s->fds = n < s->fds ? n : s->fds;
		/* nor what a thread blocks only while its handler runs */
		for (size_t k = 0; k < s->threads; k++)
			s->thread[k].blocked &= blocked_now(v, tid[k]);
	}
	s->code_regions = count_code(v->pid, &ours);
}

static void same_threads(const struct state *a, const struct state *b, bool masks)
{
	cr_assert_eq(a->threads, b->threads, "it had %zu threads, now %zu", a->threads, b->threads);
	for (size_t i = 0; i < a->threads; i++) {
		cr_assert_eq(a->thread[i].tid, b->thread[i].tid, "thread %d has become %d",
			     a->thread[i].tid, b->thread[i].tid);
		cr_assert(!masks || a->thread[i].blocked == b->thread[i].blocked,
			  "thread %d blocked signals %#lx, now %#lx", a->thread[i].tid,
			  a->thread[i].blocked, b->thread[i].blocked);
	}
}

static void nobody_traces(pid_t pid)
{
	pid_t tid[STATE_MAX];
	size_t n = proc_tids(pid, tid, STATE_MAX);

	for (size_t i = 0; i < n; i++) {
		char file[64];
		long tracer;

		snprintf(file, sizeof(file), "task/%d/status", tid[i]);
		tracer = proc_number(pid, file, "TracerPid:");
		/* -1: the thread has ended since. */
		cr_assert(tracer <= 0, "thread %d is traced by %ld", tid[i], tracer);
	}
}

void state_same(const struct victim *v, const struct state *before, enum state_freedom freedom)
{
	static struct state now;
	size_t ours;

	nobody_traces(v->pid);
	count_code(v->pid, &ours);
	cr_assert_eq(ours, 0, "%zu regions with our name are left", ours);
	state_take(v, &now);
	if (!(freedom & STATE_THREADS_VARY)) {
		same_threads(before, &now, !(freedom & STATE_MASKS_VARY));
		cr_assert_eq(before->code_regions, now.code_regions,
			     "it had %zu regions of anonymous code, now %zu", before->code_regions,
			     now.code_regions);
	}
	cr_assert_eq(before->ignored, now.ignored, "ignored signals have changed");
	cr_assert_eq(before->caught, now.caught, "caught signals have changed");
	for (int i = 0; now.fds != before->fds && i < 400; i++) {
		sleep_ns(5000000);
		now.fds = count_fds(v->pid);
	}
	cr_assert_eq(before->fds, now.fds, "it had %zu descriptors, now %zu", before->fds, now.fds);
}

/* A proxy that nobody has opened leaves by itself after some seconds. */
void state_await_threads(const struct victim *v, size_t n)
{
	pid_t tid[STATE_MAX];
	size_t now = 0;

	for (int i = 0; i < 500; i++) {
		now = proc_tids(v->pid, tid, STATE_MAX);
		if (now == n)
			return;
		sleep_ns(10000000);
	}
	cr_assert_fail("5 s after the last kill there are %zu threads, not %zu", now, n);
}
