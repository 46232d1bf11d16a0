// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef LIVE_SERVER_H
#define LIVE_SERVER_H
#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

/* `heapmedic serve` on a port of its own, and a client that says exactly what it is told to.
 * Nothing here returns an error. */
struct server {
	pid_t pid;
	unsigned port;
	int out, err; /* its standard output, after the first line, and its standard error */
};

/* heapmedic --json ARGS... serve --listen 127.0.0.1:0 MORE...; each list ends with NULL. */
void server_start(struct server *s, const char *const *args, const char *const *more);
/* SIGTERM, and requires exit 0. Returns its summary; the caller ends it. */
json_t *server_stop(struct server *s);
/* A connection. */
int server_connect(const struct server *s);
/* All that it answers until it closes the connection. text is allocated. */
char *server_answer(int fd);
/* One request, sent as it is. */
char *server_ask(const struct server *s, const char *request);
/* GET path: the answer's body, after it was required to be 200. */
char *server_get(const struct server *s, const char *path);
#endif
