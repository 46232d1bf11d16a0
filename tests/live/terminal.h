// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_TERMINAL_H
#define LIVE_TERMINAL_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * heapmedic on a terminal (a pty), as a person has it: keys go in, what it shows comes out. Nothing
 * here returns an error: what goes wrong fails the running test. It dies with its test.
 */
struct terminal {
	int fd;
	pid_t pid;
	char text[262144]; /* all that was shown so far, with its control characters */
	size_t len;
	size_t seen; /* up to here a test has looked */
};

/* How to start one. */
struct terminal_plan {
	const char *args[16]; /* behind the program's name, NULL at the end */
	/* NAME=VALUE to add; else TERM is dumb, and there is no home, inputrc, PAGER and NO_COLOR
	 */
	const char *env[8];
	unsigned short columns, rows; /* 0: 80 and 24 */
};

void terminal_start_plan(struct terminal *t, const struct terminal_plan *plan);
/* heapmedic -p TARGET, else all as it comes. */
void terminal_start(struct terminal *t, pid_t target);
/* Reads until text has been shown after what was looked at last, and looks past it; false at the
 * end, or after 20 s. */
bool terminal_await(struct terminal *t, const char *text);
/* The same; the test fails where it does not come. */
void terminal_expect(struct terminal *t, const char *text);
/* Reads what comes within ms and requires that text is not shown in it. */
void terminal_expect_none(struct terminal *t, const char *text, unsigned ms);
void terminal_type(struct terminal *t, const char *keys);
/* Waits for its end and requires this exit code. */
void terminal_end(struct terminal *t, int want);
#endif
