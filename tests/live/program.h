// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_PROGRAM_H
#define LIVE_PROGRAM_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Running heapmedic (the path in $HEAPMEDIC, else ./heapmedic) and looking at what it said. Like
 * the victims, nothing here returns an error.
 */
struct run {
	int exit; /* its exit code; -1 when it was killed by sig */
	int sig;
	pid_t pid;
	char *out, *err; /* all it said; freed by run_free */
	uint64_t ns;	 /* from start to end */
	long peak_kib;	 /* of memory that it had at once; what we have ourselves at least */
};

struct run_opts {
	const char *input;	/* its standard input; NULL: empty */
	bool nobody;		/* as the user 65534, without groups and capabilities */
	uint64_t kill_after_ns; /* SIGKILL it then; 0: let it finish (two minutes at most) */
	/* It is sent signals from outside: one in the middle of a sanitizer's look for leaks can
	 * hang that. */
	bool interrupted;
	bool may_not_trace;  /* as such a look does */
	const char *program; /* another one, found in $PATH; NULL: heapmedic */
};

#define RUN_ARGS 24
/* Runs it with these arguments (NULL ends them) and collects what it says. */
void run_with(struct run *r, const struct run_opts *o, const char *const *args);
void run_free(struct run *r);

/* heapmedic -p PID WORD... with everything default. The last argument is NULL. */
void run(struct run *r, pid_t pid, ...) __attribute__((sentinel));
/* Requires this exit code; shows what it said otherwise. An error is one line with something in it.
 */
void run_expect(const struct run *r, int exit);
/* run and run_expect in one, when nothing else is of interest. */
void run_ok(pid_t pid, ...) __attribute__((sentinel));

/*
 * Line i (0 is the first) of a --json run as an object. Requires the common keys: schema, time,
 * pid, comm, command, ok, exit, result, warnings, error. The caller ends it with json_decref.
 */
json_t *run_json(const struct run *r, size_t line, pid_t pid, const char *command);
size_t run_lines(const struct run *r);

/* Members by a path such as "result.held.max_us"; fail the test when they are missing or of another
 * kind. */
long long json_int(json_t *o, const char *path);
const char *json_text(json_t *o, const char *path);
bool json_bool(json_t *o, const char *path);
/* Is a warning with that code in this answer? */
bool json_warned(json_t *o, const char *code);
json_t *json_at(json_t *o, const char *path);
#endif
