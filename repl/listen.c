// SPDX-License-Identifier: GPL-3.0-or-later
#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 16

static int bad(const char *text, struct diag *d)
{
	return diag_fail(d, -EINVAL, HM_USAGE, "bad-listen",
			 "an address and a port as in 127.0.0.1:9748 or [::1]:9748",
			 "--listen: '%.60s' is no address to listen at", text);
}

static bool parse_port(const char *text, in_port_t *out)
{
	size_t len = strlen(text);
	unsigned long v;

	if (len == 0 || len > 5 || strspn(text, "0123456789") != len)
		return false;
	v = strtoul(text, NULL, 10);
	*out = htons((in_port_t)v);
	return v <= UINT16_MAX;
}

static bool set_v4(const char *host, in_port_t port, struct listen_at *out)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = port };

	if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
		return false;
	memcpy(&out->addr, &in, sizeof(in));
	out->len = sizeof(in);
	out->loopback = ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return true;
}

static bool set_v6(const char *host, in_port_t port, struct listen_at *out)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = port };

	if (inet_pton(AF_INET6, host, &in.sin6_addr) != 1)
		return false;
	memcpy(&out->addr, &in, sizeof(in));
	out->len = sizeof(in);
	/* ::ffff:127.0.0.1 is one as well, but whoever means that can write it plainly */
	out->loopback = IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
	return true;
}

int listen_parse(const char *text, struct listen_at *out, struct diag *d)
{
	const char *colon = strrchr(text, ':'), *host = text;
	size_t len = colon ? (size_t)(colon - text) : 0;
	char copy[INET6_ADDRSTRLEN];
	in_port_t port;
	bool v6;

	memset(out, 0, sizeof(*out));
	if (!colon)
		return parse_port(text, &port) && set_v4("127.0.0.1", port, out) ? 0 : bad(text, d);
	v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
	if (v6) {
		host++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(copy) || !parse_port(colon + 1, &port))
		return bad(text, d);
	memcpy(copy, host, len);
	copy[len] = '\0';
	if (!v6 && strcmp(copy, "localhost") == 0)
		snprintf(copy, sizeof(copy), "127.0.0.1");
	return (v6 ? set_v6(copy, port, out) : set_v4(copy, port, out)) ? 0 : bad(text, d);
}

const char *listen_text(const struct sockaddr_storage *addr, char buf[LISTEN_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (addr->ss_family == AF_INET6) {
		memcpy(&v6, addr, sizeof(v6));
		(void)!inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
		snprintf(buf, LISTEN_TEXT, "[%s]:%u", host, ntohs(v6.sin6_port));
	} else {
		memcpy(&v4, addr, sizeof(v4));
		(void)!inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		snprintf(buf, LISTEN_TEXT, "%s:%u", host, ntohs(v4.sin_port));
	}
	return buf;
}

/* The address of a server that has just ended can be had again (socket(7)); that of one which runs
 * cannot. */
static int bind_and_listen(int fd, const struct listen_at *at)
{
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)&at->addr, at->len) || listen(fd, BACKLOG))
		return -errno;
	return 0;
}

int listen_open(const struct listen_at *at, int *fd, char text[LISTEN_TEXT], struct diag *d)
{
	struct sockaddr_storage have = { 0 };
	socklen_t len = sizeof(have);
	int err = 0;

	listen_text(&at->addr, text);
	*fd = socket(at->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		err = -errno;
	if (!err)
		err = bind_and_listen(*fd, at);
	if (!err && getsockname(*fd, (struct sockaddr *)&have, &len))
		err = -errno;
	if (!err) {
		listen_text(&have, text);
		return 0;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return diag_fail(d, err, HM_CALL_FAILED, "listen-failed",
			 err == -EADDRINUSE ? "see who has it with: ss -ltnp; or give another port"
					    : "give an address and a port that this host has",
			 "cannot listen at %s: %s", text, strerror(-err));
}
