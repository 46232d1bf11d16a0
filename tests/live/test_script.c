// SPDX-License-Identifier: GPL-3.0-or-later
/* Several commands in one session: -e, -f, standard input and the shell on a terminal. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "terminal.h"
#include "victim.h"

#define SCRIPT_AT "/tmp/heapmedic-script-XXXXXX"

static void write_script(char *path, const char *text)
{
	int fd;

	memcpy(path, SCRIPT_AT, sizeof(SCRIPT_AT));
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Runs a script with -f on a fresh victim and leaves what it said in r. */
static void run_script(struct run *r, const char *text, char *path, const char *arg)
{
	static struct state state;
	const struct run_opts o = { 0 };
	char pid[16];
	const char *args[] = { "-p", pid, "--json", "-f", path, arg, NULL };
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	write_script(path, text);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_with(r, &o, args);
	unlink(path);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

Test(script, file_runs_to_its_end)
{
	char path[sizeof(SCRIPT_AT)];
	struct run r;

	run_script(&r, "# a runbook\ncheck\nsleep 10ms\n\ninfo # the table\ntr\\\nim\n", path,
		   NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 3, "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\"command\":\"check\""));
	cr_assert_not_null(strstr(r.out, "\"command\":\"info\""));
	cr_assert_not_null(strstr(r.out, "\"command\":\"trim\""));
	run_free(&r);
}

Test(script, stops_at_the_first_error_with_its_place)
{
	char path[sizeof(SCRIPT_AT)], place[sizeof(SCRIPT_AT) + 8];
	struct run r;

	run_script(&r, "check\n\nno-such-command\ninfo\n", path, NULL);
	run_expect(&r, 2);
	snprintf(place, sizeof(place), "%s:3", path);
	cr_assert_not_null(strstr(r.err, place), "no %s in: %s", place, r.err);
	cr_assert_null(strstr(r.out, "\"command\":\"info\""), "it went on: %s", r.out);
	run_free(&r);
}

Test(script, an_error_of_a_command_has_its_place_and_code)
{
	char path[sizeof(SCRIPT_AT)], place[sizeof(SCRIPT_AT) + 8];
	struct run r;

	run_script(&r, "set read-only on\ncheck\ntrim\ninfo\n", path, NULL);
	run_expect(&r, 4);
	snprintf(place, sizeof(place), "%s:3", path);
	cr_assert_not_null(strstr(r.err, place), "no %s in: %s", place, r.err);
	cr_assert_null(strstr(r.out, "\"command\":\"info\""), "it went on: %s", r.out);
	run_free(&r);
}

Test(script, arguments)
{
	char path[sizeof(SCRIPT_AT)];
	struct run r;

	run_script(&r, "$1\n", path, "check");
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "\"command\":\"check\""));
	run_free(&r);
}

Test(script, standard_input)
{
	struct run_opts o = { .input = "check\ninfo\ntrim" };
	char pid[16];
	const char *args[] = { "-p", pid, "--json", NULL };
	struct victim v;
	struct run r;

	victim_start_named(&v, "eight", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", v.pid);
	run_with(&r, &o, args);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 3, "%s", r.out);
	json_decref(run_json(&r, 0, v.pid, "check"));
	json_decref(run_json(&r, 1, v.pid, "info"));
	json_decref(run_json(&r, 2, v.pid, "trim"));
	run_free(&r);
	victim_stop(&v);
}

Test(script, expressions_share_one_session)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "eight", NULL, NULL);
	run(&r, v.pid, "--json", "-e", "trim", "-e", "trim", "-e", "stats", NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 3, "%s", r.out);
	run_free(&r);
	run(&r, v.pid, "-e", "echo 'a  b'", "-e", "echo c", NULL);
	run_expect(&r, 0);
	cr_assert_str_eq(r.out, "a  b\nc\n");
	run_free(&r);
	victim_stop(&v);
}

/* The thread that a session has in the target is neither the target's nor a leftover. */
Test(script, a_session_knows_its_own_thread)
{
	struct victim v;
	struct run r;
	json_t *check, *list;
	size_t i, ours = 0;
	const json_t *t;

	victim_start_named(&v, "eight", NULL, NULL);
	run(&r, v.pid, "--json", "-e", "stats", "-e", "check", "-e", "threads", NULL);
	run_expect(&r, 0);
	check = run_json(&r, 1, v.pid, "check");
	cr_assert_eq(json_int(check, "result.threads"), 9);
	cr_assert_eq(json_array_size(json_at(check, "warnings")), 0, "%s", r.out);
	list = run_json(&r, 2, v.pid, "threads");
	json_array_foreach(json_at(list, "result.threads"), i, t)
	{
		if (strcmp(json_string_value(json_object_get(t, "name")), "heapmedic") != 0)
			continue;
		ours++;
		cr_assert_not(json_boolean_value(json_object_get(t, "usable")), "%s", r.out);
	}
	cr_assert_eq(ours, 1);
	json_decref(check);
	json_decref(list);
	run_free(&r);
	victim_stop(&v);
}

/* ---- the shell */

Test(script, shell_on_a_terminal)
{
	static struct terminal t;
	static struct state state;
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	terminal_start(&t, v.pid);
	cr_assert(terminal_await(&t, "> "), "no prompt: %s", t.text);
	terminal_type(&t, "trim\r");
	cr_assert(terminal_await(&t, "[y/N]"), "a change is not asked about: %s", t.text);
	terminal_type(&t, "y\r");
	cr_assert(terminal_await(&t, "rss "), "no trim: %s", t.text);
	/* Ctrl-C ends the command, not the session. */
	terminal_type(&t, "sleep 60s\r");
	sleep_ns(500000000);
	terminal_type(&t, "\003");
	terminal_type(&t, "echo still here\r");
	cr_assert(terminal_await(&t, "\nstill here"), "the session is gone: %s", t.text);
	victim_check(&v);
	terminal_type(&t, "\004");
	terminal_end(&t, 0);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* Its terminal goes away (SIGHUP): nothing may be left in the target. */
Test(script, shell_that_loses_its_terminal)
{
	static struct terminal t;
	static struct state state;
	struct victim v;

	victim_start_named(&v, "eight", NULL, NULL);
	state_take(&v, &state);
	terminal_start(&t, v.pid);
	cr_assert(terminal_await(&t, "> "), "no prompt: %s", t.text);
	terminal_type(&t, "stats\r");
	cr_assert(terminal_await(&t, "system bytes"), "no stats: %s", t.text);
	close(t.fd);
	for (int i = 0; i < 1000 && waitpid(t.pid, NULL, WNOHANG) == 0; i++)
		sleep_ns(10000000);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* What check refuses is its answer; the error line would say it again beside it. */
Test(script, check_on_a_terminal_tells_a_refusal_once)
{
	static struct terminal t;
	const char *at, *fact = "is stopped by a signal (state T)";
	struct victim v;
	size_t n = 0;

	victim_start_named(&v, "retained", "2", "10");
	kill(v.pid, SIGSTOP);
	proc_wait_state(v.pid, "T");
	terminal_start(&t, v.pid);
	cr_assert(terminal_await(&t, "> "), "no prompt: %s", t.text);
	terminal_type(&t, "check\r");
	cr_assert(terminal_await(&t, "candidate"), "no answer: %s", t.text);
	terminal_type(&t, "\004");
	terminal_end(&t, 6);
	for (at = t.text; (at = strstr(at, fact)); at++)
		n++;
	cr_assert_eq(n, 1, "told %zu times: %s", n, t.text);
	cr_assert_not_null(strstr(t.text, "next        let it go on first"), "%s", t.text);
	cr_assert_not_null(strstr(t.text, "cause       stopped (exit 6)"), "%s", t.text);
	kill(v.pid, SIGCONT);
	proc_wait_state(v.pid, "SR");
	victim_stop(&v);
}
