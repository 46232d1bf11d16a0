// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

const char *shell_dir(void)
{
	return dir;
}

void shell_begin(void)
{
	snprintf(dir, sizeof(dir), "/tmp/heapmedic-scripts-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(access("tests/live/automation.py", R_OK), 0,
		     "tests are run in the directory of the sources");
	cr_assert_eq(setenv("D", dir, 1), 0);
	cr_assert_eq(setenv("HEAPMEDIC", "./heapmedic", 0), 0);
	/* Debian's own: another one that comes first in $PATH has not its modules */
	cr_assert_eq(setenv("ASK", "/usr/bin/python3 tests/live/automation.py", 1), 0);
	cr_assert_eq(setenv("PYTHONDONTWRITEBYTECODE", "1", 1), 0);
}

void shell(struct run *r, const char *script)
{
	const struct run_opts o = { .program = "sh" };
	const char *args[] = { "-c", script, NULL };

	run_with(r, &o, args);
}

void shell_end(void)
{
	struct run r;

	shell(&r, "rm -rf \"$D\"");
	run_expect(&r, 0);
	run_free(&r);
}

void shell_need(const char *program, const char *package)
{
	char script[200];
	struct run r;
	bool there;

	snprintf(script, sizeof(script), "command -v %s || [ -e %s ]", program, program);
	shell(&r, script);
	there = r.exit == 0;
	run_free(&r);
	if (!there)
		cr_skip_test("%s is missing: install %s", program, package);
}

void shell_ok(const char *script)
{
	struct run r;

	shell(&r, script);
	cr_expect_eq(r.exit, 0, "%s: exit %d: %s%s", script, r.exit, r.out, r.err);
	cr_expect_str_eq(r.err, "", "%s: %s", script, r.err);
	run_free(&r);
}

void shell_fails(const char *script, const char *said)
{
	struct run r;

	shell(&r, script);
	cr_expect_neq(r.exit, 0, "%s: %s%s", script, r.out, r.err);
	cr_expect(strstr(r.out, said) || strstr(r.err, said), "%s: %s%s", script, r.out, r.err);
	run_free(&r);
}

void shell_words(const char *script, const char **words, size_t *n, size_t max)
{
	static struct run r;
	char *at;

	run_free(&r);
	shell(&r, script);
	cr_assert_eq(r.exit, 0, "%s: %s", script, r.err);
	for (at = strtok(r.out, "\n"); at; at = strtok(NULL, "\n")) {
		cr_assert_lt(*n, max - 1);
		words[(*n)++] = at;
	}
	words[*n] = NULL;
}
