// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/mem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/target.h"
#include "child.h"

#define PAGE ((size_t)4096)

/* Four pages at the same address in the child: two with a pattern, a hole, a read-only one. */
struct scene {
	pid_t pid;
	uint64_t at;
	struct target t;
};

static void setup_scene(struct scene *s)
{
	struct diag d;
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	for (size_t i = 0; i < 2 * PAGE; i++)
		p[i] = (char)(i * 7 + i / PAGE);
	memset(p + 3 * PAGE, 'r', PAGE);
	munmap(p + 2 * PAGE, PAGE);
	mprotect(p + 3 * PAGE, PAGE, PROT_READ);
	s->at = (uint64_t)(uintptr_t)p;
	s->pid = child_start(child_sleep, NULL);
	munmap(p, 2 * PAGE);
	munmap(p + 3 * PAGE, PAGE);
	cr_assert_eq(target_open(s->pid, &s->t, &d), 0, "%s", d.text);
}

static void end_scene(struct scene *s)
{
	child_end(s->pid);
	target_close(&s->t);
}

static void check_reads(const struct scene *s)
{
	char buf[4 * PAGE];

	cr_assert_eq(mem_read(s->pid, s->at + 5, buf, PAGE), 0);
	for (size_t i = 0; i < PAGE; i++)
		cr_assert_eq(buf[i], (char)((i + 5) * 7 + (i + 5) / PAGE));
	cr_assert_eq(mem_read(s->pid, s->at, buf, 2 * PAGE), 0);
	cr_assert_eq(mem_read(s->pid, s->at, buf, 2 * PAGE + 1), -EFAULT);
	cr_assert_eq(mem_read(s->pid, s->at + 2 * PAGE, buf, 1), -EFAULT);
	cr_assert_eq(mem_read(s->pid, s->at, buf, 0), 0);
	cr_assert_eq(mem_read_some(s->pid, s->at + 10, buf, sizeof(buf)), 2 * PAGE - 10);
	cr_assert_eq(mem_read_some(s->pid, s->at + 2 * PAGE, buf, 100), 0);
	cr_assert_eq(mem_read_some(s->pid, s->at + 3 * PAGE, buf, 100), 100);
	cr_assert_eq(buf[99], 'r');
}

Test(mem, reads_up_to_a_hole)
{
	struct scene s;

	setup_scene(&s);
	check_reads(&s);
	end_scene(&s);
}

Test(mem, wild_addresses)
{
	static const uint64_t wild[] = {
		0,	   1, 0x7fffffffffffULL, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 7,
		UINT64_MAX
	};
	struct scene s;
	char buf[64];

	setup_scene(&s);
	for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		cr_expect_eq(mem_read(s.pid, wild[i], buf, sizeof(buf)), -EFAULT, "%zu", i);
		cr_expect_eq(mem_write(s.pid, wild[i], buf, sizeof(buf)), -EFAULT, "%zu", i);
		cr_expect_eq(mem_read_some(s.pid, wild[i], buf, sizeof(buf)), 0, "%zu", i);
		cr_expect_eq(mem_read_str(s.pid, wild[i], buf, sizeof(buf)), -EFAULT, "%zu", i);
	}
	end_scene(&s);
}

Test(mem, writes)
{
	struct scene s;
	char buf[8];

	setup_scene(&s);
	cr_assert_eq(mem_write(s.pid, s.at + PAGE - 4, "12345678", 8), 0);
	cr_assert_eq(mem_read(s.pid, s.at + PAGE - 4, buf, 8), 0);
	cr_assert_eq(memcmp(buf, "12345678", 8), 0);
	cr_assert_eq(mem_write(s.pid, s.at + 2 * PAGE - 4, "12345678", 8), -EFAULT);
	cr_assert_eq(mem_write(s.pid, s.at + 3 * PAGE, "x", 1), -EFAULT, "a read-only page");
	end_scene(&s);
}

Test(mem, strings)
{
	struct scene s;
	char buf[32];

	setup_scene(&s);
	/* across a page, and right before the hole */
	cr_assert_eq(mem_write(s.pid, s.at + PAGE - 3, "hello", 6), 0);
	cr_assert_eq(mem_read_str(s.pid, s.at + PAGE - 3, buf, sizeof(buf)), 0);
	cr_assert_str_eq(buf, "hello");
	cr_assert_eq(mem_write(s.pid, s.at + 2 * PAGE - 4, "end", 4), 0);
	cr_assert_eq(mem_read_str(s.pid, s.at + 2 * PAGE - 4, buf, sizeof(buf)), 0);
	cr_assert_str_eq(buf, "end");
	cr_assert_eq(mem_read_str(s.pid, s.at + PAGE - 3, buf, 6), 0);
	cr_assert_eq(mem_read_str(s.pid, s.at + PAGE - 3, buf, 5), -ENAMETOOLONG);
	cr_assert_str_eq(buf, "hell");
	cr_assert_eq(mem_read_str(s.pid, s.at + 3 * PAGE, buf, sizeof(buf)), -ENAMETOOLONG);
	cr_assert_eq(mem_write(s.pid, s.at + 2 * PAGE - 4, "endX", 4), 0);
	cr_assert_eq(mem_read_str(s.pid, s.at + 2 * PAGE - 4, buf, sizeof(buf)), -EFAULT);
	end_scene(&s);
}

Test(mem, a_process_that_is_gone)
{
	struct scene s;
	char buf[8];

	setup_scene(&s);
	child_end(s.pid);
	cr_assert_eq(mem_read(s.pid, s.at, buf, 8), -ESRCH);
	cr_assert_eq(mem_write(s.pid, s.at, buf, 8), -ESRCH);
	cr_assert_eq(mem_read_some(s.pid, s.at, buf, 8), -ESRCH);
	target_close(&s.t);
}

/* From here on the two calls answer err, as a container's profile makes them. */
static void forbid_vm_calls(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)err & 0xffffU)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
	cr_assert_eq(process_vm_readv(getpid(), NULL, 0, NULL, 0, 0), -1);
	cr_assert_eq(errno, err);
}

static void check_fallback(int err)
{
	struct scene s;
	char buf[8];

	setup_scene(&s);
	forbid_vm_calls(err);
	check_reads(&s);
	cr_assert_eq(mem_write(s.pid, s.at + PAGE - 4, "12345678", 8), 0);
	cr_assert_eq(mem_read(s.pid, s.at + PAGE - 4, buf, 8), 0);
	cr_assert_eq(memcmp(buf, "12345678", 8), 0);
	cr_assert_eq(mem_read(s.pid, UINT64_MAX - 7, buf, 8), -EFAULT);
	child_end(s.pid);
	cr_assert_eq(mem_read(s.pid, s.at, buf, 8), -ESRCH);
	target_close(&s.t);
}

Test(mem, falls_back_where_the_calls_are_refused)
{
	check_fallback(EPERM);
}

Test(mem, falls_back_where_the_calls_are_missing)
{
	check_fallback(ENOSYS);
}

Test(mem, force_writes_on_a_read_only_page)
{
	struct scene s;
	char buf[4];
	int fd, status;

	setup_scene(&s);
	fd = mem_open_force(s.t.procfd);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ptrace(PTRACE_SEIZE, s.pid, NULL, NULL), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, s.pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(s.pid, &status, 0), s.pid);
	cr_assert_eq(mem_write_force(fd, s.at + 3 * PAGE + 1, "abc", 3), 0);
	cr_assert_eq(mem_read(s.pid, s.at + 3 * PAGE, buf, 4), 0);
	cr_assert_eq(memcmp(buf, "rabc", 4), 0);
	cr_assert_eq(mem_write_force(fd, s.at + 2 * PAGE, "abc", 3), -EFAULT);
	cr_assert_eq(mem_write_force(fd, s.at + 2 * PAGE - 1, "abc", 3), -EFAULT);
	cr_assert_eq(mem_write_force(fd, UINT64_MAX - 1, "abc", 3), -EFAULT);
	cr_assert_eq(mem_write_force(fd, 0, "", 0), 0);
	close(fd);
	end_scene(&s);
}
