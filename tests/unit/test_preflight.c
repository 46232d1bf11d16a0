// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/preflight.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

static void run(pid_t pid, struct preflight *p)
{
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(preflight_run(&t, p), 0);
	target_close(&t);
}

/* Not under a tracer: what a test leaves behind must not be a trace either. */
static void expect_untouched(pid_t pid, char state)
{
	struct proc_status st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	cr_assert_eq(status_read(AT_FDCWD, path, &st), 0);
	cr_expect_eq(st.tracer, 0);
	cr_expect_eq(st.state, state);
}

Test(preflight, plain_child)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct preflight p;

	cr_assert(child_reach_call(pid, pid, SYS_pause));
	run(pid, &p);
	cr_expect(p.attachable, "%s", p.cause.text);
	cr_expect(p.injectable, "%s", p.cause.text);
	cr_expect(p.is_64bit);
	cr_expect_str_eq(p.arch, "x86_64");
	cr_expect(!p.other_pidns && !p.other_mntns && !p.other_userns);
	cr_expect_eq(p.status.pid, pid);
	expect_untouched(pid, 'S');
	child_end(pid);
}

static void expect_cause(const struct preflight *p, bool attachable, enum hm_exit code,
			 const char *word)
{
	cr_expect_eq(p->attachable, attachable, "%s", p->cause.text);
	cr_expect(!p->injectable);
	cr_expect_eq(p->cause.exit, code, "%s", p->cause.text);
	cr_expect_str_eq(p->cause.code, word, "%s", p->cause.text);
}

Test(preflight, stopped_child)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct preflight p;

	kill(pid, SIGSTOP);
	cr_assert(child_reach(pid, pid, 'T'));
	run(pid, &p);
	expect_cause(&p, true, HM_UNSAFE, "stopped");
	cr_expect_not_null(strstr(p.cause.hint, "kill -CONT"));
	expect_untouched(pid, 'T');
	child_end(pid);
}

Test(preflight, traced_child)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct preflight p;
	char number[16];
	int status;

	snprintf(number, sizeof(number), "process %d", (int)getpid());
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	run(pid, &p);
	expect_cause(&p, false, HM_NOT_PERMITTED, "not-permitted-traced");
	cr_expect_not_null(strstr(p.cause.text, number), "%s", p.cause.text);
	/* the same while it is held */
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	run(pid, &p);
	expect_cause(&p, false, HM_NOT_PERMITTED, "not-permitted-traced");
	child_end(pid);
}

Test(preflight, child_that_ends_meanwhile)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct preflight p;
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	kill(pid, SIGKILL);
	cr_assert(child_reach(pid, pid, 'Z'));
	cr_assert_eq(preflight_run(&t, &p), 0);
	expect_cause(&p, false, HM_GONE, "gone");
	child_end(pid);
	cr_assert_eq(preflight_run(&t, &p), 0);
	expect_cause(&p, false, HM_GONE, "gone");
	target_close(&t);
}

/* An i386 program of two instructions' worth: pause() by int 0x80, for ever. */
static const unsigned char i386_program[] = {
	0x7f, 'E',  'L',  'F',	1,    1,    1,	  0,	0, 0, 0, 0,
	0,    0,    0,	  0,					    /* e_ident: 32 bits */
	2,    0,    3,	  0,	1,    0,    0,	  0,		    /* ET_EXEC, EM_386 */
	0x54, 0x80, 0x04, 0x08,					    /* e_entry */
	52,   0,    0,	  0,	0,    0,    0,	  0,	0, 0, 0, 0, /* e_phoff, e_shoff, e_flags */
	52,   0,    32,	  0,	1,    0,    0,	  0,	0, 0, 0, 0, /* one program header */
	1,    0,    0,	  0,	0,    0,    0,	  0,		    /* PT_LOAD, offset 0 */
	0,    0x80, 0x04, 0x08, 0,    0x80, 0x04, 0x08,		    /* vaddr, paddr */
	0x5d, 0,    0,	  0,	0x5d, 0,    0,	  0,	5, 0, 0, 0,
	0,    0x10, 0,	  0,	   /* sizes, r-x, align */
	0xb8, 29,   0,	  0,	0, /* mov $29, %eax */
	0xcd, 0x80,		   /* int $0x80 */
	0xeb, 0xf7,		   /* jmp to the start */
};

static void exec_path(void *path)
{
	char *argv[] = { path, NULL };

	execv(path, argv);
}

Test(preflight, a_32_bit_child)
{
	char path[] = "/tmp/i386_XXXXXX";
	int fd = mkstemp(path);
	struct preflight p;
	bool running;
	pid_t pid;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, i386_program, sizeof(i386_program)), sizeof(i386_program));
	cr_assert_eq(fchmod(fd, 0700), 0);
	close(fd);
	pid = child_start(exec_path, path);
	running = child_reach_call(pid, pid, 29 /* pause for i386 */);
	unlink(path);
	if (!running) {
		child_end(pid);
		cr_skip_test("this kernel runs no 32-bit programs");
	}
	run(pid, &p);
	expect_cause(&p, true, HM_UNSUPPORTED, "architecture");
	cr_expect(!p.is_64bit);
	cr_expect_str_eq(p.arch, "i386");
	expect_untouched(pid, 'S');
	child_end(pid);
}

static void allow_all(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { 1, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		_exit(1);
}

static void with_filter(void *unused)
{
	(void)unused;
	allow_all();
	child_sleep(NULL);
}

Test(preflight, a_child_with_a_seccomp_filter)
{
	pid_t pid = child_start(with_filter, NULL);
	struct preflight p;
	struct proc_status me;
	bool may;

	cr_assert(child_reach_call(pid, pid, SYS_pause));
	cr_assert_eq(status_read(AT_FDCWD, "/proc/self/status", &me), 0);
	may = (me.cap_eff >> 21 & 1) && me.seccomp == 0; /* CAP_SYS_ADMIN */
	run(pid, &p);
	cr_expect_eq(p.status.seccomp, 2);
	if (may)
		cr_expect(p.injectable, "suspends the filter: %s", p.cause.text);
	else
		expect_cause(&p, true, HM_NOT_PERMITTED, "not-permitted-seccomp");
	/* under a filter of our own it is not allowed in any case */
	allow_all();
	run(pid, &p);
	expect_cause(&p, true, HM_NOT_PERMITTED, "not-permitted-seccomp");
	cr_expect_not_null(strstr(p.cause.text, "itself"), "%s", p.cause.text);
	child_end(pid);
}

static void forbid_ptrace(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		_exit(1);
}

/* Somebody else asks: a child, so that the test itself stays able to end what it has started. */
struct question {
	pid_t pid;
	void (*become)(void); /* what is done before asking */
	struct preflight answer;
	uint32_t done;
};

static void ask_as_another(void *arg)
{
	struct question *q = arg;
	struct target t;
	struct diag d;

	q->become();
	if (target_open(q->pid, &t, &d) || preflight_run(&t, &q->answer))
		_exit(1);
	__atomic_store_n(&q->done, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

static void expect_answer(pid_t pid, void (*become)(void), const char *word, const char *part)
{
	struct question *q = child_shared(sizeof(*q));
	pid_t asker;

	q->pid = pid;
	q->become = become;
	asker = child_start(ask_as_another, q);
	cr_assert(child_reach_value(&q->done, 1));
	expect_cause(&q->answer, false, HM_NOT_PERMITTED, word);
	cr_expect_not_null(strstr(q->answer.cause.text, part), "%s", q->answer.cause.text);
	child_end(asker);
}

Test(preflight, ptrace_is_forbidden_to_us)
{
	pid_t pid = child_start(child_sleep, NULL);

	cr_assert(child_reach_call(pid, pid, SYS_pause));
	expect_answer(pid, forbid_ptrace, "not-permitted-seccomp-self", "heapmedic itself");
	child_end(pid);
}

static void become_user(void)
{
	if (setresgid(4242, 4242, 4242) || setresuid(4242, 4242, 4242))
		_exit(1);
}

Test(preflight, of_another_user)
{
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	pid = child_start(child_sleep, NULL);
	cr_assert(child_reach_call(pid, pid, SYS_pause));
	expect_answer(pid, become_user, "not-permitted-other-user", "4242");
	child_end(pid);
}

static void undumpable(void *unused)
{
	(void)unused;
	become_user();
	prctl(PR_SET_DUMPABLE, 0);
	child_sleep(NULL);
}

Test(preflight, a_process_that_is_not_dumpable)
{
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	pid = child_start(undumpable, NULL);
	cr_assert(child_reach_call(pid, pid, SYS_pause));
	expect_answer(pid, become_user, "not-permitted-not-dumpable", "not dumpable");
	child_end(pid);
}

static void other_pid_namespace(void *outer)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_sleep(NULL);
	}
	__atomic_store_n((uint32_t *)outer, (uint32_t)pid, __ATOMIC_SEQ_CST);
	waitpid(pid, NULL, 0);
}

Test(preflight, another_pid_namespace)
{
	uint32_t *inner = child_shared(sizeof(*inner));
	pid_t pid;
	struct preflight p;

	if (geteuid() != 0)
		cr_skip_test("needs root to make a pid namespace");
	pid = child_start(other_pid_namespace, inner);
	if (!child_reach_value(inner, 1))
		cr_skip_test("a pid namespace cannot be made here");
	cr_assert(child_reach_call((pid_t)*inner, (pid_t)*inner, SYS_pause));
	run((pid_t)*inner, &p);
	cr_expect(p.injectable, "%s", p.cause.text);
	cr_expect(p.other_pidns);
	cr_expect(!p.other_userns);
	cr_expect_eq(p.status.nspid_len, 2);
	cr_expect_eq(p.status.nspid[1], 1);
	child_end(pid);
}

/* ---- with modules */

Test(preflight, modules_of_an_unreadable_program)
{
	struct module mod = { .path = (char *)(uintptr_t) "/opt/x\n",
			      .is_main = true,
			      .elf_error = -EACCES };
	struct modules mods = { .v = &mod, .n = 1 };
	struct preflight p = { .attachable = true, .injectable = true };

	preflight_modules(&p, &mods);
	expect_cause(&p, true, HM_UNSUPPORTED, "no-symbols");
	cr_expect_not_null(strstr(p.cause.text, "/opt/x\\n"), "%s", p.cause.text);
	/* a cause that is known already stays */
	diag_fail(&p.cause, -EPERM, HM_UNSAFE, "stopped", NULL, "x");
	preflight_modules(&p, &mods);
	cr_expect_str_eq(p.cause.code, "stopped");
}

Test(preflight, modules_with_an_unreadable_libc)
{
	struct module v[] = {
		{ .path = (char *)(uintptr_t) "/opt/x", .is_main = true, .elf_error = -ENOENT },
		{ .path = (char *)(uintptr_t) "/lib/libc.so.6", .elf_error = -EACCES },
	};
	struct modules mods = { .v = v, .n = 2 };
	struct preflight p = { .attachable = true, .injectable = true };

	preflight_modules(&p, &mods);
	expect_cause(&p, true, HM_UNSUPPORTED, "no-symbols");
	cr_expect_not_null(strstr(p.cause.text, "libc.so.6"), "%s", p.cause.text);
}
