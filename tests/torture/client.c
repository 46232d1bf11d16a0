// SPDX-License-Identifier: GPL-3.0-or-later
#include "client.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/victim.h"

/* Hang detection only. */
#define ANSWER_NS  (60 * 1000000000ull)
#define STATEMENT  1024
#define TICK_NS	   2000000ull
#define FEW_ENOUGH 4096

void client_start(struct client *c, const char *name, client_work *work, const void *arg)
{
	c->name = name;
	c->said = mmap(NULL, sizeof(*c->said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	cr_assert_neq(c->said, MAP_FAILED);
	c->pid = fork();
	cr_assert_neq(c->pid, -1, "fork: %s", strerror(errno));
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		work(c->said, arg);
		_exit(0);
	}
	client_await(c, 1);
}

static void is_well(const struct client *c)
{
	int status = 0;
	pid_t ended = waitpid(c->pid, &status, WNOHANG);

	cr_assert_str_empty(c->said->wrong, "%s says: %s", c->name, c->said->wrong);
	cr_assert_eq(ended, 0, "%s has ended with %#x", c->name, status);
}

void client_await(const struct client *c, uint64_t answers)
{
	for (uint64_t end = now_ns() + ANSWER_NS;
	     __atomic_load_n(&c->said->answers, __ATOMIC_RELAXED) < answers; sleep_ns(TICK_NS)) {
		is_well(c);
		cr_assert_lt(now_ns(), end, "%s does not get on", c->name);
	}
}

void client_check(struct client *c)
{
	uint64_t before = __atomic_load_n(&c->said->answers, __ATOMIC_RELAXED);

	for (uint64_t end = now_ns() + ANSWER_NS;; sleep_ns(TICK_NS)) {
		is_well(c);
		if (__atomic_load_n(&c->said->answers, __ATOMIC_RELAXED) != before)
			return;
		cr_assert_lt(now_ns(), end, "%s waits for an answer", c->name);
	}
}

void client_stop(struct client *c)
{
	int status = 0;

	client_check(c);
	__atomic_store_n(&c->said->stop, true, __ATOMIC_RELAXED);
	for (uint64_t end = now_ns() + ANSWER_NS; waitpid(c->pid, &status, WNOHANG) == 0;
	     sleep_ns(TICK_NS))
		cr_assert_lt(now_ns(), end, "%s does not end", c->name);
	cr_assert_str_empty(c->said->wrong, "%s says: %s", c->name, c->said->wrong);
	cr_assert_eq(status, 0, "%s has ended with %#x", c->name, status);
}

void client_reset(struct client *c)
{
	__atomic_store_n(&c->said->answers, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->said->longest_ns, 0, __ATOMIC_RELAXED);
}

void client_wrong(struct client_said *said, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said->wrong, sizeof(said->wrong), fmt, ap);
	va_end(ap);
	_exit(1);
}

void client_answered(struct client_said *said, uint64_t asked_at)
{
	uint64_t took = now_ns() - asked_at;

	if (took > __atomic_load_n(&said->longest_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&said->longest_ns, took, __ATOMIC_RELAXED);
	__atomic_add_fetch(&said->answers, 1, __ATOMIC_RELAXED);
}

/* ---- a connection */

void talk_open(struct talk *t, struct client_said *said, const char *socket_path)
{
	const struct timeval limit = { .tv_sec = 60 };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	uint64_t end = now_ns() + ANSWER_NS;

	t->said = said;
	t->at = t->have = 0;
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
	while (t->fd >= 0 && connect(t->fd, (struct sockaddr *)&at, sizeof(at))) {
		if (now_ns() > end)
			client_wrong(said, "connect to %s: %s", socket_path, strerror(errno));
		sleep_ns(TICK_NS);
	}
	if (t->fd < 0 || setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		client_wrong(said, "socket: %s", strerror(errno));
}

void talk_close(struct talk *t)
{
	close(t->fd);
}

void talk_say(struct talk *t, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(t->fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			client_wrong(t->said, "the server does not listen: %s", strerror(errno));
		text += n;
		len -= (size_t)n;
	}
}

static void more(struct talk *t)
{
	ssize_t n = recv(t->fd, t->buf, sizeof(t->buf), 0);

	if (n <= 0)
		client_wrong(t->said, "the server does not answer: %s",
			     n == 0 ? "it has closed the connection" : strerror(errno));
	t->at = 0;
	t->have = (size_t)n;
}

void talk_line(struct talk *t, char *line, size_t size)
{
	size_t n = 0;

	for (;;) {
		char c;

		if (t->at == t->have)
			more(t);
		c = t->buf[t->at++];
		if (c == '\n')
			break;
		if (n + 1 < size && c != '\r')
			line[n++] = c;
	}
	line[n] = '\0';
}

void talk_expect(struct talk *t, const char *want)
{
	char line[200];

	talk_line(t, line, sizeof(line));
	if (strcmp(line, want) != 0)
		client_wrong(t->said, "the answer is \"%.100s\", not \"%.100s\"", line, want);
}

void talk_expect_bytes(struct talk *t, const char *want, size_t len)
{
	while (len > 0) {
		size_t n;

		if (t->at == t->have)
			more(t);
		n = t->have - t->at < len ? t->have - t->at : len;
		if (memcmp(t->buf + t->at, want, n) != 0)
			client_wrong(t->said, "the answer holds other bytes than it should");
		t->at += n;
		want += n;
		len -= n;
	}
}

/* ---- a client program that is fed */

static pid_t feed_start(const struct statements *s, int *feed)
{
	int in[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || fcntl(in[1], F_SETPIPE_SZ, FEW_ENOUGH) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(in[0], 0) < 0 || dup2(null, 1) < 0)
			_exit(126);
		execvp(s->argv[0], (char *const *)s->argv);
		_exit(126);
	}
	close(in[0]);
	*feed = in[1];
	return pid;
}

/* Each statement fills a quarter of the pipe, so that few are waiting when the end comes. */
void client_statements(struct client_said *said, const void *arg)
{
	const struct statements *s = arg;
	char line[STATEMENT];
	int feed = -1, status = 0;
	pid_t pid = feed_start(s, &feed);

	if (pid < 0)
		client_wrong(said, "starting %s: %s", s->argv[0], strerror(errno));
	memset(line, ' ', sizeof(line));
	memcpy(line, s->statement, strlen(s->statement));
	line[sizeof(line) - 1] = '\n';
	while (!__atomic_load_n(&said->stop, __ATOMIC_RELAXED)) {
		uint64_t start = now_ns();

		if (write(feed, line, sizeof(line)) != (ssize_t)sizeof(line))
			break;
		client_answered(said, start);
	}
	close(feed);
	if (waitpid(pid, &status, 0) != pid || status)
		client_wrong(said, "%s has ended with %#x: what it was answered was wrong",
			     s->argv[0], status);
}
