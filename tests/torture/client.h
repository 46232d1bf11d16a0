// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef TORTURE_CLIENT_H
#define TORTURE_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A client of a server that is the subject: a process of its own that asks all the time, checks
 * each answer and notes the longest wait for one. As in tests/live, nothing here returns an error
 * to the test: what goes wrong fails it.
 */
struct client_said {
	uint64_t answers, longest_ns; /* the test may set them back */
	char wrong[256];	      /* what was wrong; "" if nothing */
	bool stop;		      /* set by the test */
};

struct client {
	pid_t pid;
	const char *name;
	struct client_said *said; /* shared with the process */
};

/* What it does: asks until *stop, then returns. arg as given to client_start. */
typedef void client_work(struct client_said *said, const void *arg);

void client_start(struct client *c, const char *name, client_work *work, const void *arg);
/* It is there, has nothing to complain of, and has had an answer since the last look. */
void client_check(struct client *c);
/* Waits until it has had that many answers in all. */
void client_await(const struct client *c, uint64_t answers);
/* client_check, then ends it, and requires that it ends in order. */
void client_stop(struct client *c);
/* Forgets the longest wait and the number of answers. */
void client_reset(struct client *c);

/* For the work itself. Ends the process with what is wrong. */
__attribute__((noreturn, format(printf, 2, 3))) void client_wrong(struct client_said *said,
								  const char *fmt, ...);
void client_answered(struct client_said *said, uint64_t asked_at);

/* A connection to a socket of the unix domain, waited for up to 60 s (NULL said: fails the test).
 */
struct talk {
	int fd;
	struct client_said *said;
	size_t at, have;
	char buf[65536];
};
void talk_open(struct talk *t, struct client_said *said, const char *socket);
void talk_close(struct talk *t);
void talk_say(struct talk *t, const char *text, size_t len);
/* The next line without its end, at most size - 1 bytes of it. */
void talk_line(struct talk *t, char *line, size_t size);
/* The next line must be this one. */
void talk_expect(struct talk *t, const char *want);
/* The next len bytes must be these. */
void talk_expect_bytes(struct talk *t, const char *want, size_t len);

/*
 * A client program that reads statements, one a line, from its standard input, and ends with exit 0
 * only if all of them were good: it is given the same one until the end.
 */
struct statements {
	const char *argv[16];
	const char *statement;
};
/* So many are written before the first has surely been carried out: the pipe and the program hold
 * the others. */
#define STATEMENTS_AHEAD 10
client_work client_statements; /* arg is a struct statements */
#endif
