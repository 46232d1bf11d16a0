// SPDX-License-Identifier: GPL-3.0-or-later
#include "server.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#define WORDS	30
#define WAIT_MS 60000

static _Noreturn void become(int out, int err, const char **argv)
{
	const char *path = getenv("HEAPMEDIC");

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* a signal in the middle of a look for leaks can hang that */
	if (getenv("ASAN_OPTIONS"))
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	if (dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
		execv(path ? path : "./heapmedic", (char **)argv);
	_exit(126);
}

/* One line of its standard output, as an object. */
static json_t *line(int fd)
{
	char text[8192];
	size_t n = 0;
	json_t *o;

	do {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		cr_assert_gt(poll(&p, 1, WAIT_MS), 0, "it says nothing");
		cr_assert_eq(read(fd, text + n, 1), 1, "it has ended");
		n++;
	} while (text[n - 1] != '\n' && n < sizeof(text));
	o = json_loadb(text, n, 0, NULL);
	cr_assert_not_null(o, "%.*s", (int)n, text);
	return o;
}

void server_start(struct server *s, const char *const *args, const char *const *more)
{
	const char *argv[WORDS] = { "heapmedic", "--json" };
	size_t n = 2;
	int out[2], err[2];
	json_t *o;

	for (; *args; args++)
		argv[n++] = *args;
	argv[n++] = "serve";
	argv[n++] = "--listen";
	argv[n++] = "127.0.0.1:0";
	for (; *more; more++)
		argv[n++] = *more;
	cr_assert_lt(n, WORDS);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(err, O_CLOEXEC | O_NONBLOCK), 0);
	s->pid = fork();
	cr_assert_neq(s->pid, -1, "fork: %s", strerror(errno));
	if (s->pid == 0)
		become(out[1], err[1], argv);
	close(out[1]);
	close(err[1]);
	s->out = out[0];
	s->err = err[0];
	o = line(s->out);
	cr_assert_str_eq(json_text(o, "command"), "serve");
	cr_assert_eq(sscanf(json_text(o, "result.listen"), "127.0.0.1:%u", &s->port), 1);
	json_decref(o);
}

json_t *server_stop(struct server *s)
{
	int status = 0;
	json_t *o;

	cr_assert_eq(kill(s->pid, SIGTERM), 0);
	o = line(s->out);
	cr_assert_eq(waitpid(s->pid, &status, 0), s->pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", status);
	close(s->out);
	close(s->err);
	return o;
}

int server_connect(const struct server *s)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((in_port_t)s->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&in, sizeof(in)), 0, "%s",
		     strerror(errno));
	return fd;
}

char *server_answer(int fd)
{
	size_t len = 0, cap = 1 << 20;
	char *text = malloc(cap);
	ssize_t n;

	cr_assert_not_null(text);
	do {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		cr_assert_gt(poll(&p, 1, WAIT_MS), 0, "it neither answers nor closes");
		n = recv(fd, text + len, cap - len - 1, 0);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && len + 1 < cap);
	text[len] = '\0';
	close(fd);
	return text;
}

char *server_ask(const struct server *s, const char *request)
{
	int fd = server_connect(s);
	size_t left = strlen(request);

	while (left) {
		ssize_t n = send(fd, request, left, MSG_NOSIGNAL);

		/* it may have seen enough of it */
		if (n <= 0)
			break;
		request += n;
		left -= (size_t)n;
	}
	return server_answer(fd);
}

char *server_get(const struct server *s, const char *path)
{
	char request[512], *text, *body;

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	text = server_ask(s, request);
	cr_assert_eq(strncmp(text, "HTTP/1.1 200 ", 13), 0, "%s", text);
	body = strstr(text, "\r\n\r\n");
	cr_assert_not_null(body, "%s", text);
	memmove(text, body + 4, strlen(body + 4) + 1);
	return text;
}
