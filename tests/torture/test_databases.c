// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Databases. PostgreSQL is a family of processes with one thread each, all called directly, at rest
 * and in the middle of a query; MariaDB is one process with many threads. Their clients let the
 * server check its own results, and stop at the first error.
 */
#include <criterion/criterion.h>
#include <glob.h>
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

/* ---- PostgreSQL */

static const char postgres_setup[] =
	"create table numbers as select g as a, md5(g::text) as b from generate_series(1, 20000) "
	"g;\n"
	"analyze numbers;\n"
	"create function work() returns void language plpgsql as $$\n"
	"declare n bigint; total bigint; s text; began timestamptz;\n"
	"begin\n"
	"  select count(distinct md5(g::text)), sum(g) into n, total from generate_series(1, 5000) "
	"g;\n"
	"  if n <> 5000 or total <> 12502500 then raise 'a sum is wrong'; end if;\n"
	"  select string_agg(g::text, ',' order by g desc) into s from generate_series(1, 5000) "
	"g;\n"
	"  if length(s) <> 23892 then raise 'a string is wrong'; end if;\n"
	"  perform set_config('client_min_messages', 'warning', false);\n"
	"  create temp table if not exists mine (id int primary key, t text);\n"
	"  delete from mine;\n"
	"  insert into mine select g, repeat(md5(g::text), 3) from generate_series(1, 300) g;\n"
	"  select count(*) into n from mine where t = repeat(md5(id::text), 3);\n"
	"  if n <> 300 then raise 'a table is wrong'; end if;\n"
	"  began := clock_timestamp();\n"
	"  perform pg_sleep(0.005);\n"
	"  if clock_timestamp() - began < interval '5 ms' then raise 'pg_sleep was cut short'; end "
	"if;\n"
	"end $$;\n";

/* Two more processes for a moment, which the postmaster makes in a signal handler. */
static const char parallel[] = "select 1 / (count(*) = 20000 and sum(a) = 200010000 and "
			       "sum(length(b)) = 640000)::int from numbers where length(b) = 32;";

/* The newest version's programs; Debian has them in a directory for each version. */
static void postgres_programs(char *bin, size_t size)
{
	glob_t found;

	if (glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) || !found.gl_pathc)
		cr_skip_test("postgres is missing: install postgresql");
	snprintf(bin, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
	*strrchr(bin, '/') = '\0';
	globfree(&found);
}

struct postgres {
	struct service server;
	char bin[128], initdb[160], postgres[160], psql[160], data[96];
};

static void postgres_start(struct postgres *pg)
{
	struct service *s = &pg->server;

	service_needs("setpriv", "util-linux");
	postgres_programs(pg->bin, sizeof(pg->bin));
	service_dir(s, "postgres", "postgresql");
	snprintf(pg->initdb, sizeof(pg->initdb), "%s/initdb", pg->bin);
	snprintf(pg->postgres, sizeof(pg->postgres), "%s/postgres", pg->bin);
	snprintf(pg->psql, sizeof(pg->psql), "%s/psql", pg->bin);
	snprintf(pg->data, sizeof(pg->data), "%s/data", s->dir);
	service_run(s,
		    (const char *const[]){ pg->initdb, "-N", "-A", "trust", "-U", "postgres",
					   "--locale=C", "--no-instructions", "--wal-segsize=1",
					   "-D", pg->data, NULL },
		    NULL);
	service_start(s, (const char *const[]){ pg->postgres, "-D", pg->data, "-k", s->dir, "-h",
						"", "-F", "-c", "autovacuum_naptime=1s", "-c",
						"parallel_setup_cost=0", "-c",
						"min_parallel_table_scan_size=0", NULL });
	service_await(s, "ready to accept connections");
	service_run(s,
		    (const char *const[]){ pg->psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-h", s->dir,
					   "-U", "postgres", NULL },
		    service_file(s, "setup.sql", postgres_setup));
}

/* The postmaster and those of its children that stay. */
static size_t postgres_subjects(const struct postgres *pg, struct subject *s, size_t max)
{
	static char name[32][128];
	pid_t pid[32];
	size_t n = process_children(pg->server.v.pid, pid, 32), used = 1;

	s[0] = (struct subject){ .v = pg->server.v, .name = "the postmaster" };
	for (size_t i = 0; i < n && used < max; i++) {
		process_command(pid[i], name[i], sizeof(name[i]));
		/* one that has just been made is still called as the postmaster: it may be a worker
		 */
		if (strncmp(name[i], "postgres: ", 10) != 0 || strstr(name[i], "parallel worker") ||
		    strstr(name[i], "autovacuum worker"))
			continue;
		s[used++] = (struct subject){ .v.pid = pid[i], .name = name[i] };
	}
	for (size_t i = 0; i < used; i++) {
		s[i].commands = subject_glibc;
		/* their signal masks change from moment to moment */
		s[i].freedom = STATE_THREADS_VARY;
	}
	return used;
}

Test(databases, postgres, .timeout = LONG_ENOUGH)
{
	enum { CLIENTS = 4 };
	static const char *const names[CLIENTS] = { "postgres: a worker",
						    "postgres: another worker",
						    "postgres: a client in parallel",
						    "postgres: one that sleeps" };
	static const char *const what[CLIENTS] = { "select work();", "select work();", parallel,
						   "select pg_sleep(0.1);" };
	static struct statements feed[CLIENTS];
	static struct subject s[24];
	struct client c[CLIENTS];
	struct victim idle;
	struct postgres pg;
	struct subject sum;
	size_t n;
	long said;

	postgres_start(&pg);
	for (size_t i = 0; i < CLIENTS; i++) {
		feed[i] = (struct statements){ { pg.psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-h",
						 pg.server.dir, "-U", "postgres" },
					       what[i] };
		client_start(&c[i], names[i], client_statements, &feed[i]);
	}
	victim_start(&idle,
		     &(struct victim_plan){ { pg.psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-o",
					      "/dev/null", "-h", pg.server.dir, "-U", "postgres" },
					    .silent = true });
	for (size_t i = 0; i < CLIENTS; i++)
		client_await(&c[i], STATEMENTS_AHEAD + 1);
	said = log_size(pg.server.log);
	n = postgres_subjects(&pg, s, sizeof(s) / sizeof(s[0]));
	cr_assert_geq(n, 9, "PostgreSQL has only %zu processes", n);
	subject_many(s, n, torture_rounds(550, 20));
	for (size_t i = 0; i < CLIENTS; i++)
		client_stop(&c[i]);
	cr_assert_eq(write(idle.in, "select 1;\n", 10), 10);
	victim_stop(&idle);
	log_is_harmless(pg.server.log, said);
	subject_sum(s, n, &sum);
	service_stop(&pg.server, SIGINT);
	torture_figure(
		"postgres: %u sessions with %zu processes, %u refused (exit 6), the longest run "
		"%.0f ms (%s)",
		sum.sessions, n, sum.refused, (double)sum.longest_ns / 1e6, sum.longest);
	if (sum.refused)
		torture_figure("postgres, the last refusal: %s", sum.reason);
}

/* ---- MariaDB */

static const char mariadb_setup[] =
	"create database t character set utf8mb4;\n"
	"use t;\n"
	"create table kept (id int primary key auto_increment, t varchar(100)) engine=innodb;\n"
	"delimiter //\n"
	"create procedure work() begin\n"
	"  declare n, total bigint; declare s longtext; declare began datetime(6);\n"
	"  select count(distinct md5(seq)), sum(seq) into n, total from seq_1_to_5000;\n"
	"  if n <> 5000 or total <> 12502500 then\n"
	"    signal sqlstate '45000' set message_text = 'a sum is wrong'; end if;\n"
	"  set session group_concat_max_len = 1000000;\n"
	"  select group_concat(seq order by seq desc) into s from seq_1_to_5000;\n"
	"  if length(s) <> 23892 then\n"
	"    signal sqlstate '45000' set message_text = 'a string is wrong'; end if;\n"
	"  create temporary table if not exists mine (id int primary key, t varchar(100));\n"
	"  delete from mine;\n"
	"  insert into mine select seq, repeat(md5(seq), 3) from seq_1_to_300;\n"
	"  select count(*) into n from mine where t = repeat(md5(id), 3);\n"
	"  if n <> 300 then\n"
	"    signal sqlstate '45000' set message_text = 'a table is wrong'; end if;\n"
	"  insert into kept (t) values (md5(n));\n"
	"  set began = sysdate(6);\n"
	"  if sleep(0.005) <> 0 or timestampdiff(microsecond, began, sysdate(6)) < 4900 then\n"
	"    signal sqlstate '45000' set message_text = 'sleep was cut short'; end if;\n"
	"end//\n";

/* What both write is for one test: it need not be on the disk, nor have room to grow. */
#define MARIADB_IN_HASTE                                                                           \
	"--debug-no-sync", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0"

static void mariadb_start(struct service *m)
{
	char data[96], socket[160];

	service_needs("setpriv", "util-linux");
	service_needs("mariadbd", "mariadb-server");
	service_dir(m, "mysql", "mariadb-server");
	snprintf(data, sizeof(data), "--datadir=%s/data", m->dir);
	snprintf(socket, sizeof(socket), "--socket=%s", m->socket);
	service_run(m,
		    (const char *const[]){ "mariadb-install-db", "--no-defaults", "--skip-test-db",
					   "--auth-root-authentication-method=normal", data,
					   MARIADB_IN_HASTE, NULL },
		    NULL);
	service_start(m, (const char *const[]){ "mariadbd", "--no-defaults", "--skip-networking",
						"--innodb-buffer-pool-size=32M", "--skip-log-bin",
						data, socket, MARIADB_IN_HASTE, NULL });
	service_await(m, "ready for connections");
	service_run(m,
		    (const char *const[]){ "mariadb", "--no-defaults", "-uroot",
					   "--default-character-set=utf8mb4", socket, NULL },
		    service_file(m, "setup.sql", mariadb_setup));
}

Test(databases, mariadb, .timeout = LONG_ENOUGH)
{
	enum { CLIENTS = 3 };
	static const char *const names[CLIENTS] = { "mariadb: a client", "mariadb: another",
						    "mariadb: one that sleeps" };
	static const char *const what[CLIENTS] = { "call work();", "call work();",
						   "do sleep(0.1);" };
	static struct statements feed[CLIENTS];
	static struct subject s;
	struct client c[CLIENTS];
	static char socket[160];
	struct service m;
	long said;

	mariadb_start(&m);
	snprintf(socket, sizeof(socket), "--socket=%s", m.socket);
	for (size_t i = 0; i < CLIENTS; i++) {
		feed[i] = (struct statements){ { "mariadb", "--no-defaults", "-uroot", "-BN",
						 "--default-character-set=utf8mb4", socket, "t" },
					       what[i] };
		client_start(&c[i], names[i], client_statements, &feed[i]);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		client_await(&c[i], STATEMENTS_AHEAD + 1);
	said = log_size(m.log);
	s = (struct subject){ .v = m.v,
			      .name = "mariadbd",
			      .commands = subject_glibc,
			      .freedom = STATE_THREADS_VARY };
	subject_many(&s, 1, torture_rounds(500, 10));
	for (size_t i = 0; i < CLIENTS; i++)
		client_stop(&c[i]);
	log_is_harmless(m.log, said);
	service_stop(&m, SIGTERM);
	torture_figure("mariadb: %u sessions, %u refused (exit 6), the longest run %.0f ms (%s)",
		       s.sessions, s.refused, (double)s.longest_ns / 1e6, s.longest);
}
