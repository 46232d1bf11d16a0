// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/ending.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/status.h"
#include "child.h"

static void expect_text(const int *status, const char *want)
{
	char buf[80];

	cr_expect_str_eq(ending_text(status, buf, sizeof(buf)), want);
}

Test(ending, words)
{
	static const int zero = 0, three = 3 << 8, killed = SIGKILL, core = SIGSEGV | 0x80;
	static const int rt = 40;

	expect_text(NULL, "has exited");
	expect_text(&zero, "has exited with code 0");
	expect_text(&three, "has exited with code 3");
	expect_text(&killed, "was killed by signal 9 (SIGKILL)");
	expect_text(&core, "was killed by signal 11 (SIGSEGV)");
	expect_text(&rt, "was killed by signal 40");
}

/* While its parent has not looked, as stat has it; we are the parent. */
Test(ending, of_a_zombie)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct diag d = { 0 };
	struct target t;
	siginfo_t info;
	int status = -1;

	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_expect_not(ending_status(&t, &status), "it lives");
	cr_assert_eq(kill(pid, SIGTERM), 0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_assert(ending_status(&t, &status));
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%#x", status);
	child_end(pid);
	status = -1;
	/* and later, where the kernel still knows it; nothing else may come of it */
	if (ending_status(&t, &status))
		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%#x", status);
	target_close(&t);
}

Test(ending, stat_of_any_form)
{
	char text[200] = "1 (a b) Z ";
	int status = -1;

	cr_expect_eq(stat_exit_code("", &status), -EINVAL);
	cr_expect_eq(stat_exit_code("1 (a) Z 0 0", &status), -EINVAL);
	for (int field = 4; field < 52; field++)
		strcat(text, "7 ");
	strcat(text, "768\n");
	cr_expect_eq(stat_exit_code(text, &status), 0);
	cr_expect_eq(status, 3 << 8);
}
