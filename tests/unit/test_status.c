// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/status.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

Test(status, fields_of_a_container_process)
{
	struct proc_status st;
	size_t len;
	char *text = fixture_read("proc/status-container", &len);

	cr_assert_eq(status_parse(text, &st), 0);
	cr_assert_str_eq(st.name, "java");
	cr_assert_eq(st.state, 'S');
	cr_assert_eq(st.tgid, 48213);
	cr_assert_eq(st.pid, 48213);
	cr_assert_eq(st.ppid, 48190);
	cr_assert_eq(st.tracer, 977);
	cr_assert_eq(st.uid[0], 1000);
	cr_assert_eq(st.uid[2], 1001);
	cr_assert_eq(st.gid[1], 2001);
	cr_assert_eq(st.threads, 61);
	cr_assert_eq(st.sig_pending, 0x2);
	cr_assert_eq(st.shd_pending, 0x4000);
	cr_assert_eq(st.sig_blocked, 0x4);
	cr_assert_eq(st.sig_ignored, 0x1);
	cr_assert_eq(st.sig_caught, 0x2000000181005ccfULL);
	cr_assert_eq(st.cap_eff, 0xa80425fbULL);
	cr_assert_eq(st.cap_prm, 0xa80425fcULL);
	cr_assert_eq(st.seccomp, 2);
	cr_assert(st.no_new_privs);
	cr_assert(!st.kthread);
	cr_assert(st.shadow_stack);
	cr_assert_eq(st.nspid_len, 3);
	cr_assert_eq(st.nspid[0], 48213);
	cr_assert_eq(st.nspid[2], 1);
	free(text);
}

Test(status, features_without_shstk)
{
	struct proc_status st;

	cr_assert_eq(status_parse("State:\tR (running)\nTgid:\t5\nPid:\t5\n"
				  "x86_Thread_features:\twrss noshstk shstk2\n"
				  "x86_Thread_features_locked:\tshstk wrss\n",
				  &st),
		     0);
	cr_assert(!st.shadow_stack);
	cr_assert_eq(st.nspid_len, 0);
}

Test(status, name_is_decoded_then_escaped)
{
	struct proc_status st;

	cr_assert_eq(
		status_parse("Name:\ta\\nb\\\\\x1b[31m\xc3\nState:\tS\nTgid:\t5\nPid:\t6\n", &st),
		0);
	cr_assert_str_eq(st.name, "a\\nb\\\\x1b[31m\\xc3");
}

Test(status, kernel_thread)
{
	struct proc_status st;

	cr_assert_eq(status_parse("State:\tS\nTgid:\t2\nPid:\t2\nKthread:\t1\n", &st), 0);
	cr_assert(st.kthread);
}

Test(status, damaged)
{
	struct proc_status st;
	static const char *const bad[] = {
		"",
		"\n\n",
		"State:\tS\nPid:\t5\n",
		"State:\tS\nTgid:\t5\n",
		"Tgid:\t5\nPid:\t5\n",
		"State:\nTgid:\t5\nPid:\t5\n",
		"State:\tS\nTgid:\t-5\nPid:\t5\n",
		"State:\tS\nTgid:\t99999999999\nPid:\t5\n",
		"State:\tS\nTgid:\t5\nPid:\tx\n",
		"State:\tS\nTgid:\t5\nPid:\t5\nUid:\t1\t2\t3\n4\n",
		"State:\tS\nTgid:\t5\nPid:\t5\nSigBlk:\t11112222333344445\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(status_parse(bad[i], &st), -EINVAL, "case %zu", i);
}

Test(status, reads_ourselves)
{
	struct proc_status st;

	cr_assert_eq(status_read(AT_FDCWD, "/proc/self/status", &st), 0);
	cr_assert_eq(st.pid, getpid());
	cr_assert_eq(st.uid[1], geteuid());
	cr_assert_eq(status_read(AT_FDCWD, "/proc/self/no-such-file", &st), -ENOENT);
}

static const char stat_line[] = "77 (a) R (b\n) S 1 77 77 0 -1 4194304 1234 5 6 7 8 9 10 11 20 0 3 "
				"0 987654321 1000 200 18446744073709551615\n";

Test(status, stat_with_parentheses_in_comm)
{
	uint64_t start, faults;
	char state, comm[64];

	cr_assert_eq(stat_parse(stat_line, &state, &start, &faults), 0);
	cr_assert_eq(state, 'S');
	cr_assert_eq(start, 987654321);
	cr_assert_eq(faults, 1234);
	cr_assert(!stat_is_kthread(stat_line));
	cr_assert_eq(stat_comm(stat_line, comm, sizeof(comm)), 0);
	cr_assert_str_eq(comm, "a) R (b\\n");
	cr_assert(stat_is_kthread("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0\n"));
}

Test(status, stat_damaged)
{
	static const char *const bad[] = {
		"",
		"1",
		"1 (x",
		"1 (x)",
		"1 (x) ",
		"1 (x) S 1 2 3",
		"1 (x)S 1 77 77 0 -1 1 2 3 4 5 6 7 8 9 10 11 20 0 3 0 9"
	};
	uint64_t start;
	char state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(stat_parse(bad[i], &state, &start, NULL), -EINVAL, "case %zu", i);
}

Test(status, escape)
{
	char buf[16];

	escape_copy(buf, sizeof(buf), "a\tb\0c", 5);
	cr_assert_str_eq(buf, "a\\tb\\x00c");
	escape_copy(buf, 6, "ab\x01zz", 5); /* the escape does not fit: cut before it */
	cr_assert_str_eq(buf, "ab");
	escape_copy(buf, 1, "abc", 3);
	cr_assert_str_eq(buf, "");
	buf[0] = 'q';
	escape_copy(buf, 0, "abc", 3);
	cr_assert_eq(buf[0], 'q');
}

static void parse_status(const char *text, size_t len)
{
	struct proc_status st;
	uint64_t v;
	char c, comm[64];

	(void)len;
	if (status_parse(text, &st) == 0)
		cr_assert(st.nspid_len <= 16 && strlen(st.name) < sizeof(st.name));
	if (stat_parse(text, &c, &v, &v) == 0)
		cr_assert_gt(c, ' ');
	if (stat_comm(text, comm, sizeof(comm)) == 0)
		cr_assert(strlen(comm) < sizeof(comm));
	(void)stat_is_kthread(text);
}

Test(status, garbage)
{
	size_t len;
	char *text = fixture_read("proc/status-container", &len);

	fuzz_text(text, len, 20000, parse_status);
	fuzz_text(stat_line, sizeof(stat_line) - 1, 20000, parse_status);
	free(text);
}
