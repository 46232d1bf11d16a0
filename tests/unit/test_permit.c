// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/permit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"

#define PTRACE_CAP ((uint64_t)1 << CAP_SYS_PTRACE)

/* A user who looks at a process of the same user: nothing stands in the way. */
static struct permit same_user(void)
{
	struct permit p = { .pid = 77,
			    .comm = "victim",
			    .uid = 1000,
			    .gid = 100,
			    .initial_userns = true,
			    .t_uid = { 1000, 1000, 1000 },
			    .t_gid = { 100, 100, 100 },
			    .userns_known = true,
			    .same_userns = true,
			    .yama = -1,
			    .security = "capability,apparmor" };

	return p;
}

static void expect(const struct permit *p, const char *code, const char *part)
{
	struct diag d;

	permit_cause(p, &d);
	cr_expect_eq(d.exit, HM_NOT_PERMITTED);
	cr_expect_str_eq(d.code, code, "%s instead of %s: %s", d.code, code, d.text);
	cr_expect_not_null(strstr(d.text, part), "\"%s\" lacks \"%s\"", d.text, part);
	cr_expect_gt(strlen(d.hint), 0);
}

Test(permit, without_the_capability)
{
	struct permit p = same_user();

	expect(&p, "security-module", "apparmor");
	p.yama = 1;
	expect(&p, "yama", "ptrace_scope is 1");
	p.yama = 2;
	expect(&p, "yama", "only CAP_SYS_PTRACE");
	p.yama = 0;
	p.same_userns = false;
	expect(&p, "userns", "user namespace");
	p.t_cap_prm = 0x400;
	expect(&p, "capabilities", "0x400");
	p.cap_eff = 0x400; /* we have it too: not the cause */
	expect(&p, "userns", "user namespace");
	p.t_undumpable = true;
	expect(&p, "not-dumpable", "dumpable");
	p.t_gid[2] = 7;
	expect(&p, "other-group", "100 100 7");
	p.t_uid[1] = 0;
	expect(&p, "other-user", "1000 0 1000");
	p.ptrace_filtered = true;
	p.seccomp = 2;
	expect(&p, "seccomp-self", "mode is 2");
}

Test(permit, with_the_capability)
{
	struct permit p = same_user();

	p.cap_eff = PTRACE_CAP;
	p.t_uid[0] = 0; /* users do not matter then */
	expect(&p, "security-module", "apparmor");
	p.security[0] = '\0';
	expect(&p, "security-module", "unknown");
	p.yama = 3;
	expect(&p, "yama", "nobody");
	p.yama = 2; /* is no hindrance with the capability */
	p.initial_userns = false;
	p.same_userns = false;
	expect(&p, "userns", "another user namespace");
	p.userns_known = false;
	expect(&p, "userns", "we are in a user namespace");
}

Test(permit, suspending_a_filter)
{
	struct permit p = same_user();

	cr_expect(!permit_suspend_seccomp(&p));
	p.cap_eff = (uint64_t)1 << CAP_SYS_ADMIN;
	cr_expect(permit_suspend_seccomp(&p));
	p.seccomp = 2;
	cr_expect(!permit_suspend_seccomp(&p));
	p.seccomp = 0;
	p.initial_userns = false;
	cr_expect(!permit_suspend_seccomp(&p));
}

static void child_as_user(void *unused)
{
	(void)unused;
	if (setresgid(4242, 4242, 4242) || setresuid(4242, 4242, 4242))
		_exit(1);
	child_sleep(NULL);
}

Test(permit, facts_of_a_child_that_changed_its_user)
{
	struct permit p;
	struct target t;
	struct diag d;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip_test("needs root to run a child as another user");
	pid = child_start(child_as_user, NULL);
	cr_assert(child_reach_call(pid, pid, SYS_pause));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(permit_read(&t, &p), 0);
	cr_expect_eq(p.t_uid[2], 4242);
	cr_expect_eq(p.t_gid[0], 4242);
	cr_expect_eq(p.t_cap_prm, 0);
	cr_expect(p.t_undumpable, "setuid takes the dumpable flag away");
	cr_expect(p.userns_known && p.same_userns);
	cr_expect(!p.ptrace_filtered);
	cr_expect_eq(p.uid, getuid());
	target_close(&t);
	child_end(pid);
}

Test(permit, gone)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct target t;
	struct diag d;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	child_end(pid);
	cr_assert_eq(permit_explain(&t, &d), -ESRCH);
	cr_assert_eq(d.exit, HM_GONE);
	target_close(&t);
}
