// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "../../inject/restart.h"

static arch_regs stopped_in(long nr, long result)
{
	return (arch_regs){ .orig_rax = (unsigned long long)nr,
			    .rax = (unsigned long long)result,
			    .rip = 0x1002 };
}

Test(restart, the_kernel_restarts_what_it_can)
{
	arch_regs in = stopped_in(SYS_read, -512), out;

	restart_regs(&in, 0, &out);
	cr_expect_eq(memcmp(&in, &out, sizeof(in)), 0, "a restart code goes back as it is");
}

Test(restart, an_epoll_wait_does_not_see_eintr)
{
	arch_regs in = stopped_in(SYS_epoll_wait, -EINTR), out;

	restart_regs(&in, 0, &out);
	cr_expect_eq((long)out.rax, -514, "ERESTARTNOHAND: restarts unless a handler runs");
	cr_expect_eq((long)out.orig_rax, SYS_epoll_wait);
}

Test(restart, close_and_connect_are_never_repeated)
{
	const long calls[] = { SYS_close, SYS_connect };

	for (size_t i = 0; i < 2; i++) {
		arch_regs in = stopped_in(calls[i], -EINTR), out;

		restart_regs(&in, 0, &out);
		cr_expect_eq((long)out.rax, -EINTR);
		restart_frame_regs(&in, 0, &out);
		cr_expect_eq((long)out.rax, -EINTR);
		cr_expect_eq(out.rip, 0x1002);
	}
}

Test(restart, the_frame_makes_the_call_again)
{
	arch_regs in = stopped_in(SYS_read, -512), out;

	restart_frame_regs(&in, 0, &out);
	cr_expect_eq(out.rip, 0x1000);
	cr_expect_eq(out.rax, SYS_read);
	cr_expect_eq((long)out.orig_rax, -1);
}

Test(restart, the_frame_cannot_keep_a_relative_timeout)
{
	arch_regs in = stopped_in(SYS_nanosleep, -516), out;

	restart_frame_regs(&in, 0, &out);
	cr_expect_eq((long)out.rax, -EINTR);
	cr_expect_eq(out.rip, 0x1002);
	in = stopped_in(SYS_futex, -516);
	in.rsi = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
	in.r10 = 0x5000;
	restart_frame_regs(&in, 0, &out);
	cr_expect_eq(out.rax, SYS_futex, "an absolute timeout is right again");
	in.rsi = FUTEX_WAIT;
	restart_frame_regs(&in, 0, &out);
	cr_expect_eq((long)out.rax, -EINTR, "a relative one is not");
	in = stopped_in(SYS_poll, -516);
	in.rdx = 100;
	restart_frame_regs(&in, 0, &out);
	cr_expect_eq((long)out.rax, -EINTR, "the rest of 100 ms is not known");
	in.rdx = 0xffffffff;
	restart_frame_regs(&in, 0, &out);
	cr_expect_eq(out.rax, SYS_poll, "a wait without end is the same again");
	in.rdx = 0;
	restart_frame_regs(&in, 0, &out);
	cr_expect_eq(out.rax, SYS_poll, "a look without a wait has nothing to be shortened");
}

Test(restart, a_finished_call_stays_finished)
{
	arch_regs in = stopped_in(SYS_write, 42), out;

	restart_frame_regs(&in, 0, &out);
	cr_expect_eq((long)out.rax, 42);
	cr_expect_eq(out.rip, 0x1002);
}

Test(restart, a_shortened_timeout_is_what_is_left)
{
	arch_regs in = stopped_in(SYS_epoll_wait, -EINTR), out;

	in.r10 = 100;
	restart_regs(&in, 30400000, &out);
	cr_expect_eq(out.r10, 70, "69.6 ms are left: never early");
	restart_regs(&in, 500000000, &out);
	cr_expect_eq(out.r10, 0, "it is over");
	restart_regs(&in, 0, &out);
	cr_expect_eq(out.r10, 100, "unknown: the whole time once more");
	in.r10 = 0xffffffff;
	restart_regs(&in, 30400000, &out);
	cr_expect_eq(out.r10, 0xffffffff, "a wait without end stays one");
	restart_frame_regs(&in, 30400000, &out);
	cr_expect_eq(out.rip, 0x1000);
	in = stopped_in(SYS_poll, -516);
	in.rdx = 100;
	restart_regs(&in, 30000000, &out);
	cr_expect_eq(out.rdx, 100, "the kernel knows what is left of a poll");
	restart_frame_regs(&in, 30000000, &out);
	cr_expect_eq(out.rax, SYS_poll);
	cr_expect_eq(out.rdx, 70);
}
