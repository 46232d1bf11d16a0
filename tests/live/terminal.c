// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

#define LONGEST_NS UINT64_C(20000000000)

static void set_env(const struct terminal_plan *plan)
{
	static const char *const none[] = {
		"PAGER",	  "NO_COLOR", "LESS", "SUDO_UID", "HEAPMEDIC_HISTORY",
		"XDG_STATE_HOME", "COLUMNS",  "LINES"
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		unsetenv(none[i]);
	setenv("TERM", "dumb", 1);
	setenv("HOME", "/nonexistent", 1);
	setenv("INPUTRC", "/dev/null", 1);
	for (size_t i = 0; i < 8 && plan->env[i]; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(plan->env[i], "="), plan->env[i]);
		setenv(name, strchr(plan->env[i], '=') + 1, 1);
	}
}

static void become(const struct terminal_plan *plan)
{
	const char *argv[17] = { "heapmedic" };
	const char *program = getenv("HEAPMEDIC");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ignored where the tests run in the background of a shell; heapmedic keeps to that. */
	signal(SIGINT, SIG_DFL);
	set_env(plan);
	for (size_t i = 0; i < 15 && plan->args[i]; i++)
		argv[i + 1] = plan->args[i];
	program = program ? program : "./heapmedic";
	execv(program, (char *const *)argv);
	_exit(126);
}

void terminal_start_plan(struct terminal *t, const struct terminal_plan *plan)
{
	struct winsize size = {
		.ws_col = plan->columns ? plan->columns : 80,
		.ws_row = plan->rows ? plan->rows : 24,
	};

	memset(t, 0, sizeof(*t));
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	cr_assert_geq(t->pid, 0);
	if (t->pid == 0)
		become(plan);
}

void terminal_start(struct terminal *t, pid_t target)
{
	char pid[16];
	const struct terminal_plan plan = { .args = { "-p", pid } };

	snprintf(pid, sizeof(pid), "%d", target);
	terminal_start_plan(t, &plan);
}

/* Reads what is there within ms; false at the end. */
static bool take(struct terminal *t, int ms)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };
	ssize_t n;

	cr_assert_lt(t->len, sizeof(t->text) - 1, "it does not stop talking");
	if (poll(&p, 1, ms) <= 0)
		return true;
	n = read(t->fd, t->text + t->len, sizeof(t->text) - 1 - t->len);
	if (n <= 0)
		return false;
	t->len += (size_t)n;
	t->text[t->len] = '\0';
	return true;
}

bool terminal_await(struct terminal *t, const char *text)
{
	uint64_t end = now_ns() + LONGEST_NS;
	const char *at;

	while (!(at = strstr(t->text + t->seen, text)) && now_ns() < end)
		if (!take(t, 100))
			break;
	at = strstr(t->text + t->seen, text);
	if (at)
		t->seen = (size_t)(at - t->text) + strlen(text);
	return at != NULL;
}

void terminal_expect(struct terminal *t, const char *text)
{
	cr_assert(terminal_await(t, text), "no '%s' in: %s\nbefore it: %.*s", text,
		  t->text + t->seen, (int)t->seen, t->text);
}

void terminal_expect_none(struct terminal *t, const char *text, unsigned ms)
{
	uint64_t end = now_ns() + (uint64_t)ms * 1000000;

	while (now_ns() < end)
		if (!take(t, 20))
			break;
	cr_assert_null(strstr(t->text + t->seen, text), "'%s' in: %s", text, t->text + t->seen);
}

void terminal_type(struct terminal *t, const char *keys)
{
	cr_assert_eq(write(t->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

void terminal_end(struct terminal *t, int want)
{
	int status = 0;

	terminal_await(t, "\1never\1");
	for (int i = 0; i < 1000 && waitpid(t->pid, &status, WNOHANG) == 0; i++)
		sleep_ns(10000000);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == want, "status %#x; it said: %s",
		  status, t->text);
	close(t->fd);
}
