// SPDX-License-Identifier: GPL-3.0-or-later
#include "http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../inject/clock.h"

struct client {
	int fd; /* -1: the place is free */
	uint64_t since;
};

struct http {
	struct MHD_Daemon *daemon;
	int fd; /* of its epoll(7) */
	const struct http_page *pages;
	size_t n;
	void *of;
	uint64_t requests;
	uint64_t making; /* how long pages have taken: no client's fault */
	unsigned turns;	 /* that are due without waiting: see stir */
	struct client client[HTTP_CONNECTIONS];
};

/*
 * The library's archive has TLS in it, which is never asked for: the linker gives all functions of
 * it that are missing this one (see the Makefile), so that the TLS library itself, which takes
 * longer to load than all else together, stays away.
 */
int http_no_tls(void);
int http_no_tls(void)
{
	return 0;
}

/* ---- one request */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
			      const char *text, size_t len)
{
	/* copied: the page may be made anew while a slow client reads this one */
	struct MHD_Response *r =
		MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (ok)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (ok)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (ok && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		ok = MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (ok)
		ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *text)
{
	return answer(c, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result give(struct http *h, struct MHD_Connection *c, const struct http_page *page)
{
	uint64_t began = clock_now();
	struct http_text t = { 0 };
	int err = page->make(h->of, &t);

	h->making += clock_now() - began;
	if (err)
		return say(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	return answer(c, MHD_HTTP_OK, page->type, t.text, t.len);
}

/* Called first when the header is there: the answer does not wait for a body. */
static enum MHD_Result on_request(void *of, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	struct http *h = of;

	(void)version, (void)data, (void)size, (void)state;
	h->requests++;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "this server is only read\n");
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(path, h->pages[i].path) == 0)
			return give(h, c, &h->pages[i]);
	return say(c, MHD_HTTP_NOT_FOUND, "there is no such page; see /\n");
}

/* ---- connections */

static uint64_t client_clock(const struct http *h)
{
	return clock_now() - h->making;
}

static struct client *oldest(struct http *h)
{
	struct client *old = NULL;

	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		if (h->client[i].fd >= 0 && (!old || h->client[i].since < old->since))
			old = &h->client[i];
	return old;
}

/*
 * Where all places were taken, the library listens again in one of the next turns after one of them
 * was given up, but nothing wakes it for that.
 */
static void stir(struct http *h)
{
	h->turns = 3;
}

/* The library sees the end of the connection, and closes it. */
static void drop(struct http *h, struct client *k)
{
	(void)shutdown(k->fd, SHUT_RDWR);
	stir(h);
}

static void enter(struct http *h, struct MHD_Connection *c, void **place)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	size_t i = 0, used = 0;

	for (size_t k = 0; k < HTTP_CONNECTIONS; k++)
		used += h->client[k].fd >= 0;
	while (i < HTTP_CONNECTIONS && h->client[i].fd >= 0)
		i++;
	/* the library lets in no more than there are places */
	if (!info || i == HTTP_CONNECTIONS)
		return;
	if (used + 1 == HTTP_CONNECTIONS)
		drop(h, oldest(h));
	h->client[i] = (struct client){ .fd = info->connect_fd, .since = client_clock(h) };
	*place = &h->client[i];
}

static void on_connection(void *of, struct MHD_Connection *c, void **place,
			  enum MHD_ConnectionNotificationCode what)
{
	struct client *k = *place;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		enter(of, c, place);
		return;
	}
	if (k)
		k->fd = -1;
	stir(of);
}

static void drop_late(struct http *h)
{
	uint64_t now = client_clock(h);

	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		if (h->client[i].fd >= 0 && now - h->client[i].since > HTTP_SECONDS * NS_PER_SEC)
			drop(h, &h->client[i]);
}

/* ---- the server */

int http_open(int fd, const struct http_page *pages, size_t n, void *of, struct http **out,
	      struct diag *d)
{
	struct http *h = calloc(1, sizeof(*h));
	const union MHD_DaemonInfo *info = NULL;

	*out = NULL;
	if (!h) {
		close(fd);
		return diag_internal(d, -ENOMEM, "the server");
	}
	*h = (struct http){ .pages = pages, .n = n, .of = of, .fd = -1 };
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		h->client[i].fd = -1;
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, h,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				     (unsigned)HTTP_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     HTTP_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
				     MHD_OPTION_END);
	if (h->daemon)
		info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	else
		close(fd);
	if (!info) {
		http_close(h);
		return diag_internal(d, -EIO, "starting the server");
	}
	h->fd = info->epoll_fd;
	*out = h;
	return 0;
}

int http_fd(const struct http *h)
{
	return h->fd;
}

uint64_t http_until(struct http *h)
{
	uint64_t now = clock_now(), until = UINT64_MAX;
	struct client *old = oldest(h);
	unsigned long long ms;

	if (h->turns)
		return now;
	if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
		until = now + ms * NS_PER_MS;
	/* a moment late is soon enough */
	if (old && old->since + h->making + (HTTP_SECONDS + 1) * NS_PER_SEC < until)
		until = old->since + h->making + (HTTP_SECONDS + 1) * NS_PER_SEC;
	return until;
}

void http_work(struct http *h)
{
	h->turns -= h->turns > 0;
	drop_late(h);
	(void)MHD_run(h->daemon);
}

uint64_t http_requests(const struct http *h)
{
	return h->requests;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	free(h);
}
