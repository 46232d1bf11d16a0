// SPDX-License-Identifier: GPL-3.0-or-later
/* `serve`, by clients that behave and clients that do not, and by Prometheus itself. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "server.h"
#include "victim.h"

static const char *const no_more[] = { NULL };

/* The value of the sample that begins so, -1 where there is none. */
static double sample(const char *text, const char *begin)
{
	const char *at = text;
	size_t len = strlen(begin);

	while (at && strncmp(at, begin, len) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	at = at ? strstr(at, "} ") : NULL;
	return at ? strtod(at + 2, NULL) : -1;
}

static double of_pid(const char *text, const char *name, pid_t pid)
{
	char begin[160];

	snprintf(begin, sizeof(begin), "%s{pid=\"%d\",", name, (int)pid);
	return sample(text, begin);
}

/* ---- requests */

static const struct {
	const char *request, *answer;
} requests[] = {
	{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 " },
	{ "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 " },
	{ "GET /metrics?debug=1 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 " },
	{ "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.1 200 " },
	{ "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 " },
	{ "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 " },
	{ "GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 " },
	{ "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 " },
	{ "GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 " },
	{ "GET /-/quit HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 " },
	{ "GET /trim HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 " },
	{ "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\ntrim", "HTTP/1.1 405 " },
	{ "POST /-/reload HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 " },
	{ "PUT /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n",
	  "HTTP/1.1 405 " },
	{ "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
	  "HTTP/1.1 405 " },
	{ "DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 " },
	{ "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 " },
	{ "CONNECT localhost:22 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 " },
	{ "trim /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 " },
};

/* What follows the headers. */
static const char *body_of(const char *answer)
{
	const char *at = strstr(answer, "\r\n\r\n");

	cr_assert_not_null(at, "%s", answer);
	return at + 4;
}

static void huge_request(const struct server *s)
{
	static char request[200000];
	char *text;

	snprintf(request, sizeof(request), "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Much: ");
	memset(request + strlen(request), 'a', sizeof(request) - strlen(request) - 5);
	memcpy(request + sizeof(request) - 5, "\r\n\r\n", 5);
	text = server_ask(s, request);
	/* it may not have read all of it, and what was sent then ends the connection */
	cr_expect(strncmp(text, "HTTP/1.1 431 ", 13) == 0 || !*text, "%.200s", text);
	free(text);
	memcpy(request, "GET /mmmmmmmm", 13);
	memset(request + 13, 'm', 100000);
	text = server_ask(s, request);
	cr_expect(strncmp(text, "HTTP/1.1 4", 10) == 0 || !*text, "%.200s", text);
	free(text);
}

Test(serve, what_can_be_asked)
{
	struct victim v;
	struct server s;
	char pid[16], *text;
	const char *args[] = { "-p", pid, NULL };
	json_t *o;

	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, no_more);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		bool head = strncmp(requests[i].request, "HEAD", 4) == 0;

		text = server_ask(&s, requests[i].request);
		cr_expect_eq(strncmp(text, requests[i].answer, strlen(requests[i].answer)), 0,
			     "%s: %s", requests[i].request, text);
		cr_expect_not_null(strstr(text, "Connection: close\r\n"), "%s", text);
		cr_expect_eq(strstr(text, " 405 ") != NULL,
			     strstr(text, "Allow: GET, HEAD") != NULL, "%s", text);
		cr_expect_eq(*body_of(text) == '\0', head, "%s", text);
		free(text);
	}
	/* no HTTP at all: the connection ends, with or without a word */
	text = server_ask(&s, "\x16\x03\x01\x02 what\r\n\r\n");
	cr_expect_null(strstr(text, " 200 "), "%s", text);
	free(text);
	huge_request(&s);
	text = server_get(&s, "/metrics");
	cr_expect_gt(of_pid(text, "heapmedic_rss", v.pid), 0, "%s", text);
	free(text);
	o = server_stop(&s);
	cr_expect_geq(json_int(o, "result.summary.requests"),
		      (long long)(sizeof(requests) / sizeof(requests[0])));
	json_decref(o);
	victim_stop(&v);
}

/* More connections that say nothing than there are places: the next one is served all the same. */
Test(serve, idle_clients_keep_nobody_out)
{
	struct victim v;
	struct server s;
	char pid[16], *text;
	const char *args[] = { "-p", pid, NULL };
	int fd[40];

	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, no_more);
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		fd[i] = server_connect(&s);
		cr_assert_eq(send(fd[i], "GET /me", i % 8, MSG_NOSIGNAL), (ssize_t)(i % 8));
	}
	text = server_get(&s, "/metrics");
	cr_expect_gt(of_pid(text, "heapmedic_rss", v.pid), 0, "%s", text);
	free(text);
	/* the first one was given up for that */
	free(server_answer(fd[0]));
	for (size_t i = 1; i < sizeof(fd) / sizeof(fd[0]); i++)
		close(fd[i]);
	json_decref(server_stop(&s));
	victim_stop(&v);
}

/* ---- whose metrics */

/* A program of a name that nobody else has; path + 5 is it. */
static void copy_victim(const char *name, char path[64])
{
	char copy[400];

	snprintf(path, 64, "/tmp/hms%d", (int)getpid());
	snprintf(copy, sizeof(copy), "cp %s %s", victim_path(name), path);
	cr_assert_eq(system(copy), 0);
}

static double up(const char *text, const char *target)
{
	char begin[120];

	snprintf(begin, sizeof(begin), "heapmedic_up{target=\"%s\"", target);
	return sample(text, begin);
}

/* Asks until up is that, for the same text is given again for a moment. */
static char *await_up(const struct server *s, const char *target, double wanted)
{
	for (int i = 0; i < 600; i++) {
		char *text = server_get(s, "/metrics");

		if (up(text, target) == wanted)
			return text;
		free(text);
		sleep_ns(100000000);
	}
	cr_assert(false, "heapmedic_up of %s never was %g", target, wanted);
	return NULL;
}

Test(serve, follows_a_restart)
{
	static const char *const often[] = { "--min-interval", "100ms", NULL };
	char path[64], *text;
	const char *args[] = { "-n", path + 5, "-n", "nobody-has-this", NULL };
	struct victim_plan plan = { .argv = { path } };
	struct victim v;
	struct server s;
	pid_t first;

	copy_victim("single", path);
	server_start(&s, args, often);
	text = await_up(&s, path + 5, 0);
	cr_expect_null(strstr(text, "heapmedic_rss"), "%s", text);
	free(text);
	victim_start(&v, &plan);
	first = v.pid;
	text = await_up(&s, path + 5, 1);
	cr_expect_gt(of_pid(text, "heapmedic_rss", first), 0, "%s", text);
	cr_expect_eq(up(text, "nobody-has-this"), 0, "%s", text);
	cr_expect_not_null(strstr(text, "\nheapmedic_scrape_seconds "), "%s", text);
	free(text);
	victim_stop(&v);
	text = await_up(&s, path + 5, 0);
	cr_expect_null(strstr(text, "heapmedic_rss"), "%s", text);
	free(text);
	victim_start(&v, &plan);
	text = await_up(&s, path + 5, 1);
	cr_expect_gt(of_pid(text, "heapmedic_rss", v.pid), 0, "%s", text);
	cr_expect_eq(of_pid(text, "heapmedic_rss", first), -1, "%s", text);
	free(text);
	json_decref(server_stop(&s));
	victim_stop(&v);
	unlink(path);
}

/* Within --min-interval the very same text is given again. */
Test(serve, the_same_for_a_while)
{
	static const char *const seldom[] = { "--min-interval", "1h", NULL };
	char pid[16], *a, *b;
	const char *args[] = { "-p", pid, NULL };
	struct victim v;
	struct server s;
	json_t *o;

	victim_start_named(&v, "single", NULL, NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, seldom);
	a = server_get(&s, "/metrics");
	b = server_get(&s, "/metrics");
	cr_expect_str_eq(a, b);
	free(a);
	free(b);
	o = server_stop(&s);
	cr_expect_eq(json_int(o, "result.summary.requests"), 2);
	cr_expect_eq(json_int(o, "result.summary.looks"), 1);
	json_decref(o);
	victim_stop(&v);
}

/* ---- jemalloc */

Test(serve, jemalloc_is_not_asked_by_itself)
{
	const struct victim_plan plan = { .argv = { "@jemlinked", "2" } };
	char pid[16], *text;
	const char *args[] = { "-p", pid, NULL };
	struct state *before = calloc(2, sizeof(*before)), *now = before + 1;
	struct victim v;
	struct server s;

	cr_assert_not_null(before);
	victim_start(&v, &plan);
	state_take(&v, before);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, no_more);
	text = server_get(&s, "/metrics");
	cr_expect_gt(of_pid(text, "heapmedic_rss", v.pid), 0);
	cr_expect_eq(of_pid(text, "heapmedic_jemalloc_allocated", v.pid), -1, "%s", text);
	free(text);
	state_look(&v, now);
	cr_expect_eq(now->our_threads, 0);
	cr_expect_eq(now->our_regions, 0);
	json_decref(server_stop(&s));
	state_same(&v, before, STATE_EXACT);
	victim_stop(&v);
	free(before);
}

/* One thread of ours waits there from one look to the next, and nothing is left at the end. */
Test(serve, jemalloc_by_one_thread_that_waits)
{
	static const char *const ask[] = { "--ask", "--min-interval", "100ms", NULL };
	const struct victim_plan plan = { .argv = { "@jemlinked", "2" } };
	char pid[16], *text;
	const char *args[] = { "-p", pid, NULL };
	struct state *now = calloc(1, sizeof(*now));
	struct victim v;
	struct server s;
	double first;
	pid_t ours;

	cr_assert_not_null(now);
	victim_start(&v, &plan);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, ask);
	text = server_get(&s, "/metrics");
	cr_expect_gt(of_pid(text, "heapmedic_jemalloc_allocated", v.pid), 0, "%s", text);
	state_look(&v, now);
	cr_assert_eq(now->our_threads, 1);
	/* it waits untraced */
	cr_expect_eq(now->halted, 0);
	ours = now->our_tid;
	/* until there was another look */
	first = of_pid(text, "heapmedic_look_timestamp_seconds", v.pid);
	cr_expect_gt(first, 0);
	/* what is counted back from now may differ by a moment */
	while (of_pid(text, "heapmedic_look_timestamp_seconds", v.pid) < first + 0.1) {
		free(text);
		sleep_ns(200000000);
		text = server_get(&s, "/metrics");
	}
	cr_expect_gt(of_pid(text, "heapmedic_jemalloc_allocated", v.pid), 0, "%s", text);
	free(text);
	state_look(&v, now);
	cr_expect_eq(now->our_threads, 1);
	cr_expect_eq(now->our_tid, ours);
	json_decref(server_stop(&s));
	state_look(&v, now);
	cr_expect_eq(now->our_threads, 0);
	cr_expect_eq(now->our_regions, 0);
	victim_stop(&v);
	free(now);
}

/* ---- what is refused */

Test(serve, refusals)
{
	const struct run_opts none = { 0 };
	char taken[32];
	const struct {
		const char *args[8];
		int exit;
		const char *says;
	} cases[] = {
		{ { "-n", "x", "serve", "--listen", taken, NULL }, 1, "Address already in use" },
		{ { "-n", "x", "serve", "--listen", "0.0.0.0:0", NULL }, 2, "--listen-anywhere" },
		{ { "-n", "x", "serve", "--listen", "[::]:0", NULL }, 2, "--listen-anywhere" },
		{ { "-n", "x", "serve", "--listen", "somewhere:80", NULL }, 2, "no address" },
		{ { "-n", "x", "serve", "--min-interval", "1ms", NULL }, 2, "too short" },
		{ { "-p", "x", "serve", NULL }, 2, "no process id" },
		{ { "serve", NULL }, 2, "needs a process" },
		{ { "-n", "x", "--passive", "serve", "--ask", NULL }, 4, "--passive" },
	};
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(taken, sizeof(taken), "127.0.0.1:%u", ntohs(in.sin_port));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;

		run_with(&r, &none, cases[i].args);
		run_expect(&r, cases[i].exit);
		cr_expect_not_null(strstr(r.err, cases[i].says), "%s", r.err);
		cr_expect_not_null(strstr(r.err, "; next: "), "%s", r.err);
		run_free(&r);
	}
	close(fd);
}

/* ---- Prometheus itself */

static unsigned free_port(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	close(fd);
	return ntohs(in.sin_port);
}

static bool is_installed(const char *name)
{
	char command[100];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

/* One job, each second; its files are all in dir. */
static pid_t prometheus_start(const char *dir, unsigned port, const struct server *s)
{
	char config[128], store[128], listen[64];
	FILE *f;
	pid_t pid;

	snprintf(config, sizeof(config), "--config.file=%s/prometheus.yml", dir);
	snprintf(store, sizeof(store), "--storage.tsdb.path=%s/data", dir);
	snprintf(listen, sizeof(listen), "--web.listen-address=127.0.0.1:%u", port);
	f = fopen(strchr(config, '/'), "we");
	cr_assert_not_null(f);
	fprintf(f,
		"scrape_configs:\n- job_name: heapmedic\n  scrape_interval: 1s\n"
		"  static_configs:\n  - targets: ['127.0.0.1:%u']\n",
		s->port);
	cr_assert_eq(fclose(f), 0);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(null, 1) >= 0 && dup2(null, 2) >= 0)
			execlp("prometheus", "prometheus", config, store, listen, NULL);
		_exit(126);
	}
	return pid;
}

/* The value of the one series that the query finds, NAN where there is none yet. */
static double prometheus_query(unsigned port, const char *query)
{
	const struct server at = { .port = port };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), there;
	char request[512], *text, *body;
	json_t *o, *value;
	double out = -1;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	there = connect(fd, (const struct sockaddr *)&in, sizeof(in)) == 0;
	close(fd);
	if (!there)
		return -1;
	snprintf(request, sizeof(request), "GET /api/v1/query?query=%s HTTP/1.0\r\n\r\n", query);
	text = server_ask(&at, request);
	body = strstr(text, "\r\n\r\n");
	o = body ? json_loads(body + 4, 0, NULL) : NULL;
	value = json_array_get(json_object_get(json_object_get(o, "data"), "result"), 0);
	value = json_array_get(json_object_get(value, "value"), 1);
	if (json_is_string(value))
		out = strtod(json_string_value(value), NULL);
	json_decref(o);
	free(text);
	return out;
}

/* A client that sends a byte now and then is given up, however long it goes on. */
static bool drip(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)!send(fd, "a", 1, MSG_NOSIGNAL);
	return poll(&p, 1, 0) > 0;
}

Test(serve, prometheus_scrapes_it)
{
	static const char *const more[] = { "--min-interval", "500ms", NULL };
	char dir[] = "/tmp/heapmedic-prometheus-XXXXXX", remove[80], pid[16], query[80];
	const char *args[] = { "-p", pid, NULL };
	unsigned port = free_port();
	int status, slow;
	bool dropped = false;
	double rss = -1;
	struct victim v;
	struct server s;
	pid_t prometheus;

	if (!is_installed("prometheus"))
		cr_skip_test("prometheus is missing");
	victim_start_named(&v, "retained", "1", NULL);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, more);
	slow = server_connect(&s);
	cr_assert_eq(send(slow, "GET /", 5, MSG_NOSIGNAL), 5);
	cr_assert_not_null(mkdtemp(dir));
	prometheus = prometheus_start(dir, port, &s);
	snprintf(query, sizeof(query), "heapmedic_rss%%7Bpid=%%22%s%%22%%7D", pid);
	for (int i = 0; i < 600 && (rss < 0 || !dropped); i++) {
		sleep_ns(200000000);
		rss = rss < 0 ? prometheus_query(port, query) : rss;
		dropped = drip(slow);
	}
	cr_expect(dropped);
	cr_expect_gt(rss, 16e6);
	cr_expect_float_eq(rss, (double)proc_number(v.pid, "smaps_rollup", "Rss:") * 1024, 4e6);
	cr_expect_eq(prometheus_query(port, "up%7Bjob=%22heapmedic%22%7D"), 1);
	cr_expect_eq(prometheus_query(port, "heapmedic_up"), 1);
	cr_assert_eq(kill(prometheus, SIGTERM), 0);
	cr_assert_eq(waitpid(prometheus, &status, 0), prometheus);
	close(slow);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	cr_expect_eq(system(remove), 0);
	json_decref(server_stop(&s));
	victim_stop(&v);
}

/* What promtool has to say against a name, a type or a text fails it. */
Test(serve, promtool_finds_nothing)
{
	static const char *const ask[] = { "--ask", NULL };
	const char *const check[] = { "check", "metrics", NULL };
	const struct victim_plan plan = { .argv = { "@jemlinked", "2" } };
	char pid[16], *text;
	/* quotes, a byte that is no UTF-8, and one that is given twice */
	const char *args[] = { "-p", pid, "-n", "nobody \"has\"\xe9 this\\", "-n", pid,
			       "-p", pid, NULL };
	struct run_opts o = { .program = "promtool" };
	struct victim v;
	struct server s;
	struct run r;

	if (!is_installed("promtool"))
		cr_skip_test("promtool is missing: it comes with prometheus");
	victim_start(&v, &plan);
	snprintf(pid, sizeof(pid), "%d", (int)v.pid);
	server_start(&s, args, ask);
	text = server_get(&s, "/metrics");
	cr_expect_gt(of_pid(text, "heapmedic_jemalloc_allocated", v.pid), 0, "%s", text);
	o.input = text;
	run_with(&r, &o, check);
	cr_expect_eq(r.exit, 0, "%s%s", r.out, r.err);
	cr_expect_str_eq(r.out, "");
	cr_expect_str_eq(r.err, "");
	run_free(&r);
	free(text);
	json_decref(server_stop(&s));
	victim_stop(&v);
}
