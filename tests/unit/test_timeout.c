// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

#include "../../inject/clock.h"
#include "../../inject/timeout.h"

#define NOW	  (1000 * NS_PER_SEC)
#define PWAIT2_NR 441

Test(timeout, which_calls_have_one)
{
	uint64_t a[6] = { 3, 0x1000, 100, 200, 0x5000, 24 };
	unsigned which = 9;

	cr_expect_eq(timeout_form(SYS_epoll_wait, a, &which), TIMEOUT_MS);
	cr_expect_eq(which, 3);
	cr_expect_eq(timeout_form(SYS_rt_sigtimedwait, a, &which), TIMEOUT_TIMESPEC);
	cr_expect_eq(which, 2);
	cr_expect_eq(timeout_form(PWAIT2_NR, a, &which), TIMEOUT_TIMESPEC);
	cr_expect_eq(timeout_form(SYS_ppoll, a, &which), TIMEOUT_WRITTEN);
	cr_expect_eq(timeout_form(SYS_poll, a, &which), TIMEOUT_NONE, "the kernel keeps it");
	cr_expect_eq(timeout_form(SYS_recvfrom, a, &which), TIMEOUT_NONE, "the socket has it");
	a[3] = 0xffffffff;
	cr_expect_eq(timeout_form(SYS_epoll_wait, a, &which), TIMEOUT_NONE, "without end");
	a[3] = 0;
	cr_expect_eq(timeout_form(SYS_epoll_wait, a, &which), TIMEOUT_NONE, "no wait at all");
	cr_expect_eq(timeout_form(SYS_semtimedop, a, &which), TIMEOUT_NONE);
}

Test(timeout, of_a_ring)
{
	uint64_t a[6] = { 3, 0, 1, 1 | 8, 0x5000, 24 };
	unsigned which = 9;

	cr_expect_eq(timeout_form(SYS_io_uring_enter, a, &which), TIMEOUT_RING);
	cr_expect_eq(which, 4);
	a[3] = 1;
	cr_expect_eq(timeout_form(SYS_io_uring_enter, a, &which), TIMEOUT_NONE,
		     "then argument 4 is a signal mask");
	a[3] = 1 | 8 | 32;
	cr_expect_eq(timeout_form(SYS_io_uring_enter, a, &which), TIMEOUT_NONE, "absolute");
	a[3] = 1 | 8;
	a[5] = 64;
	cr_expect_eq(timeout_form(SYS_io_uring_enter, a, &which), TIMEOUT_NONE, "another layout");
}

Test(timeout, a_timespec)
{
	struct timeout_timespec ts = { 2, 5 };

	cr_expect_eq(timeout_ns(&ts), 2000000005ULL);
	ts.sec = -1;
	cr_expect_eq(timeout_ns(&ts), 0);
	ts = (struct timeout_timespec){ 0, 1000000000 };
	cr_expect_eq(timeout_ns(&ts), 0);
	ts = (struct timeout_timespec){ INT64_MAX, 1 };
	cr_expect_eq(timeout_ns(&ts), INT64_MAX);
}

Test(timeout, a_tag_keeps_the_end)
{
	for (uint64_t left = 0; left < 800 * NS_PER_SEC; left = left * 3 + 12345) {
		uint32_t ms = (uint32_t)((left + NS_PER_MS - 1) / NS_PER_MS);
		uint64_t reg = timeout_tag(ms, NOW + left, NOW), end = 0;

		cr_assert_eq((uint32_t)reg, ms, "what the kernel reads");
		cr_assert(timeout_tagged(reg, NOW, &end));
		cr_assert_geq(end, NOW + left, "never early");
		cr_assert_leq(end, NOW + left + 65536, "and hardly late");
		/* read again later, also when it is over */
		cr_assert(timeout_tagged(reg, NOW + left + NS_PER_SEC, &end));
		cr_assert_geq(end, NOW + left);
		/* written again for the same end it says the same */
		cr_assert(timeout_tagged(timeout_tag(ms, end - 1, NOW), NOW, &end));
		cr_assert_leq(end, NOW + left + 65536);
	}
}

Test(timeout, what_is_no_tag)
{
	uint64_t end, reg = timeout_tag(100, NOW + 99 * NS_PER_MS, NOW);

	cr_expect_not(timeout_tagged(100, NOW, &end));
	cr_expect_not(timeout_tagged(0xffffffff, NOW, &end));
	cr_expect_not(timeout_tagged((uint64_t)-1, NOW, &end));
	cr_expect_not(timeout_tagged(reg & ~0xffffffffULL, NOW, &end),
		      "the end is later than the call would wait");
	cr_expect_not(timeout_tagged(reg | 0x80000000, NOW, &end), "without end");
	cr_expect_not(timeout_tagged(reg, NOW + 20 * NS_PER_SEC, &end),
		      "long over: of another wait");
	cr_expect_eq(timeout_tag(1, NOW + 2000 * NS_PER_SEC, NOW), 1, "too far away");
}

Test(timeout, a_note_lies_in_the_red_zone)
{
	for (uint64_t sp = 0x7000; sp < 0x7040; sp++) {
		uint64_t at = timeout_note_addr(sp);

		cr_assert_geq(at, sp - 128);
		cr_assert_leq(at + sizeof(struct timeout_note), sp);
		cr_assert_eq(at % 8, 0);
	}
}

Test(timeout, a_note)
{
	const uint64_t ring[3] = { 0x11, 8, 0x22 };
	struct timeout_note n;

	timeout_note_fill(&n, 0x7f00, SYS_semtimedop, 0x1234, NOW, 2500 * NS_PER_MS, ring);
	cr_expect(timeout_note_valid(&n, SYS_semtimedop));
	cr_expect_not(timeout_note_valid(&n, SYS_rt_sigtimedwait));
	cr_expect_eq(n.arg, 0x1234);
	cr_expect_eq(n.left.sec, 2);
	cr_expect_eq(n.left.nsec, 500000000);
	cr_expect_eq(timeout_note_arg(0x7f00, TIMEOUT_TIMESPEC),
		     0x7f00 + offsetof(struct timeout_note, left));
	cr_expect_eq(n.ring[0], 0x11, "the signal mask stays");
	cr_expect_eq(n.ring[2], timeout_note_arg(0x7f00, TIMEOUT_TIMESPEC));
	n.end_ns++;
	cr_expect_not(timeout_note_valid(&n, SYS_semtimedop));
	memset(&n, 0, sizeof(n));
	cr_expect_not(timeout_note_valid(&n, 0));
}
