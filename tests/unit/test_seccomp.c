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
