// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "../../inject/seccomp.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(v)   BPF_STMT(BPF_RET | BPF_K, v)

static uint32_t run_for(const struct sock_filter *f, size_t n, int nr, uint64_t arg0)
{
	struct seccomp_data data = { .nr = nr, .arch = AUDIT_ARCH_X86_64, .args = { arg0 } };
	uint32_t action = 0xdead;

	cr_assert_eq(seccomp_run(f, n, &data, &action), 0);
	return action;
}

Test(seccomp, decides_by_number_and_architecture)
{
	const struct sock_filter f[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | 1),
		RETURN(SECCOMP_RET_KILL_THREAD),
	};

	cr_expect_eq(run_for(f, 9, SYS_read, 0), SECCOMP_RET_ALLOW);
	cr_expect_eq(run_for(f, 9, SYS_memfd_create, 0), SECCOMP_RET_ERRNO | 1);
	cr_expect_eq(run_for(f, 9, 0x40000001, 0), SECCOMP_RET_KILL_THREAD);
}

Test(seccomp, computes_as_the_kernel_does)
{
	const struct sock_filter f[] = {
		LOAD(args[0]),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LD | BPF_IMM, 0xff),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_X, 0),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_filter zero[] = { LOAD(nr), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
					    RETURN(SECCOMP_RET_ALLOW) };

	cr_expect_eq(run_for(f, 9, 1, 0x1234), (0x34U << 4) + 1);
	cr_expect_eq(run_for(zero, 3, 1, 0), SECCOMP_RET_KILL_THREAD,
		     "division by 0 ends in a kill");
}

Test(seccomp, refuses_what_the_kernel_would_not_have_taken)
{
	const struct sock_filter no_end[] = { LOAD(nr) };
	const struct sock_filter far[] = { BPF_JUMP(BPF_JMP | BPF_JA, 100, 0, 0), RETURN(0) };
	const struct sock_filter outside[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RETURN(0) };
	const struct sock_filter memory[] = { BPF_STMT(BPF_LD | BPF_MEM, 16), RETURN(0) };
	const struct {
		const struct sock_filter *f;
		size_t n;
	} bad[] = { { no_end, 1 }, { far, 2 }, { outside, 2 }, { memory, 2 } };
	struct seccomp_data data = { 0 };
	uint32_t action;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_eq(seccomp_run(bad[i].f, bad[i].n, &data, &action), -EINVAL,
			     "program %zu", i);
	/* an unknown code of a known class is one too */
	cr_expect_eq(seccomp_run((const struct sock_filter[]){ BPF_STMT(BPF_JMP | 0x70, 0) }, 1,
				 &data, &action),
		     -EINVAL);
}

/* A filter that answers one call so and allows the rest. */
static enum seccomp_harm ask_for(int nr, uint32_t answer, enum hm_mode mode, bool file,
				 struct seccomp_call *c)
{
	const struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		RETURN(answer),
		RETURN(SECCOMP_RET_ALLOW),
	};

	*c = (struct seccomp_call){ 0 };
	return seccomp_ask(f, 4, mode, file, c);
}

static enum seccomp_harm ask_about(int nr, uint32_t answer, enum hm_mode mode,
				   struct seccomp_call *c)
{
	return ask_for(nr, answer, mode, false, c);
}

Test(seccomp, what_would_come_of_our_own_death)
{
	static const int killing[] = { SYS_mmap,	SYS_mprotect,	       SYS_munmap,
				       SYS_clone,	435 /* clone3 */,      SYS_memfd_create,
				       SYS_pipe2,	436 /* close_range */, SYS_futex,
				       SYS_exit,	SYS_rt_sigprocmask,    SYS_set_robust_list,
				       SYS_rseq,	SYS_madvise,	       SYS_brk,
				       SYS_rt_sigreturn };
	static const uint32_t deadly[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
					   SECCOMP_RET_TRAP, SECCOMP_RET_USER_NOTIF };
	static const int needed[] = { SYS_rt_sigreturn, SYS_exit, SYS_futex, SYS_close, SYS_rseq };
	struct seccomp_call c;

	for (size_t i = 0; i < sizeof(killing) / sizeof(*killing); i++) {
		for (size_t k = 0; k < sizeof(deadly) / sizeof(*deadly); k++) {
			cr_expect_eq(ask_about(killing[i], deadly[k], HM_MODE_PROXY, &c),
				     SECCOMP_KILLS, "call %d", killing[i]);
			cr_expect_eq(c.nr, killing[i]);
		}
		cr_expect_eq(ask_about(killing[i], SECCOMP_RET_LOG, HM_MODE_PROXY, &c),
			     SECCOMP_NO_HARM);
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		cr_expect_eq(ask_about(needed[i], SECCOMP_RET_ERRNO | 1, HM_MODE_PROXY, &c),
			     SECCOMP_FATAL_ERROR, "call %d", needed[i]);
	cr_expect_eq(ask_about(SYS_munmap, SECCOMP_RET_ERRNO | 1, HM_MODE_PROXY, &c),
		     SECCOMP_NO_HARM);
	cr_expect_eq(ask_about(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS, HM_MODE_DIRECT, &c),
		     SECCOMP_NO_HARM, "a direct call makes no memory file");
	cr_expect_eq(ask_about(SYS_execve, SECCOMP_RET_KILL_PROCESS, HM_MODE_PROXY, &c),
		     SECCOMP_NO_HARM);
}

/* What only a call that writes a file needs is asked for only then, and then in either mode. */
Test(seccomp, what_a_file_needs)
{
	static const int calls[] = { SYS_creat, SYS_openat, SYS_rt_sigtimedwait };
	static const enum hm_mode modes[] = { HM_MODE_PROXY, HM_MODE_DIRECT };
	struct seccomp_call c;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		for (size_t k = 0; k < 2; k++) {
			cr_expect_eq(ask_for(calls[i], SECCOMP_RET_KILL, modes[k], false, &c),
				     SECCOMP_NO_HARM, "call %d", calls[i]);
			cr_expect_eq(ask_for(calls[i], SECCOMP_RET_KILL, modes[k], true, &c),
				     SECCOMP_KILLS, "call %d", calls[i]);
			cr_expect_eq(c.nr, calls[i]);
			/* then there is no dump, and no harm */
			cr_expect_eq(ask_for(calls[i], SECCOMP_RET_ERRNO | 1, modes[k], true, &c),
				     SECCOMP_NO_HARM, "call %d", calls[i]);
		}
	}
	cr_expect_eq(ask_for(SYS_memfd_create, SECCOMP_RET_KILL, HM_MODE_DIRECT, true, &c),
		     SECCOMP_KILLS);
	cr_expect_eq(ask_for(SYS_write, SECCOMP_RET_KILL, HM_MODE_DIRECT, true, &c), SECCOMP_KILLS);
}

/* unshare(2) is called only where close_range(2) is refused. */
Test(seccomp, what_is_called_instead_of_another)
{
	const struct sock_filter f[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 2, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | 38),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};
	struct seccomp_call c;

	cr_expect_eq(seccomp_ask(f, 6, HM_MODE_PROXY, false, &c), SECCOMP_KILLS);
	cr_expect_eq(c.nr, SYS_unshare);
	cr_expect_eq(ask_about(SYS_unshare, SECCOMP_RET_KILL_PROCESS, HM_MODE_PROXY, &c),
		     SECCOMP_NO_HARM);
}

/* What pthread_create(3) asks of clone(2) is no namespace, and what we map is not writable too. */
Test(seccomp, looks_at_arguments)
{
	const struct sock_filter clone[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7e020000, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_filter both[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct seccomp_call c;

	cr_expect_eq(seccomp_ask(clone, 6, HM_MODE_PROXY, false, &c), SECCOMP_NO_HARM);
	cr_expect_eq(seccomp_ask(both, 7, HM_MODE_PROXY, false, &c), SECCOMP_NO_HARM);
}
