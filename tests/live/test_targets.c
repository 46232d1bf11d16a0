// SPDX-License-Identifier: GPL-3.0-or-later
/* Several processes in one run: one after another, and a table at the end. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "victim.h"

static struct victim a, b, c;

/* One that has memory to give back, one that is stopped (exit 6), and a third. */
static void start_three(void)
{
	victim_start_named(&a, "retained", "2", "400");
	victim_start_named(&b, "retained", "2", "10");
	victim_start_named(&c, "eight", NULL, NULL);
	kill(b.pid, SIGSTOP);
	proc_wait_state(b.pid, "T");
}

static void stop_three(void)
{
	kill(b.pid, SIGCONT);
	proc_wait_state(b.pid, "SR");
	victim_stop(&a);
	victim_stop(&b);
	victim_stop(&c);
}

static void run_three(struct run *r, const char *option, const char *command)
{
	static char pid[3][16];
	const struct run_opts o = { 0 };
	const char *const args[] = { "-p", pid[0],	 "-p",	  pid[1], "-p", pid[2],
				     "-p", "2147483647", command, option, NULL };

	snprintf(pid[0], sizeof(pid[0]), "%d", a.pid);
	snprintf(pid[1], sizeof(pid[1]), "%d", b.pid);
	snprintf(pid[2], sizeof(pid[2]), "%d", c.pid);
	run_with(r, &o, args);
}

Test(targets, a_failure_does_not_stop_the_others, .init = start_three, .fini = stop_three)
{
	char line[100];
	const char *table;
	struct run r;

	run_three(&r, NULL, "trim");
	run_expect(&r, 6);
	table = strstr(r.out, "RSS BEFORE");
	cr_assert_not_null(table, "%s", r.out);
	snprintf(line, sizeof(line), "%d  retained        0  ok ", a.pid);
	cr_expect_not_null(strstr(table, line), "no '%s' in %s", line, r.out);
	snprintf(line, sizeof(line), "%d  retained        6  stopped ", b.pid);
	cr_expect_not_null(strstr(table, line), "no '%s' in %s", line, r.out);
	snprintf(line, sizeof(line), "%d  eight           0  ok ", c.pid);
	cr_expect_not_null(strstr(table, line), "no '%s' in %s", line, r.out);
	cr_expect_not_null(strstr(table, "2147483647  ?               3  no-process"), "%s", r.out);
	cr_expect_not_null(strstr(table, "4 processes     6  2 failed"), "%s", r.out);
	run_free(&r);
}

Test(targets, json_is_one_object_each_and_no_table, .init = start_three, .fini = stop_three)
{
	static const int exits[] = { 0, 6, 0, 3 };
	struct run r;

	run_three(&r, "--json", "trim");
	run_expect(&r, 6);
	cr_assert_eq(run_lines(&r), 4u, "%s", r.out);
	for (size_t i = 0; i < 4; i++) {
		json_error_t error;
		const char *at = r.out;
		json_t *o;

		for (size_t k = 0; k < i; k++)
			at = strchr(at, '\n') + 1;
		o = json_loadb(at, strcspn(at, "\n"), 0, &error);
		cr_assert_not_null(o, "%s", at);
		cr_expect_eq(json_int(o, "exit"), exits[i], "%s", at);
		json_decref(o);
	}
	run_free(&r);
}

Test(targets, one_process_needs_no_table)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "eight", NULL, NULL);
	run(&r, v.pid, "trim", NULL);
	run_expect(&r, 0);
	cr_expect_null(strstr(r.out, "RSS BEFORE"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}
