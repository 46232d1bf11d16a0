// SPDX-License-Identifier: GPL-3.0-or-later
/* The shell as a person has it, on a terminal. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "terminal.h"
#include "victim.h"

static struct terminal t;
static struct state state;

static void start_on(pid_t pid, const char *option, const char *env, unsigned short rows)
{
	char number[16];
	const struct terminal_plan plan = {
		.args = { "-p", number, option },
		.env = { env },
		.rows = rows,
	};

	snprintf(number, sizeof(number), "%d", pid);
	terminal_start_plan(&t, &plan);
	terminal_expect(&t, "> ");
}

/* On a screen that needs no pager. */
static void start(pid_t pid, const char *option, const char *env)
{
	start_on(pid, option, env, 300);
}

/* ---- the target ends */

Test(shell, the_target_exits_while_nothing_is_typed)
{
	struct victim v;
	char line[100];

	victim_start_named(&v, "retained", "2", "10");
	start(v.pid, NULL, NULL);
	terminal_type(&t, "tri");
	terminal_expect(&t, "tri");
	victim_kill(&v);
	snprintf(line, sizeof(line), "retained (pid %d) was killed by signal 9 (SIGKILL)", v.pid);
	terminal_expect(&t, line);
	terminal_expect(&t, "is kept: diagnose, maps");
	terminal_expect(&t, "attach NAME|PID");
	/* what was typed is still there */
	terminal_expect(&t, " exited> tri");
	terminal_type(&t, "m\r");
	snprintf(line, sizeof(line), "process %d (retained) has ended; next: `attach NAME|PID`",
		 v.pid);
	terminal_expect(&t, line);
	terminal_type(&t, "maps\r");
	terminal_expect(&t, "as of ");
	terminal_expect(&t, ", before it exited");
	terminal_expect(&t, "glibc-arena");
	terminal_type(&t, "arenas\r");
	terminal_expect(&t, "trim_threshold");
	terminal_type(&t, "threads\r");
	terminal_expect(&t, "TCACHE");
	terminal_type(&t, "facts glibc.trimmable\r");
	terminal_expect(&t, "before it exited");
	terminal_type(&t, "diagnose\r");
	terminal_expect(&t, "OWNER");
	terminal_type(&t, "stats\r");
	terminal_expect(&t, "has ended");
	/* the code of the last command */
	terminal_type(&t, "\004");
	terminal_end(&t, 3);
}

Test(shell, json_of_an_ended_process_says_so)
{
	struct victim v;

	victim_start_named(&v, "retained", "2", "10");
	start(v.pid, "--json", NULL);
	victim_kill(&v);
	terminal_expect(&t, " exited> ");
	terminal_type(&t, "facts rss\r");
	terminal_expect(&t, "\"code\":\"process-ended\"");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
}

Test(shell, the_last_look_is_one_after_the_change)
{
	struct victim v;

	victim_start_named(&v, "retained", "2", "1200");
	start(v.pid, NULL, NULL);
	terminal_type(&t, "trim --yes\r");
	terminal_expect(&t, " proxy> ");
	victim_kill(&v);
	terminal_expect(&t, " exited> ");
	terminal_type(&t, "facts glibc.trimmable --bytes\r");
	terminal_expect(&t, "glibc.trimmable      0  predicted");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
}

/* ---- attach */

Test(shell, attach_goes_on_with_another_process)
{
	struct victim a, b;
	char line[100];

	victim_start_named(&a, "eight", NULL, NULL);
	victim_start_named(&b, "retained", "2", "10");
	state_take(&a, &state);
	start(a.pid, "--read-only", NULL);
	/* our thread is in it */
	terminal_type(&t, "stats\r");
	terminal_expect(&t, " proxy> ");
	terminal_type(&t, "attach 2147483647\r");
	terminal_expect(&t, "no process");
	snprintf(line, sizeof(line), "eight:%d ", a.pid);
	terminal_expect(&t, line);
	snprintf(line, sizeof(line), "attach %d\r", b.pid);
	terminal_type(&t, line);
	snprintf(line, sizeof(line), "retained:%d ", b.pid);
	terminal_expect(&t, line);
	/* and no more when it has gone on */
	state_same(&a, &state, STATE_EXACT);
	terminal_type(&t, "trim\r");
	terminal_expect(&t, "which --read-only refuses");
	terminal_type(&t, "maps\r");
	terminal_expect(&t, "glibc-arena");
	terminal_type(&t, "attach 1\r");
	terminal_type(&t, "\004");
	terminal_await(&t, "\1never\1");
	close(t.fd);
	victim_stop(&a);
	victim_stop(&b);
}

Test(shell, attach_by_name_after_the_end)
{
	struct victim a, b;
	char line[100];

	victim_start_named(&a, "retained", "2", "10");
	victim_start_named(&b, "pulse", NULL, NULL);
	start(a.pid, NULL, NULL);
	victim_kill(&a);
	terminal_expect(&t, " exited> ");
	snprintf(line, sizeof(line), "attach %d\r", b.pid);
	terminal_type(&t, line);
	snprintf(line, sizeof(line), "pulse:%d ", b.pid);
	terminal_expect(&t, line);
	terminal_type(&t, "check\r");
	terminal_expect(&t, "candidate");
	terminal_type(&t, "attach no-such-name-here\r");
	terminal_expect(&t, "no process is named");
	terminal_type(&t, "\004");
	terminal_end(&t, 3);
	victim_kill(&b);
}

Test(shell, attach_is_not_for_runbooks)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "eight", NULL, NULL);
	run(&r, v.pid, "attach", "1", NULL);
	run_expect(&r, 2);
	cr_expect_not_null(strstr(r.err, "attach is for the shell"), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

/* ---- a change is predicted, and asked about once */

Test(shell, a_change_shows_what_it_would_do_and_asks_once)
{
	struct victim v;
	char line[100];

	victim_start_named(&v, "retained", "2", "400");
	start(v.pid, NULL, NULL);
	terminal_type(&t, "trim\r");
	terminal_expect(&t, "would call malloc_trim(0) in glibc");
	terminal_expect(&t, "predicted -");
	snprintf(line, sizeof(line), "trim changes retained (pid %d). Go on? [y/N] ", v.pid);
	terminal_expect(&t, line);
	terminal_type(&t, "\r");
	terminal_expect(&t, "trim was not confirmed, nothing was done");
	/* Ctrl-C says no, too, and the window may change meanwhile */
	terminal_type(&t, "trim\r");
	terminal_expect(&t, "[y/N] ");
	terminal_type(&t, "\003");
	terminal_expect(&t, "was not confirmed");
	terminal_type(&t, "mallopt M_ARENA_MAX 2\r");
	terminal_expect(&t, "would set M_ARENA_MAX 2");
	terminal_expect(&t, "[y/N] ");
	terminal_type(&t, "y\r");
	/* what the question has told already is not said again */
	terminal_expect(&t, "\nM_ARENA_MAX 2\r\n");
	terminal_expect_none(&t, "arenas", 100);
	terminal_type(&t, "set confirm off\r");
	terminal_type(&t, "trim\r");
	terminal_expect(&t, " -> ");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	cr_expect_null(strstr(t.text, "nothing was done\r\npredicted"));
	victim_stop(&v);
}

Test(shell, a_purge_shows_what_there_is)
{
	struct victim v;

	victim_start_named(&v, "jem-static", NULL, NULL);
	start(v.pid, NULL, NULL);
	terminal_type(&t, "purge\r");
	terminal_expect(&t, "would call mallctl(\"arena.<all>.purge\")\r\n");
	terminal_expect(&t, "predicted up to -");
	terminal_expect(&t, "[y/N] ");
	terminal_type(&t, "n\r");
	terminal_expect(&t, "not confirmed");
	terminal_type(&t, "background_thread on\r");
	terminal_expect(&t, "would write background_thread on\r\n");
	terminal_expect(&t, "would start threads in the process, which stay");
	terminal_expect(&t, "[y/N] ");
	terminal_type(&t, "y\r");
	terminal_expect(&t, "background_thread off -> on");
	terminal_type(&t, "background_thread off --yes\r");
	terminal_expect(&t, "background_thread on -> off");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	victim_stop(&v);
}

/* ---- paging */

/* All mappings of a process with ten threads are more than a screen. */
static void start_long(struct victim *v, const char *pager)
{
	victim_start_named(v, "retained", "10", "2");
	start_on(v->pid, NULL, pager, 24);
}

Test(shell, pages_what_is_longer_than_the_screen)
{
	struct victim v;

	/* without less */
	start_long(&v, "PATH=/nonexistent");
	terminal_type(&t, "maps\r");
	terminal_expect(&t, "total ");
	terminal_type(&t, "maps --all\r");
	terminal_expect(&t, " more: space, Enter, q --");
	terminal_type(&t, "\r");
	terminal_expect(&t, " more: space, Enter, q --");
	terminal_type(&t, " ");
	terminal_expect(&t, " more: space, Enter, q --");
	terminal_type(&t, "q");
	terminal_expect(&t, "> ");
	/* Ctrl-C is for the pager alone */
	terminal_type(&t, "help trim; echo still here\r");
	terminal_expect(&t, " more: space, Enter, q --");
	terminal_type(&t, "\003");
	terminal_expect(&t, "\rstill here");
	terminal_type(&t, "set pager off\r");
	terminal_type(&t, "maps --all\r");
	terminal_expect(&t, "[stack]");
	victim_check(&v);
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	victim_stop(&v);
}

Test(shell, the_pager_is_the_one_of_the_environment)
{
	struct victim v;

	start_long(&v, "PAGER=sed 's/^/paged: /'");
	terminal_type(&t, "maps --all\r");
	terminal_expect(&t, "paged: ADDRESS");
	terminal_expect(&t, "paged: ffff");
	terminal_expect(&t, "> ");
	/* what fits needs none */
	terminal_type(&t, "echo short\r");
	terminal_expect(&t, "\nshort");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	victim_stop(&v);
}

/* One that is not there, and one that does not read. */
Test(shell, a_pager_that_fails_harms_nothing)
{
	struct victim v;

	start_long(&v, "PAGER=/nonexistent/pager");
	terminal_type(&t, "maps --all\r");
	terminal_expect(&t, " more: space, Enter, q --");
	terminal_type(&t, "q");
	terminal_expect(&t, "> ");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	start_on(v.pid, NULL, "PAGER=true", 24);
	terminal_type(&t, "maps --all\r");
	terminal_expect(&t, "> ");
	terminal_type(&t, "echo and on\r");
	terminal_expect(&t, "\nand on");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	victim_stop(&v);
}

/* A warning stands where it was said, also when the answer is held back. */
Test(shell, talk_stands_in_its_place)
{
	struct victim v;

	victim_start_named(&v, "retained", "2", "10");
	start(v.pid, NULL, NULL);
	victim_kill(&v);
	terminal_expect(&t, " exited> ");
	terminal_type(&t, "maps\r");
	terminal_expect(&t, "as of ");
	terminal_expect(&t, "OWNER");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
}

/* ---- what takes its time */

Test(shell, a_call_that_lasts_is_told_and_left_by_ctrl_c)
{
	struct victim v;

	victim_start_named(&v, "fakectl", "slow", NULL);
	start(v.pid, NULL, NULL);
	terminal_type(&t, "mallctl opt.narenas\r");
	terminal_expect(&t, "mallctl: the call runs in the target, 1 s");
	terminal_type(&t, "\003");
	/* what was shown is erased, and the answer stands at the start of its line */
	terminal_expect(&t, "       \rshell: ");
	terminal_expect(&t, "; next: ");
	terminal_expect(&t, "> ");
	/* the session goes on; the call ends in the target */
	terminal_type(&t, "echo still here\r");
	terminal_expect(&t, "\nstill here");
	terminal_type(&t, "mallctl opt.narenas\r");
	terminal_expect(&t, "> ");
	terminal_type(&t, "\004");
	terminal_await(&t, "\1never\1");
	close(t.fd);
	victim_check(&v);
	victim_kill(&v);
}

/* Nothing of it where it is not a terminal that stderr is. */
Test(shell, no_progress_elsewhere)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "fakectl", "slow", NULL);
	run(&r, v.pid, "--timeout", "1500ms", "mallctl", "opt.narenas", NULL);
	run_expect(&r, 8);
	cr_expect_null(strstr(r.err, "the call runs in the target, "), "%s", r.err);
	cr_expect_null(strchr(r.err, '\r'), "%s", r.err);
	run_free(&r);
	victim_kill(&v);
}

/* ---- typing */

/* Up looks for what is typed, Ctrl-R for what it holds; both also in what an earlier shell has
 * saved. */
Test(shell, history_is_searched_and_kept)
{
	char path[] = "/tmp/heapmedic-history-XXXXXX", env[64];
	struct stat st;
	struct victim v;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	snprintf(env, sizeof(env), "HEAPMEDIC_HISTORY=%s", path);
	victim_start_named(&v, "eight", NULL, NULL);
	start(v.pid, NULL, env);
	terminal_type(&t, "echo first one\r");
	terminal_expect(&t, "\nfirst one");
	terminal_type(&t, "set bytes on\r");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	start(v.pid, NULL, env);
	terminal_type(&t, "ec\033[A\r");
	terminal_expect(&t, "\nfirst one");
	terminal_expect(&t, "> ");
	terminal_type(&t, "\022irst\r");
	terminal_expect(&t, "\nfirst one");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	unlink(path);
	victim_stop(&v);
}

Test(shell, an_inputrc_wins)
{
	char path[] = "/tmp/heapmedic-inputrc-XXXXXX", env[64];
	static const char text[] = "\"\\e[A\": \"cho mine\"\n";
	struct victim v;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	snprintf(env, sizeof(env), "INPUTRC=%s", path);
	victim_start_named(&v, "eight", NULL, NULL);
	start(v.pid, NULL, env);
	terminal_type(&t, "e\033[A\r");
	terminal_expect(&t, "\nmine");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	unlink(path);
	victim_stop(&v);
}

Test(shell, tab_completes_from_the_tables)
{
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	start(v.pid, NULL, NULL);
	terminal_type(&t, "fac\tglibc.sy\t\r");
	terminal_expect(&t, "facts glibc.system ");
	terminal_expect(&t, "> ");
	terminal_type(&t, "mallctl bac\tt\t");
	terminal_expect(&t, "mallctl background_thread true");
	terminal_type(&t, "\003");
	terminal_expect(&t, "> ");
	/* no blank behind what goes on */
	terminal_type(&t, "mallctl arena.a\tpur\t");
	terminal_expect(&t, "mallctl arena.all.purge ");
	terminal_type(&t, "\003");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	victim_stop(&v);
}

Test(shell, prompt_is_coloured_only_where_it_can_be)
{
	char pid[16], plain[64];
	struct terminal_plan plan = { .args = { "-p", pid }, .env = { "TERM=xterm" }, .rows = 50 };
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	snprintf(plain, sizeof(plain), "eight:%d ", v.pid);
	terminal_start_plan(&t, &plan);
	terminal_expect(&t, "\033[1meight:");
	terminal_expect(&t, "\033[0m ");
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	plan.env[1] = "NO_COLOR=1";
	terminal_start_plan(&t, &plan);
	terminal_expect(&t, plain);
	terminal_type(&t, "nonsense\r");
	terminal_expect(&t, "no command");
	cr_expect_null(strstr(t.text, "\033[1m"), "%s", t.text);
	cr_expect_null(strstr(t.text, "\033[31m"), "%s", t.text);
	terminal_type(&t, "\004");
	terminal_end(&t, 2);
	victim_stop(&v);
}
