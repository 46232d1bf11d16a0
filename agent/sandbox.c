// SPDX-License-Identifier: GPL-3.0-or-later
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_MAX  ((rlim_t)512 << 20)
#define CPU_SECONDS 60
#define PATIENCE_MS 60000
#define END_MS	    5000
#define KEEP_MAX    8

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What malloc, libelf and libdw need; anything else is refused with EPERM. */
static const int allowed[] = {
	SYS_read,	SYS_pread64,	SYS_write,	 SYS_lseek,	    SYS_fstat,
	SYS_newfstatat, SYS_fcntl,	SYS_munmap,	 SYS_mremap,	    SYS_madvise,
	SYS_brk,	SYS_close,	SYS_futex,	 SYS_rt_sigreturn,  SYS_rt_sigprocmask,
	SYS_getrandom,	SYS_getpid,	SYS_gettid,	 SYS_clock_gettime, SYS_restart_syscall,
	SYS_exit,	SYS_exit_group, SYS_sigaltstack,
};
#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

/* mmap and mprotect, but not of code. */
static const int allowed_data[] = { SYS_mmap, SYS_mprotect };
#define ALLOWED_DATA (sizeof(allowed_data) / sizeof(allowed_data[0]))

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))

/* See seccomp(2). Jumps count the instructions that are left out. */
static int restrict_calls(void)
{
	struct sock_filter f[8 + 2 * (ALLOWED + ALLOWED_DATA) + 4];
	struct sock_fprog prog = { .filter = f };
	unsigned short n = 0;
	size_t i;

	f[n++] = (struct sock_filter)LOAD(arch);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL);
	f[n++] = (struct sock_filter)LOAD(nr);
	for (i = 0; i < ALLOWED; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (unsigned)allowed[i], 0, 1);
		f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	/* to the check of their third argument, which is behind the refusal of all others */
	for (i = 0; i < ALLOWED_DATA; i++)
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (unsigned)allowed_data[i],
						      (unsigned char)(ALLOWED_DATA - i), 0);
	f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)LOAD(args[2]);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	prog.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0))
		return -errno;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void close_between(unsigned from, unsigned to)
{
	struct rlimit r;

	if (from > to || !syscall(SYS_close_range, from, to, 0))
		return;
	/* kernels before 5.9 */
	if (!getrlimit(RLIMIT_NOFILE, &r) && to >= r.rlim_cur)
		to = r.rlim_cur > 65536 ? 65536 : (unsigned)r.rlim_cur;
	for (; from <= to; from++)
		close((int)from);
}

static void close_others(const int *keep, size_t n, int out)
{
	int v[KEEP_MAX + 1];
	unsigned from = 3;
	size_t i;

	if (n)
		memcpy(v, keep, n * sizeof(*v));
	v[n++] = out;
	qsort(v, n, sizeof(*v), by_number);
	for (i = 0; i < n; i++) {
		if (v[i] > 2 && (unsigned)v[i] > from)
			close_between(from, (unsigned)v[i] - 1);
		if (v[i] > 2)
			from = (unsigned)v[i] + 1;
	}
	close_between(from, ~0U);
}

static void limit(enum __rlimit_resource which, rlim_t to)
{
	setrlimit(which, &(struct rlimit){ to, to });
}

/* A crash says nothing on the terminal. A sanitizer's does: it is what the tests are for. */
static void quiet(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || SANITIZED)
		return;
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
}

static void first_to_die(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

static void flush(struct sandbox_out *out)
{
	size_t at = 0;

	while (at < out->used) {
		ssize_t n = write(out->fd, out->buf + at, out->used - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		at += (size_t)n;
	}
	out->used = 0;
}

void sandbox_write(struct sandbox_out *out, const void *p, size_t len)
{
	const char *s = p;

	while (len) {
		size_t n = sizeof(out->buf) - out->used;

		n = n < len ? n : len;
		memcpy(out->buf + out->used, s, n);
		out->used += n;
		s += n;
		len -= n;
		if (out->used == sizeof(out->buf))
			flush(out);
	}
}

/* The first byte: from here on it can do no harm. */
static const char restricted = 'R';

static _Noreturn void run(int (*fn)(struct sandbox_out *, void *), void *arg, const int *keep,
			  size_t n, int pipe_fd, pid_t parent)
{
	static struct sandbox_out out;
	static const int reset[] = { SIGINT,  SIGTERM, SIGHUP,	SIGQUIT, SIGPIPE,
				     SIGSEGV, SIGBUS,  SIGABRT, SIGCHLD };
	sigset_t none;
	size_t i;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (getppid() != parent)
		_exit(1);
	for (i = 0; i < sizeof(reset) / sizeof(reset[0]) && !SANITIZED; i++)
		signal(reset[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	first_to_die();
	quiet();
	close_others(keep, n, pipe_fd);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, CPU_SECONDS);
	if (!SANITIZED)
		limit(RLIMIT_DATA, MEMORY_MAX);
	if (restrict_calls())
		_exit(1);
	out.fd = pipe_fd;
	sandbox_write(&out, &restricted, 1);
	flush(&out);
	err = fn(&out, arg);
	flush(&out);
	_exit(err ? 1 : 0);
}

int sandbox_read(struct sandbox *s, void *buf, size_t len)
{
	struct pollfd p = { .fd = s->out, .events = POLLIN };
	size_t have = 0;

	while (have < len) {
		ssize_t n;
		int ready = poll(&p, 1, PATIENCE_MS);

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready == 0)
			return -EBADMSG;
		if (ready < 0)
			continue;
		n = read(s->out, (char *)buf + have, len - have);
		if (n < 0 && errno != EINTR)
			return -errno;
		s->at_end = n == 0;
		if (n == 0)
			return have ? -EBADMSG : -ENODATA;
		if (n > 0)
			have += (size_t)n;
	}
	return 0;
}

bool sandbox_end(struct sandbox *s)
{
	unsigned wait = s->at_end ? END_MS : 0;
	int status = 0;
	pid_t got;

	close(s->out);
	/* the pipe is closed a little before the process is gone */
	while (!(got = waitpid(s->pid, &status, WNOHANG)) && wait--)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (!got)
		kill(s->pid, SIGKILL);
	while (!got || (got < 0 && errno == EINTR))
		got = waitpid(s->pid, &status, 0);
	return got == s->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int sandbox_start(int (*fn)(struct sandbox_out *out, void *arg), void *arg, const int *keep,
		  size_t n, struct sandbox *s)
{
	pid_t parent = getpid();
	int fd[2], err;
	char first = 0;

	if (n > KEEP_MAX)
		return -E2BIG;
	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	s->pid = fork();
	if (s->pid == 0)
		run(fn, arg, keep, n, fd[1], parent);
	err = s->pid < 0 ? -errno : 0;
	close(fd[1]);
	s->out = fd[0];
	s->at_end = false;
	if (err) {
		close(fd[0]);
		return err;
	}
	if (!sandbox_read(s, &first, 1) && first == restricted)
		return 0;
	sandbox_end(s);
	return -EPERM;
}
