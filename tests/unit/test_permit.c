// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/permit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../inject/cause.h"
#include "child.h"

#define PTRACE_CAP ((uint64_t)1 << CAP_SYS_PTRACE)

/* A user who looks at a process of the same user: nothing stands in the way. */
static struct permit same_user(void)
{
	struct permit p = { .pid = 77,
			    .comm = "victim",
			    .uid = 1000,
			    .gid = 100,
			    .cap_bnd = ~(uint64_t)0,
			    .initial_userns = true,
			    .userns = 4026531837,
			    .t_uid = { 1000, 1000, 1000 },
			    .t_gid = { 100, 100, 100 },
			    .place = USERNS_SAME,
			    .t_userns = 4026531837,
			    .yama = -1,
			    .security = "capability,apparmor" };

	return p;
}

static void expect(const struct permit *p, enum cause cause, const char *part)
{
	struct diag d;

	permit_cause(p, &d);
	cr_expect_eq(d.exit, HM_NOT_PERMITTED);
	cr_expect_str_eq(d.code, cause_row(cause)->code, "%s: %s", d.code, d.text);
	cr_expect_not_null(strstr(d.text, part), "\"%s\" lacks \"%s\"", d.text, part);
	cr_expect_str_eq(d.hint, cause_row(cause)->remedy);
}

/* ptrace(2) would let us, the mode of the files does not. */
Test(permit, files_of_another_user)
{
	struct permit p = same_user();

	p.uid = 0;
	p.cap_eff = PTRACE_CAP;
	expect(&p, CAUSE_LSM, "apparmor");
	p.closed = true;
	expect(&p, CAUSE_FILES, "runs as uid 1000, and uid 0 without CAP_DAC_OVERRIDE");
	/* where that is in the way, it comes first */
	p.cap_eff = 0;
	expect(&p, CAUSE_OTHER_USER, "uid 0");
}

Test(permit, without_the_capability)
{
	struct permit p = same_user();

	expect(&p, CAUSE_LSM, "apparmor");
	snprintf(p.t_label, sizeof(p.t_label), "docker-default (enforce)");
	expect(&p, CAUSE_LSM, "its label: docker-default (enforce)");
	p.yama = 1;
	expect(&p, CAUSE_YAMA, "ptrace_scope is 1");
	p.yama = 2;
	expect(&p, CAUSE_YAMA, "only CAP_SYS_PTRACE");
	p.yama = 3;
	expect(&p, CAUSE_YAMA_3, "nobody");
	p.yama = 0;
	expect(&p, CAUSE_LSM, "apparmor");
	p.t_cap_prm = 0x400;
	expect(&p, CAUSE_CAPABILITIES, "0x400: CAP_NET_BIND_SERVICE");
	p.cap_eff = 0x400; /* what counts for attaching are the permitted ones */
	expect(&p, CAUSE_CAPABILITIES, "0x400: CAP_NET_BIND_SERVICE");
	p.cap_prm = 0x400;
	expect(&p, CAUSE_LSM, "apparmor");
	p.t_undumpable = true;
	expect(&p, CAUSE_NOT_DUMPABLE, "dumpable");
	p.t_gid[2] = 7;
	expect(&p, CAUSE_OTHER_GROUP, "100 100 7");
	p.t_uid[1] = 0;
	expect(&p, CAUSE_OTHER_USER, "1000 0 1000");
	p.self_call = "ptrace(2)";
	p.self_how = SELF_REFUSED;
	expect(&p, CAUSE_SECCOMP_SELF, "refuses ptrace(2)");
	p.self_how = SELF_KILLED;
	expect(&p, CAUSE_SECCOMP_SELF, "would kill heapmedic itself for ptrace(2)");
}

/* Why the remedy that everybody tries first will not do. */
Test(permit, what_keeps_us_from_the_capability)
{
	struct permit p = same_user();

	p.t_uid[0] = 0;
	expect(&p, CAUSE_OTHER_USER, "uid 1000 gid 100 without CAP_SYS_PTRACE");
	p.no_new_privs = true;
	expect(&p, CAUSE_OTHER_USER, "no_new_privs");
	p.cap_bnd = ~PTRACE_CAP;
	expect(&p, CAUSE_OTHER_USER, "bounding set");
}

Test(permit, with_the_capability)
{
	struct permit p = same_user();

	p.cap_eff = PTRACE_CAP;
	p.t_uid[0] = 0; /* users do not matter then */
	expect(&p, CAUSE_LSM, "apparmor");
	p.security[0] = '\0';
	expect(&p, CAUSE_LSM, "unknown");
	p.yama = 3;
	expect(&p, CAUSE_YAMA_3, "nobody");
	p.yama = 2; /* is no hindrance with the capability */
	expect(&p, CAUSE_LSM, "unknown");
}

Test(permit, in_which_user_namespace)
{
	struct permit p = same_user();

	p.cap_eff = p.cap_prm = PTRACE_CAP;
	cr_expect(permit_has_cap(&p, CAP_SYS_PTRACE));
	/* in the first one it counts everywhere, whatever can be seen of the other */
	p.place = USERNS_UNKNOWN;
	cr_expect(permit_has_cap(&p, CAP_SYS_PTRACE));
	p.initial_userns = false;
	p.userns = 4026532500;
	cr_expect(!permit_has_cap(&p, CAP_SYS_PTRACE));
	expect(&p, CAUSE_USERNS, "does not count there");
	expect(&p, CAUSE_USERNS, "not to be seen");
	p.maps_differ = true;
	expect(&p, CAUSE_USERNS, "another than ours");
	p.place = USERNS_BELOW;
	cr_expect(permit_has_cap(&p, CAP_SYS_PTRACE));
	p.place = USERNS_OUTSIDE;
	p.t_userns = 4026531837;
	cr_expect(!permit_has_cap(&p, CAP_SYS_PTRACE));
	expect(&p, CAUSE_USERNS, "above ours or beside it (4026531837, ours is 4026532500)");
	/* a namespace that we have made is ours to rule, also without capabilities here */
	p.cap_eff = p.cap_prm = 0;
	p.place = USERNS_BELOW;
	expect(&p, CAUSE_USERNS, "below ours");
	p.owner_known = true;
	p.owner = 0;
	expect(&p, CAUSE_USERNS, "below ours");
	p.owner = 1000;
	cr_expect(permit_has_cap(&p, CAP_SYS_PTRACE));
}

/* A /proc/sys of our own making: this kernel need not have yama. */
Test(permit, yama_of_all_kinds)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = { { "0\n", 0 }, { "1\n", 1 }, { "2\n", 2 }, { "3\n", 3 },
		      { "\n", -1 }, { "", -1 },	  { "x\n", -1 } };
	char sys[] = "/tmp/sys_XXXXXX", path[128];

	cr_assert_not_null(mkdtemp(sys));
	cr_expect_eq(permit_yama_in(sys), -1, "no yama there");
	snprintf(path, sizeof(path), "%s/kernel", sys);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/kernel/yama", sys);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/kernel/yama/ptrace_scope", sys);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		FILE *f = fopen(path, "w");

		cr_assert_not_null(f);
		fputs(cases[i].text, f);
		fclose(f);
		cr_expect_eq(permit_yama_in(sys), cases[i].want, "\"%s\"", cases[i].text);
	}
	unlink(path);
	snprintf(path, sizeof(path), "%s/kernel/yama", sys);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/kernel", sys);
	rmdir(path);
	rmdir(sys);
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
	cr_expect_eq(p.place, USERNS_SAME);
	cr_expect_null(p.self_call);
	cr_expect_eq(p.cap_bnd & PTRACE_CAP, PTRACE_CAP);
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

static void in_its_own_userns(void *unused)
{
	(void)unused;
	if (unshare(CLONE_NEWUSER))
		_exit(1);
	child_sleep(NULL);
}

Test(permit, a_child_in_a_user_namespace_below)
{
	pid_t pid = child_start(in_its_own_userns, NULL);
	struct permit p;
	struct target t;
	struct diag d;

	if (!child_reach_call(pid, pid, SYS_pause))
		cr_skip_test("a user namespace cannot be made here");
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(permit_read(&t, &p), 0);
	cr_expect_eq(p.place, USERNS_BELOW);
	cr_expect_neq(p.t_userns, p.userns);
	cr_expect(p.owner_known);
	cr_expect_eq(p.owner, getuid());
	cr_expect(permit_has_cap(&p, CAP_SYS_PTRACE), "its owner has all capabilities in it");
	target_close(&t);
	child_end(pid);
}
