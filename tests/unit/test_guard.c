// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/clock.h"
#include "../../repl/guard_lock.h"
#include "../../repl/guard_policy.h"

#define MINUTE (60 * NS_PER_SEC)

Test(guard_policy, acts_when_it_becomes_true)
{
	const struct guard_rule rule = { .cooldown = 10 * MINUTE };
	struct guard g = { 0 };

	cr_expect_eq(guard_decide(&rule, &g, EXPR_FALSE, true, UINT64_MAX), GUARD_WAIT);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_UNKNOWN, false, UINT64_MAX), GUARD_UNKNOWN);
	cr_assert_eq(guard_decide(&rule, &g, EXPR_TRUE, false, UINT64_MAX), GUARD_ACT);
	guard_acted(&g, HM_OK);
	/* it has not helped: the cooldown's end changes nothing */
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, MINUTE), GUARD_HOLD);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 60 * MINUTE), GUARD_HOLD);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_UNKNOWN, false, 60 * MINUTE), GUARD_UNKNOWN);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 60 * MINUTE), GUARD_HOLD);
	/* it was cleared in between */
	cr_expect_eq(guard_decide(&rule, &g, EXPR_FALSE, true, MINUTE), GUARD_WAIT);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 2 * MINUTE), GUARD_COOL);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 10 * MINUTE), GUARD_ACT);
}

/* False alone does not clear where something else is named for it. */
Test(guard_policy, hysteresis)
{
	const struct guard_rule rule = { .cooldown = 0 };
	struct guard g = { 0 };

	guard_acted(&g, HM_OK);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_FALSE, false, MINUTE), GUARD_WAIT);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, MINUTE), GUARD_HOLD);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_FALSE, true, MINUTE), GUARD_WAIT);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, MINUTE), GUARD_ACT);
}

Test(guard_policy, not_more_often_than_it_may)
{
	const struct guard_rule rule = { .max = 2 };
	struct guard g = { 0 };

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(guard_decide(&rule, &g, EXPR_TRUE, true, MINUTE), GUARD_ACT);
		guard_acted(&g, HM_OK);
	}
	cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, true, MINUTE), GUARD_SPENT);
	cr_expect_eq(guard_decide(&rule, &g, EXPR_FALSE, true, MINUTE), GUARD_WAIT);
}

/* Refused (6) and not done (1, 4, 5, 10) is not "did not help": it is tried again when it may be.
 */
Test(guard_policy, what_was_refused_is_tried_again)
{
	static const enum hm_exit refused[] = { HM_CALL_FAILED, HM_NOT_PERMITTED, HM_UNSUPPORTED,
						HM_UNSAFE, HM_INTERNAL };
	static const enum hm_exit done[] = { HM_OK, HM_UNMET, HM_RUNNING, HM_DIED };
	const struct guard_rule rule = { .cooldown = 10 * MINUTE };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct guard g = { 0 };

		guard_acted(&g, refused[i]);
		cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, MINUTE), GUARD_COOL);
		cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 10 * MINUTE), GUARD_ACT);
		cr_expect_eq(g.failed, 1);
	}
	for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
		struct guard g = { 0 };

		guard_acted(&g, done[i]);
		cr_expect_eq(guard_decide(&rule, &g, EXPR_TRUE, false, 10 * MINUTE), GUARD_HOLD);
	}
}

Test(guard_policy, ends_with_what_may_have_hurt)
{
	struct guard_rule rule = { .max = 0 };
	struct guard g = { 0 };

	cr_expect_eq(guard_exit(&rule, &g), HM_OK);
	guard_acted(&g, HM_UNSAFE);
	cr_expect_eq(guard_exit(&rule, &g), HM_OK);
	rule.max = 1;
	cr_expect_eq(guard_exit(&rule, &g), HM_UNSAFE);
	rule.max = 0;
	guard_acted(&g, HM_RUNNING);
	guard_acted(&g, HM_OK);
	cr_expect_eq(guard_exit(&rule, &g), HM_RUNNING);
	guard_acted(&g, HM_DIED);
	cr_expect_eq(guard_exit(&rule, &g), HM_DIED);
}

Test(guard_policy, looks_less_often_where_that_is_dear)
{
	cr_expect_eq(guard_pause(30 * NS_PER_SEC, NS_PER_MS), 30 * NS_PER_SEC);
	cr_expect_eq(guard_pause(30 * NS_PER_SEC, 100 * NS_PER_MS), 100 * NS_PER_SEC);
	cr_expect_eq(guard_pause(30 * NS_PER_SEC, 5 * NS_PER_SEC), 10 * MINUTE);
	cr_expect_eq(guard_pause(30 * NS_PER_SEC, UINT64_MAX), 10 * MINUTE);
	cr_expect_eq(guard_pause(60 * MINUTE, 5 * NS_PER_SEC), 60 * MINUTE);
}

/* ---- the lock; XDG_RUNTIME_DIR is not root's place, so that root's tests become somebody else */

static char dir[64];

static void own_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/hm-guard-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	if (geteuid() == 0) {
		cr_assert_eq(chown(dir, 65534, 65534), 0);
		cr_assert_eq(seteuid(65534), 0);
	}
	cr_assert_eq(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
}

static void end_dir(const char *file)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/heapmedic/%s", dir, file);
	unlink(path);
	snprintf(path, sizeof(path), "%s/heapmedic", dir);
	rmdir(path);
	cr_assert_eq(geteuid() == getuid() || seteuid(getuid()) == 0, 1);
	cr_assert_eq(rmdir(dir), 0);
}

Test(guard_lock, one_at_a_time_and_remembered)
{
	const struct target t = { .pid = 4711, .start_time = 99 };
	struct guard_lock a, b;
	uint64_t last = 1;
	pid_t holder;
	struct diag d;

	own_dir();
	cr_assert_eq(guard_lock_take(&t, &a, &last, &holder, &d), 0, "%s", d.text);
	cr_expect_eq(last, 0);
	cr_expect_eq(guard_lock_take(&t, &b, &last, &holder, &d), -EBUSY);
	cr_expect_eq(holder, getpid());
	guard_lock_end(&a, 12345);
	cr_assert_eq(guard_lock_take(&t, &b, &last, &holder, &d), 0, "%s", d.text);
	cr_expect_eq(last, 12345);
	guard_lock_end(&b, 0);
	cr_assert_eq(guard_lock_take(&t, &b, &last, &holder, &d), 0, "%s", d.text);
	cr_expect_eq(last, 12345, "what did not act is nothing to remember");
	guard_lock_end(&b, 0);
	guard_lock_forget(&t);
	cr_assert_eq(guard_lock_take(&t, &b, &last, &holder, &d), 0, "%s", d.text);
	cr_expect_eq(last, 0);
	guard_lock_end(&b, 0);
	end_dir("4711-99");
}

/* The kernel frees it. */
Test(guard_lock, a_holder_that_dies)
{
	const struct target t = { .pid = 4711, .start_time = 99 };
	struct guard_lock l;
	uint64_t last;
	pid_t holder, pid;
	struct diag d;
	int status;

	own_dir();
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(guard_lock_take(&t, &l, &last, &holder, &d) != 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(guard_lock_take(&t, &l, &last, &holder, &d), 0, "%s", d.text);
	guard_lock_end(&l, 0);
	end_dir("4711-99");
}

Test(guard_lock, a_directory_of_others_is_not_used)
{
	const struct target t = { .pid = 4711, .start_time = 99 };
	char path[100];
	struct guard_lock l;
	uint64_t last;
	pid_t holder;
	struct diag d;

	own_dir();
	snprintf(path, sizeof(path), "%s/heapmedic", dir);
	diag_clear(&d);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(chmod(path, 0777), 0);
	cr_expect_eq(guard_lock_take(&t, &l, &last, &holder, &d), -EPERM);
	cr_expect_str_eq(d.code, "no-lock");
	diag_clear(&d);
	cr_expect_eq(guard_lock_check(&d), -EPERM);
	cr_expect_str_eq(d.code, "no-lock");
	cr_assert_eq(chmod(path, 0500), 0);
	cr_expect_eq(guard_lock_check(&d), -EACCES);
	cr_assert_eq(chmod(path, 0700), 0);
	cr_expect_eq(guard_lock_check(&d), 0);
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(symlink("/tmp", path), 0);
	diag_clear(&d);
	cr_expect_lt(guard_lock_take(&t, &l, &last, &holder, &d), 0);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_assert_eq(unlink(path), 0);
	end_dir("none");
}

/* A process without jemalloc: what is said of that is never known, and must not hold a guard back
 * for ever. What is not known for the moment only (it is traced) is another thing. */
Test(guard, cleared_where_it_is_not_known)
{
	struct facts then = { 0 }, now = { 0 };
	struct expr *when;
	struct diag d;

	cr_assert_eq(expr_parse("rss > 100 or jemalloc.purgeable > 100", &when, &d), 0);
	facts_set(&then, FACT_RSS, FROM_KERNEL, 200);
	facts_set(&now, FACT_RSS, FROM_KERNEL, 50);
	cr_assert_eq(expr_eval(when, &then), EXPR_TRUE);
	cr_assert_eq(expr_eval(when, &now), EXPR_UNKNOWN);
	cr_expect(guard_is_clear(when, EXPR_UNKNOWN, &then, &now));
	cr_expect(guard_is_clear(when, EXPR_FALSE, &then, &now));
	cr_expect_not(guard_is_clear(when, EXPR_TRUE, &then, &then));
	cr_expect_not(guard_is_clear(when, EXPR_UNKNOWN, NULL, &now));
	facts_set(&then, FACT_JEMALLOC_PURGEABLE, FROM_CALL, 500);
	cr_expect_not(guard_is_clear(when, EXPR_UNKNOWN, &then, &now));
	/* of others nothing need be known */
	facts_set(&now, FACT_JEMALLOC_PURGEABLE, FROM_CALL, 5);
	facts_set(&then, FACT_SWAP, FROM_KERNEL, 5);
	cr_expect(guard_is_clear(when, EXPR_UNKNOWN, &then, &now));
	expr_free(when);
}
