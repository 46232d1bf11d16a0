// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_LISTEN_H
#define HM_LISTEN_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../inject/diag.h"

/* Where `serve` listens. */
#define LISTEN_TEXT 64 /* room for an address with its port */
struct listen_at {
	struct sockaddr_storage addr;
	socklen_t len;
	bool loopback; /* only this machine can reach it */
};

/*
 * "127.0.0.1:9748", "[::1]:9748", "localhost:9748", or a port alone, which is one of 127.0.0.1.
 * Port 0 is any that is free. Names are not looked up. Exit 2 "bad-listen". Pure.
 */
HM_MUST_CHECK int listen_parse(const char *text, struct listen_at *out, struct diag *d);
/* The other way round. buf is returned. */
const char *listen_text(const struct sockaddr_storage *addr, char buf[LISTEN_TEXT]);
/*
 * A socket that listens there; *fd is the caller's to close, text gets the address with the port
 * that it has. Exit 1 "listen-failed" where the kernel refuses the address.
 */
HM_MUST_CHECK int listen_open(const struct listen_at *at, int *fd, char text[LISTEN_TEXT],
			      struct diag *d);
#endif
