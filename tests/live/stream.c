// SPDX-License-Identifier: GPL-3.0-or-later
#include "stream.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#define WORDS 20

static _Noreturn void become(int out, const char *const *argv)
{
	const char *path = getenv("HEAPMEDIC");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* what a shell starts in the background ignores it, and heapmedic leaves that so */
	signal(SIGINT, SIG_DFL);
	/* a signal in the middle of a look for leaks can hang that */
	if (getenv("ASAN_OPTIONS"))
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	if (dup2(out, 1) >= 0)
		execv(path ? path : "./heapmedic", (char **)argv);
	_exit(126);
}

void stream_start(struct stream *s, const char *selector, const char *target,
		  const char *const *words)
{
	const char *argv[WORDS + 5] = { "heapmedic", selector, target, "--json" };
	size_t n = 0;
	int out[2];

	memset(s, 0, sizeof(*s));
	s->command = words[0];
	for (; words[n]; n++) {
		cr_assert_lt(n, WORDS);
		argv[4 + n] = words[n];
	}
	s->target = (pid_t)strtol(target, NULL, 10);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	cr_assert_neq(s->pid, -1, "fork: %s", strerror(errno));
	if (s->pid == 0)
		become(out[1], argv);
	close(out[1]);
	s->out = out[0];
}

json_t *stream_line(struct stream *s, pid_t target)
{
	struct run r = { .out = s->text };
	char *end;
	json_t *o;

	while (!(end = memchr(s->text, '\n', s->len))) {
		struct pollfd p = { .fd = s->out, .events = POLLIN };
		ssize_t n = -1;

		cr_assert_lt(s->len + 1, sizeof(s->text));
		cr_assert_gt(poll(&p, 1, STREAM_MS), 0, "%s says nothing", s->command);
		n = read(s->out, s->text + s->len, sizeof(s->text) - s->len - 1);
		cr_assert_gt(n, 0, "%s has ended", s->command);
		s->len += (size_t)n;
		s->text[s->len] = '\0';
	}
	o = run_json(&r, 0, target, s->command);
	s->len -= (size_t)(end + 1 - s->text);
	memmove(s->text, end + 1, s->len + 1);
	return o;
}

static bool is_summary(json_t *o)
{
	return json_object_get(json_at(o, "result"), "summary") != NULL;
}

json_t *stream_end(struct stream *s, int exit)
{
	int status = 0;
	json_t *o = NULL;
	char more;

	for (int i = 0; i < STREAM_LINES && !o; i++) {
		o = stream_line(s, s->target);
		cr_assert_eq(json_int(o, "exit"), is_summary(o) ? exit : 0);
		if (is_summary(o))
			break;
		json_decref(o);
		o = NULL;
	}
	cr_assert_not_null(o, "it does not sum up");
	cr_assert_eq(read(s->out, &more, 1), 0, "something stands behind the summary");
	cr_assert_eq(waitpid(s->pid, &status, 0), s->pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == exit, "%#x", status);
	close(s->out);
	return o;
}

json_t *stream_stop(struct stream *s, int sig)
{
	cr_assert_eq(kill(s->pid, sig), 0);
	return stream_end(s, 0);
}
