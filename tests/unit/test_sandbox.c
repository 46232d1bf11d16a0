// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../agent/sandbox.h"

static int say(struct sandbox_out *out, void *arg)
{
	const char *text = arg;

	for (size_t i = 0; i < 10000; i++)
		sandbox_write(out, text, strlen(text));
	return 0;
}

Test(sandbox, answers)
{
	struct sandbox s;
	char word[5];

	cr_assert_eq(sandbox_start(say, (void *)"hello", NULL, 0, &s), 0);
	for (size_t i = 0; i < 10000; i++) {
		cr_assert_eq(sandbox_read(&s, word, 5), 0);
		cr_assert(!memcmp(word, "hello", 5));
	}
	cr_assert_eq(sandbox_read(&s, word, 5), -ENODATA);
	cr_assert(sandbox_end(&s));
}

/* Tells what it could do that it should not: a bit for each. */
static int try(struct sandbox_out *out, void *arg)
{
	const int *fd = arg;
	char c;
	unsigned did = 0;

	did |= open("/dev/null", O_RDONLY) >= 0;
	did |= (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) * 2U;
	did |= (kill(getppid(), 0) == 0) * 4U;
	did |= (fork() >= 0) * 8U;
	did |= (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		MAP_FAILED) *
	       16U;
	did |= (fcntl(fd[1], F_GETFD) >= 0) * 32U;
	did |= (unlink("/nowhere") == 0 || errno != EPERM) * 64U;
	/* and this it can */
	did |= (pread(fd[0], &c, 1, 0) != 1) * 128U;
	did |= (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd[0], 0) == MAP_FAILED) * 256U;
	sandbox_write(out, &did, sizeof(did));
	return 0;
}

Test(sandbox, can_do_nothing_else)
{
	int fd[2] = { open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		      open("/dev/null", O_RDONLY | O_CLOEXEC) };
	struct sandbox s;
	unsigned did = ~0U;

	cr_assert(fd[0] > 2 && fd[1] > 2);
	cr_assert_eq(sandbox_start(try, fd, fd, 1, &s), 0);
	cr_assert_eq(sandbox_read(&s, &did, sizeof(did)), 0);
	cr_assert_eq(did, 0, "0x%x", did);
	cr_assert_eq(sandbox_read(&s, &did, 1), -ENODATA);
	cr_assert(sandbox_end(&s));
}

static int fall(struct sandbox_out *out, void *arg)
{
	sandbox_write(out, "half", 4);
	raise(*(int *)arg);
	/* a sanitizer may have taken it */
	_exit(1);
}

Test(sandbox, dies_alone)
{
	static int how[] = { SIGSEGV, SIGBUS, SIGABRT, SIGKILL };
	struct sandbox s;
	char text[4];

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		cr_assert_eq(sandbox_start(fall, &how[i], NULL, 0, &s), 0);
		/* what it had not yet sent is lost with it */
		cr_assert_eq(sandbox_read(&s, text, sizeof(text)), -ENODATA);
		cr_assert(!sandbox_end(&s));
	}
}

static int loop(struct sandbox_out *out, void *unused)
{
	volatile unsigned i = 0;

	(void)unused;
	sandbox_write(out, "x", 1);
	while (out->fd >= 0)
		i++;
	return 0;
}

static int fail(struct sandbox_out *out, void *unused)
{
	(void)unused;
	sandbox_write(out, "x", 1);
	return -1;
}

Test(sandbox, may_fail)
{
	struct sandbox s;
	char c[2];

	cr_assert_eq(sandbox_start(fail, NULL, NULL, 0, &s), 0);
	cr_assert_eq(sandbox_read(&s, c, 2), -EBADMSG);
	cr_assert(!sandbox_end(&s));
}

/* Whoever has heard enough ends it. */
Test(sandbox, is_ended)
{
	struct sandbox s;

	cr_assert_eq(sandbox_start(loop, NULL, NULL, 0, &s), 0);
	cr_assert(!sandbox_end(&s));
	cr_assert_eq(kill(s.pid, 0), -1);
}

#if !defined(__SANITIZE_ADDRESS__)
static int eat(struct sandbox_out *out, void *unused)
{
	size_t got = 0;
	char *p;

	(void)unused;
	while ((p = malloc((size_t)1 << 20)) && got < 4096) {
		memset(p, 1, (size_t)1 << 20);
		got++;
	}
	sandbox_write(out, &got, sizeof(got));
	return 0;
}

Test(sandbox, memory_has_an_end)
{
	struct sandbox s;
	size_t got = 0;

	cr_assert_eq(sandbox_start(eat, NULL, NULL, 0, &s), 0);
	cr_assert_eq(sandbox_read(&s, &got, sizeof(got)), 0);
	cr_assert(got > 100 && got <= 512, "%zu MiB", got);
	cr_assert_eq(sandbox_read(&s, &got, 1), -ENODATA);
	cr_assert(sandbox_end(&s));
}
#endif

/* Where it cannot be restricted, nothing is run. */
Test(sandbox, must_be_restricted)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(f) / sizeof(f[0]), .filter = f };
	struct sandbox s;

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0), 0);
	cr_assert_eq(sandbox_start(say, (void *)"hello", NULL, 0, &s), -EPERM);
}
