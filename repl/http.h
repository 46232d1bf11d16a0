// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_HTTP_H
#define HM_HTTP_H
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * A small server of pages that can only be read: GET and HEAD of the paths of a table, one request
 * per connection. Everything happens in http_work, on the thread that calls it. What a client can
 * cost is bounded: connections, the size of a request, the time that one may take.
 */
#define HTTP_CONNECTIONS 16		 /* a new one takes the place of the oldest */
#define HTTP_SECONDS	 5		 /* for a request and its answer; what pages take aside */
#define HTTP_MEMORY	 ((size_t)16384) /* for what a client sends */

struct http_text {
	const char *text; /* of the page's owner, until a page is made again */
	size_t len;
};

struct http_page {
	const char *path, *type; /* type: its Content-Type */
	/* 0, or -errno: then the answer is 500. */
	int (*make)(void *of, struct http_text *out);
};

struct http;
/* Takes over fd, which listens. pages (n) and of must stay valid. Exit 10 where it cannot start. */
HM_MUST_CHECK int http_open(int fd, const struct http_page *pages, size_t n, void *of,
			    struct http **out, struct diag *d);
/* What to poll(2) for reading, and until when (clock_now) at most, before http_work. */
int http_fd(const struct http *h);
uint64_t http_until(struct http *h);
/* Does what can be done without waiting. */
void http_work(struct http *h);
/* How many requests were answered so far. */
uint64_t http_requests(const struct http *h);
void http_close(struct http *h);
#endif
