// SPDX-License-Identifier: GPL-3.0-or-later
/* A real server with a dynamic jemalloc: it answers all the time, keeps its data and gives memory
 * back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define KEYS   60000
#define KEPT   5000
#define MIB    (1024 * 1024)
#define DIR_AT "/tmp/heapmedic-redis-XXXXXX"

struct redis {
	struct victim v;
	char dir[sizeof(DIR_AT)], socket[64], log[64];
	int fd;
	FILE *in; /* its replies */
};

static int dial(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	for (int i = 0; i < 1000; i++) {
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
			return fd;
		sleep_ns(10000000);
	}
	cr_assert_fail("redis-server does not open its socket: %s", strerror(errno));
	return -1;
}

/* Its log is a file, so that nothing at all may appear on its standard streams. */
static void redis_start_with(struct redis *r, const char *env)
{
	struct victim_plan plan = {
		.argv = { "redis-server", "--port", "0", "--save", "", "--appendonly", "no",
			  "--loglevel", "notice", "--logfile", r->log, "--jemalloc-bg-thread", "no",
			  "--unixsocket", r->socket, "--dir", r->dir },
		.env = env,
		.silent = true,
	};

	snprintf(r->dir, sizeof(r->dir), "%s", DIR_AT);
	cr_assert_not_null(mkdtemp(r->dir));
	snprintf(r->socket, sizeof(r->socket), "%s/s", r->dir);
	snprintf(r->log, sizeof(r->log), "%s/log", r->dir);
	victim_start(&r->v, &plan);
	r->fd = dial(r->socket);
	r->in = fdopen(dup(r->fd), "r");
	cr_assert_not_null(r->in);
}

static void redis_start(struct redis *r)
{
	redis_start_with(r, NULL);
}

static void say(struct redis *r, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(r->fd, text, len, MSG_NOSIGNAL);

		cr_assert_gt(n, 0, "redis does not listen: %s", strerror(errno));
		text += n;
		len -= (size_t)n;
	}
}

static void hear(struct redis *r, const char *want)
{
	char line[4096];

	cr_assert_not_null(fgets(line, sizeof(line), r->in), "redis does not answer");
	line[strcspn(line, "\r\n")] = '\0';
	cr_assert_str_eq(line, want);
}

static void ask(struct redis *r, const char *question, const char *answer)
{
	say(r, question, strlen(question));
	hear(r, answer);
}

/* n inline commands FORMAT with a running number, in batches that fit the socket's buffers. */
static void ask_many(struct redis *r, const char *verb, int from, int to, const char *rest,
		     const char *answer)
{
	enum { BATCH = 50 };

	for (int i = from; i < to; i += BATCH) {
		for (int k = i; k < i + BATCH && k < to; k++) {
			char line[2048];
			int n = snprintf(line, sizeof(line), "%s key:%d%s\r\n", verb, k, rest);

			say(r, line, (size_t)n);
		}
		for (int k = i; k < i + BATCH && k < to; k++)
			hear(r, answer);
	}
}

static void fill(struct redis *r)
{
	char value[1024];

	memset(value, 'v', sizeof(value));
	value[0] = ' ';
	value[sizeof(value) - 1] = '\0';
	ask_many(r, "SET", 0, KEYS, value, "+OK");
	ask_many(r, "DEL", KEPT, KEYS, "", ":1");
}

static void redis_stop(struct redis *r)
{
	say(r, "SHUTDOWN NOSAVE\r\n", 17);
	victim_wait_exit(&r->v, 0);
	fclose(r->in);
	close(r->fd);
	unlink(r->log);
	unlink(r->socket);
	cr_assert_eq(rmdir(r->dir), 0, "redis left something in %s", r->dir);
}

static long long log_size(const struct redis *r)
{
	FILE *f = fopen(r->log, "re");
	long n;

	cr_assert_not_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	fclose(f);
	return n;
}

Test(redis, is_understood_and_trimmed)
{
	static struct state state;
	struct redis r;
	struct run run_check, run_trim, run_stats;
	long long said;
	json_t *o;

	redis_start(&r);
	fill(&r);
	state_take(&r.v, &state);
	said = log_size(&r);
	run(&run_check, r.v.pid, "--json", "check", NULL);
	run_expect(&run_check, 0);
	o = run_json(&run_check, 0, r.v.pid, "check");
	cr_assert(json_bool(o, "result.injectable"));
	json_decref(o);
	run(&run_stats, r.v.pid, "stats", NULL);
	run_expect(&run_stats, 0);
	cr_assert_not_null(strstr(run_stats.out, "jemalloc statistics"), "%s", run_stats.out);
	run(&run_trim, r.v.pid, "--json", "trim", NULL);
	run_expect(&run_trim, 0);
	o = run_json(&run_trim, 0, r.v.pid, "trim");
	cr_assert_geq(json_int(o, "result.returned_bytes"), 15ll * MIB, "%s", run_trim.out);
	cr_assert_str_eq(json_text(o, "result.allocators.0.name"), "jemalloc");
	/* what its jemalloc would return is not guessed */
	cr_assert(json_is_null(json_at(o, "result.predicted_bytes")), "%s", run_trim.out);
	json_decref(o);
	state_same(&r.v, &state, STATE_EXACT);
	ask(&r, "PING\r\n", "+PONG");
	ask(&r, "STRLEN key:17\r\n", ":1022");
	ask(&r, "DBSIZE\r\n", ":5000");
	cr_assert_eq(log_size(&r), said, "something was written to the server's log");
	run_free(&run_check);
	run_free(&run_stats);
	run_free(&run_trim);
	redis_stop(&r);
}

/* A client talks while sessions come and go: each answer is the right one. */
Test(redis, answers_during_thirty_sessions)
{
	static struct state state;
	struct redis r;

	redis_start(&r);
	fill(&r);
	state_take(&r.v, &state);
	for (int i = 0; i < 30; i++) {
		run_ok(r.v.pid, "trim", NULL);
		state_same(&r.v, &state, STATE_EXACT);
		ask_many(&r, "SET", 0, 100, " x", "+OK");
		ask_many(&r, "GET", 1000, 1001, "", "$1022");
		/* The value itself is the next line. */
		cr_assert_eq(fgetc(r.in), 'v');
		while (fgetc(r.in) != '\n')
			;
	}
	ask(&r, "PING\r\n", "+PONG");
	redis_stop(&r);
}

/* Only the own decay times are read: dirty_decay_ms of redis is jemalloc's default. */
Test(redis, mallctl_reads)
{
	struct redis r;
	struct run got;
	json_t *o;

	redis_start(&r);
	run(&got, r.v.pid, "--json", "mallctl", "opt.dirty_decay_ms", NULL);
	run_expect(&got, 0);
	o = run_json(&got, 0, r.v.pid, "mallctl");
	cr_assert_eq(json_int(o, "result.value"), 10000);
	json_decref(o);
	run_free(&got);
	redis_stop(&r);
}

/* A profile while it works: switched on, brought here, switched off. */
Test(redis, is_sampled)
{
	static struct state state;
	char path[96], line[256];
	unsigned stacks = 0;
	struct redis r;
	FILE *f;

	redis_start_with(&r, "MALLOC_CONF=prof:true,prof_active:false,lg_prof_sample:12");
	run_ok(r.v.pid, "prof", "on", NULL);
	fill(&r);
	state_take(&r.v, &state);
	snprintf(path, sizeof(path), "%s.heap", r.dir);
	run_ok(r.v.pid, "prof", "dump", path, NULL);
	run_ok(r.v.pid, "prof", "off", NULL);
	state_same(&r.v, &state, STATE_EXACT);
	ask(&r, "PING\r\n", "+PONG");
	ask(&r, "DBSIZE\r\n", ":5000");
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		stacks += line[0] == '@';
	fclose(f);
	unlink(path);
	cr_assert_gt(stacks, 5);
	redis_stop(&r);
}

/* A server's arenas before and after a purge: what was unused has gone, what is in use has not. */
Test(redis, arenas_and_purge)
{
	long long dirty, active;
	struct redis r;
	struct run got;
	json_t *o;

	redis_start(&r);
	fill(&r);
	run_ok(r.v.pid, "decay", "dirty", "all", "off", NULL);
	run(&got, r.v.pid, "--json", "arenas", NULL);
	run_expect(&got, 0);
	o = run_json(&got, 0, r.v.pid, "arenas");
	active = json_int(o, "result.jemalloc.total.active");
	dirty = json_int(o, "result.jemalloc.total.dirty");
	cr_assert_gt(active, KEPT * 1024ll);
	json_decref(o);
	run_free(&got);
	run(&got, r.v.pid, "--json", "purge", NULL);
	run_expect(&got, 0);
	o = run_json(&got, 0, r.v.pid, "purge");
	cr_assert_geq(json_int(o, "result.jemalloc.dirty.before"), dirty / 2);
	cr_assert_lt(json_int(o, "result.jemalloc.dirty.after"), MIB);
	cr_assert_gt(json_int(o, "result.jemalloc.active.after"), KEPT * 1024ll);
	json_decref(o);
	run_free(&got);
	ask(&r, "DBSIZE\r\n", ":5000");
	ask(&r, "STRLEN key:17\r\n", ":1022");
	redis_stop(&r);
}
