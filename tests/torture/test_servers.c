// SPDX-License-Identifier: GPL-3.0-or-later
/* Servers whose clients check each answer, and how long the longest took. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "service.h"
#include "subject.h"
#include "torture.h"

#define LONG_ENOUGH 3600

/* ---- redis */

static const char *const redis_commands[] = {
	"trim",	 "stats", "mallctl opt.dirty_decay_ms", "trim",	   "mallctl stats.resident",
	"check", "trim",  "mallctl arenas.narenas",	"threads", "stats",
	"bt",	 NULL,
};

/* One question at a time: what a user of the server waits for. */
static void redis_asks(struct client_said *said, const void *socket)
{
	char question[128], number[32];
	static struct talk t;

	talk_open(&t, said, socket);
	for (unsigned n = 0; !said->stop; n++) {
		uint64_t start = now_ns();

		talk_say(&t, question,
			 (size_t)snprintf(question, sizeof(question), "SET asked:%u %u\r\n",
					  n % 1000, n));
		talk_expect(&t, "+OK");
		client_answered(said, start);
		start = now_ns();
		talk_say(
			&t, question,
			(size_t)snprintf(question, sizeof(question), "GET asked:%u\r\n", n % 1000));
		snprintf(number, sizeof(number), "$%d",
			 snprintf(question, sizeof(question), "%u", n));
		talk_expect(&t, number);
		talk_expect(&t, question);
		client_answered(said, start);
	}
	talk_close(&t);
}

/* Values of all sizes come and go, fifty at once. */
static void redis_loads(struct client_said *said, const void *socket)
{
	enum { BATCH = 50 };
	static char value[3000], line[4096];
	static struct talk t;

	talk_open(&t, said, socket);
	memset(value, 'v', sizeof(value));
	for (unsigned n = 0; !said->stop; n += BATCH) {
		uint64_t start = now_ns();

		for (unsigned k = n; k < n + BATCH; k++)
			talk_say(&t, line,
				 (size_t)snprintf(line, sizeof(line),
						  "SET load:%u %.*s\r\nSTRLEN load:%u\r\n"
						  "DEL load:%u\r\n",
						  k % 20000, (int)(1 + k * 31 % 2999), value,
						  k % 20000, (k + 10000) % 20000));
		for (unsigned k = n; k < n + BATCH; k++) {
			talk_expect(&t, "+OK");
			snprintf(line, sizeof(line), ":%u", 1 + k * 31 % 2999);
			talk_expect(&t, line);
			talk_expect(&t, k < 10000 ? ":0" : ":1");
		}
		client_answered(said, start);
	}
	talk_close(&t);
}

/* How long the clients waited at most while nothing was done to the server. */
static double calm(struct client *c)
{
	uint64_t ns;

	client_reset(c);
	sleep_ns(torture_rounds(3000, 100) * 1000000ull);
	ns = c->said->longest_ns;
	client_reset(c);
	return (double)ns / 1e6;
}

static void figure(const char *name, const struct subject *s, size_t subjects, double before,
		   const struct client *c)
{
	struct subject sum;

	subject_sum(s, subjects, &sum);
	torture_figure(
		"%s: %u sessions, %u refused (exit 6), %llu answers, the longest wait for one "
		"%.1f ms, without sessions %.1f ms",
		name, sum.sessions, sum.refused, (unsigned long long)c->said->answers,
		(double)c->said->longest_ns / 1e6, before);
}

/*
 * A thread of ours that calls jemalloc is one more that uses it, and redis has its background
 * threads on: jemalloc may start one for the new arena, from a thread of its own, with the
 * descriptors that all others have.
 */
static void only_jemalloc_has_new_threads(const struct subject *s)
{
	pid_t tid[STATE_MAX];
	size_t n = proc_tids(s->v.pid, tid, STATE_MAX);

	for (size_t i = 0; i < n; i++) {
		char path[64], name[32] = "", kin[64] = "";
		bool old = false;
		FILE *f;

		for (size_t k = 0; k < s->before.threads; k++)
			old |= s->before.thread[k].tid == tid[i];
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", s->v.pid, tid[i]);
		f = fopen(path, "re");
		cr_assert(f && fgets(name, sizeof(name), f));
		fclose(f);
		cr_assert(old || strcmp(name, "jemalloc_bg_thd\n") == 0, "a thread %s is new",
			  name);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/3", s->v.pid, tid[i]);
		cr_assert_gt(readlink(path, kin, sizeof(kin) - 1), 0,
			     "%s does not have the descriptors of the server", name);
	}
}

Test(servers, redis, .timeout = LONG_ENOUGH)
{
	static struct subject s;
	struct client ask, load;
	struct service r;
	double before;
	long said;

	service_needs("redis-server", "redis-server");
	service_dir(&r, NULL, NULL);
	service_start(&r, (const char *const[]){ "redis-server", "--port", "0", "--save", "",
						 "--appendonly", "no", "--unixsocket", r.socket,
						 NULL });
	service_await(&r, "ready to accept connections");
	client_start(&ask, "redis: the client that asks", redis_asks, r.socket);
	client_start(&load, "redis: the client that loads", redis_loads, r.socket);
	said = log_size(r.log);
	before = calm(&ask);
	s = (struct subject){ .v = r.v, .name = "redis-server", .commands = redis_commands };
	s.freedom = STATE_THREADS_VARY;
	subject_begin(&s);
	for (unsigned i = torture_rounds(500, 12); i > 0; i--)
		subject_session(&s);
	subject_end(&s);
	only_jemalloc_has_new_threads(&s);
	client_check(&ask);
	client_check(&load);
	figure("redis", &s, 1, before, &ask);
	client_stop(&ask);
	client_stop(&load);
	log_is_harmless(r.log, said);
	service_stop(&r, SIGTERM);
}

/* ---- memcached */

static void memcached_asks(struct client_said *said, const void *socket)
{
	static char value[20000], line[256];
	static struct talk t;

	talk_open(&t, said, socket);
	for (unsigned n = 0; !said->stop; n++) {
		size_t len = 1 + n * 37 % sizeof(value);
		uint64_t start = now_ns();

		memset(value, 'a' + (int)(n % 26), sizeof(value));
		talk_say(&t, line,
			 (size_t)snprintf(line, sizeof(line), "set key:%u 0 0 %zu\r\n", n % 5000,
					  len));
		talk_say(&t, value, len);
		talk_say(&t, "\r\n", 2);
		talk_expect(&t, "STORED");
		client_answered(said, start);
		start = now_ns();
		talk_say(&t, line,
			 (size_t)snprintf(line, sizeof(line), "get key:%u\r\n", n % 5000));
		snprintf(line, sizeof(line), "VALUE key:%u 0 %zu", n % 5000, len);
		talk_expect(&t, line);
		talk_expect_bytes(&t, value, len);
		talk_expect_bytes(&t, "\r\n", 2);
		talk_expect(&t, "END");
		client_answered(said, start);
	}
	talk_close(&t);
}

Test(servers, memcached, .timeout = LONG_ENOUGH)
{
	static struct subject s;
	struct client ask;
	struct service m;
	double before;
	long said;

	service_needs("memcached", "memcached");
	service_dir(&m, "memcache", "memcached");
	service_start(&m, (const char *const[]){ "memcached", "-s", m.socket, "-m", "64", "-t", "4",
						 NULL });
	client_start(&ask, "memcached: the client", memcached_asks, m.socket);
	said = log_size(m.log);
	before = calm(&ask);
	s = (struct subject){ .v = m.v, .name = "memcached", .commands = subject_glibc };
	subject_begin(&s);
	for (unsigned i = torture_rounds(500, 10); i > 0; i--)
		subject_session(&s);
	subject_end(&s);
	client_check(&ask);
	figure("memcached", &s, 1, before, &ask);
	client_stop(&ask);
	log_is_harmless(m.log, said);
	service_stop(&m, SIGTERM);
}

/* ---- nginx: a master that sleeps in sigsuspend(2), and workers of one thread each */

enum { FILES = 3, FILE_SIZE = 150000 };

static const char nginx_conf[] = "daemon off;\n"
				 "worker_processes 2;\n"
				 "pid pid;\n"
				 "error_log log warn;\n"
				 "events { worker_connections 128; }\n"
				 "http {\n"
				 "  access_log off;\n"
				 "  client_body_temp_path body; proxy_temp_path proxy;\n"
				 "  fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;\n"
				 "  scgi_temp_path scgi;\n"
				 "  server {\n"
				 "    listen unix:socket;\n"
				 "    root .;\n"
				 "    location /copied/ { alias ./; sendfile off; }\n"
				 "    location /sent/ { alias ./; sendfile on; }\n"
				 "  }\n"
				 "}\n";

static void body_of(unsigned file, char *out)
{
	for (unsigned i = 0; i < FILE_SIZE; i++)
		out[i] = (char)('a' + (i * (file + 3) + i / 1000) % 26);
	out[FILE_SIZE] = '\0';
}

static void one_file(struct talk *t, unsigned n, bool last, const char *want)
{
	char line[256], *value;
	long length = -1;

	talk_say(t, line,
		 (size_t)snprintf(line, sizeof(line),
				  "GET /%s/file%u HTTP/1.1\r\nHost: here\r\nConnection: %s\r\n\r\n",
				  n % 2 ? "copied" : "sent", n % FILES,
				  last ? "close" : "keep-alive"));
	talk_expect(t, "HTTP/1.1 200 OK");
	for (;;) {
		talk_line(t, line, sizeof(line));
		if (!line[0])
			break;
		value = strchr(line, ':');
		if (value && strncasecmp(line, "content-length:", 15) == 0)
			length = strtol(value + 1, NULL, 10);
	}
	if (length != FILE_SIZE)
		client_wrong(t->said, "a file of %d bytes comes with %ld", FILE_SIZE, length);
	talk_expect_bytes(t, want, FILE_SIZE);
}

/* A connection for every ten files. */
static void nginx_asks(struct client_said *said, const void *socket)
{
	static char body[FILES][FILE_SIZE + 1];
	static struct talk t;

	for (unsigned i = 0; i < FILES; i++)
		body_of(i, body[i]);
	for (unsigned n = 0; !said->stop; n++) {
		uint64_t start = now_ns();

		if (n % 10 == 0)
			talk_open(&t, said, socket);
		one_file(&t, n, n % 10 == 9, body[n % FILES]);
		client_answered(said, start);
		if (n % 10 == 9)
			talk_close(&t);
	}
}

static size_t master_and_workers(const struct service *ng, struct subject *s, size_t max)
{
	pid_t pid[16];
	size_t n = process_children(ng->v.pid, pid, max - 1);

	s[0] = (struct subject){ .v = ng->v, .name = "nginx: master", .commands = subject_glibc };
	for (size_t i = 0; i < n; i++)
		s[i + 1] = (struct subject){ .v.pid = pid[i],
					     .name = "nginx: worker",
					     .commands = subject_glibc };
	return n + 1;
}

/* The master still hears its signals, and makes workers that are as good as those before. */
static void nginx_starts_over(const struct service *ng, const struct subject *s, size_t n)
{
	cr_assert_eq(kill(ng->v.pid, SIGHUP), 0);
	for (size_t i = 1; i < n; i++) {
		uint64_t end = now_ns() + 30000000000ull;

		while (proc_state(s[i].v.pid)) {
			cr_assert_lt(now_ns(), end, "a worker does not end after SIGHUP");
			sleep_ns(5000000);
		}
	}
}

Test(servers, nginx, .timeout = LONG_ENOUGH)
{
	static char body[FILE_SIZE + 1];
	static struct subject s[3];
	struct client ask;
	struct service ng;
	double before;
	size_t n;
	long said;

	service_needs("nginx", "nginx");
	service_dir(&ng, NULL, NULL);
	service_file(&ng, "conf", nginx_conf);
	for (unsigned i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file%u", i);
		body_of(i, body);
		service_file(&ng, name, body);
	}
	service_start(&ng, (const char *const[]){ "nginx", "-p", ng.dir, "-c", "conf", "-e", "log",
						  NULL });
	for (int round = 0; round < 2; round++) {
		client_start(&ask, "nginx: the client", nginx_asks, ng.socket);
		/* the first worker answers when the second one may not be there yet */
		for (uint64_t end = now_ns() + 30000000000ull;; sleep_ns(5000000)) {
			n = master_and_workers(&ng, s, sizeof(s) / sizeof(s[0]));
			if (n == 3 || now_ns() > end)
				break;
		}
		cr_assert_eq(n, 3, "nginx has %zu processes", n);
		said = log_size(ng.log);
		before = calm(&ask);
		subject_many(s, n, torture_rounds(250, 8));
		client_check(&ask);
		figure("nginx", s, n, before, &ask);
		client_stop(&ask);
		log_is_harmless(ng.log, said);
		if (round == 0)
			nginx_starts_over(&ng, s, n);
	}
	service_stop(&ng, SIGTERM);
}
