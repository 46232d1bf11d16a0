// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../inject/sigframe.h"

#define TOP 0x7f0000010000ULL

static struct xsave_facts facts;
static unsigned char xstate[12288];
static struct sigframe frame;

static void setup(void)
{
	cr_assert_eq(xsave_facts_read(&facts), 0, "this kernel writes no XSAVE signal frames");
	for (size_t i = 0; i < sizeof(xstate); i++)
		xstate[i] = (unsigned char)(i * 7);
	memset(xstate + 512, 0, 64); /* XSAVE header: no AMX in use */
}

static uint64_t word(size_t at)
{
	uint64_t v;

	memcpy(&v, frame.bytes + at, sizeof(v));
	return v;
}

Test(sigframe, layout_is_the_kernels, .init = setup)
{
	arch_regs r = {
		.rip = 0x1111, .rsp = 0x2222, .rax = 0x3333, .eflags = 0x246, .cs = 0x33, .ss = 0x2b
	};
	uint64_t fp;

	cr_assert_eq(
		sigframe_build(&frame, TOP, &r, xstate, facts.xstate_size, 0x55aa, 0xabcd, &facts),
		0);
	cr_expect_eq((frame.sp + 8) % 16, 0, "a function must find its stack aligned");
	cr_expect_leq(frame.addr + frame.len, TOP);
	cr_expect_eq(word(0), 0xabcd, "the return address is the trampoline");
	cr_expect_eq(word(8), 7, "uc_flags: FP_XSTATE, SIGCONTEXT_SS, STRICT_RESTORE_SS");
	/* struct sigcontext begins at 48: r8 to r15, then di si bp bx dx ax cx sp ip flags */
	cr_expect_eq(word(48 + 13 * 8), 0x3333);
	cr_expect_eq(word(48 + 15 * 8), 0x2222);
	cr_expect_eq(word(48 + 16 * 8), 0x1111);
	cr_expect_eq(word(48 + 17 * 8), 0x246);
	cr_expect_eq(word(48 + 18 * 8), 0x33ULL | 0x2bULL << 48);
	fp = word(48 + 23 * 8);
	cr_expect_eq(fp % 64, 0, "XRSTOR needs 64-byte alignment");
	cr_expect_eq(word(48 + 256), 0x55aa, "signal mask");
	cr_expect_eq((uint32_t)word((size_t)(fp - frame.addr) + 464), 0x46505853U);
	cr_expect_eq((uint32_t)word((size_t)(fp - frame.addr) + 464 + 16), facts.xstate_size);
	cr_expect_eq(memcmp(frame.bytes + (fp - frame.addr), xstate, 464), 0);
}

Test(sigframe, amx_in_use_takes_the_whole_regset, .init = setup)
{
	arch_regs r = { 0 };
	uint64_t fp;

	xstate[512 + 2] = 0x6; /* XSTATE_BV bits 17 and 18 */
	cr_assert_eq(sigframe_build(&frame, TOP, &r, xstate, 11008, 0, 1, &facts), 0);
	fp = word(48 + 23 * 8);
	cr_expect_eq((uint32_t)word((size_t)(fp - frame.addr) + 464 + 16), 11008);
	cr_expect_neq(word((size_t)(fp - frame.addr) + 464 + 8) & 0x60000, 0);
}

Test(sigframe, refuses_what_does_not_fit, .init = setup)
{
	arch_regs r = { 0 };

	cr_expect_eq(sigframe_build(&frame, TOP, &r, xstate, 100, 0, 1, &facts), -EINVAL);
	facts.xstate_size = 60000;
	cr_expect_eq(sigframe_build(&frame, TOP, &r, xstate, sizeof(xstate), 0, 1, &facts), -E2BIG);
}
