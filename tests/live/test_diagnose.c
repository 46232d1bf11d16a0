// SPDX-License-Identifier: GPL-3.0-or-later
/* What `diagnose` and `facts` say of programs whose memory is known: the verdict, its evidence, and
 * the bytes that each remedy is to bring. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define MIB (1024ll * 1024)

static json_t *ask(pid_t pid, bool passive, const char *command)
{
	struct run r;
	json_t *o;

	if (passive)
		run(&r, pid, "--passive", "--json", command, NULL);
	else
		run(&r, pid, "--json", command, NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 1);
	o = run_json(&r, 0, pid, command);
	run_free(&r);
	return o;
}

static json_t *fact(json_t *o, const char *name)
{
	json_t *v = json_object_get(json_at(o, "result.facts"), name);

	cr_assert_not_null(v, "no fact %s, not even an unknown one", name);
	return v;
}

static long long fact_int(json_t *o, const char *name)
{
	cr_assert(json_is_integer(fact(o, name)), "%s is not known", name);
	return json_integer_value(fact(o, name));
}

/* The line of that action with that text in it, or NULL. */
static json_t *advice(json_t *o, const char *action, const char *text)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.advice"), i, row)
	{
		if (!strcmp(json_text(row, "action"), action) &&
		    strstr(json_text(row, "text"), text))
			return row;
	}
	return NULL;
}

static void check_rows(json_t *o)
{
	static const char *const origins[] = { "kernel", "passive", "called" };
	long long sum = json_int(o, "result.remainder_bytes");
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.rows"), i, row)
	{
		bool known = false;

		cr_assert_gt(strlen(json_text(row, "owner")), 0);
		cr_assert_not_null(json_text(row, "detail"));
		cr_assert_geq(json_int(row, "swap_bytes"), 0);
		for (size_t k = 0; k < 3; k++)
			known |= !strcmp(json_text(row, "origin"), origins[k]);
		cr_assert(known, "%s", json_text(row, "origin"));
		sum += json_int(row, "resident_bytes");
	}
	cr_assert_eq(sum, fact_int(o, "rss"), "the rows do not add up");
}

/* What is true of any answer. */
static void check_whole(json_t *o)
{
	json_t *row, *v;
	const char *name;
	size_t i;

	cr_assert_gt(strlen(json_text(o, "result.verdict")), 0);
	cr_assert_gt(strlen(json_text(o, "result.summary")), 0);
	check_rows(o);
	/* each fact that is known says where it is from, and no other does */
	json_object_foreach(json_at(o, "result.facts"), name, v)
	{
		json_t *origin = json_object_get(json_at(o, "result.origins"), name);

		cr_assert_eq(json_is_string(origin), !json_is_null(v), "%s", name);
	}
	json_array_foreach(json_at(o, "result.allocators"), i, row)
	{
		cr_assert_gt(strlen(json_text(row, "name")), 0);
		cr_assert_not_null(json_text(row, "version"));
		cr_assert_not_null(json_text(row, "symbol_prefix"));
		cr_assert_gt(strlen(json_text(row, "linkage")), 0);
		json_bool(row, "owns_malloc");
	}
	json_array_foreach(json_at(o, "result.advice"), i, row)
	{
		json_t *expected = json_at(row, "expected_bytes");

		cr_assert_gt(strlen(json_text(row, "action")), 0);
		cr_assert_gt(strlen(json_text(row, "text")), 0);
		cr_assert(json_is_null(expected) || json_integer_value(expected) > 0);
	}
}

/* Both ways of asking: where there is no jemalloc, nobody is called or held in either. */
static json_t *diagnose(struct victim *v, const char *verdict)
{
	static struct state state;
	json_t *o, *passive;

	state_take(v, &state);
	o = ask(v->pid, false, "diagnose");
	passive = ask(v->pid, true, "diagnose");
	cr_assert_str_eq(json_text(o, "result.verdict"), verdict, "%s",
			 json_text(o, "result.summary"));
	cr_assert_str_eq(json_text(passive, "result.verdict"), verdict);
	check_whole(o);
	check_whole(passive);
	state_same(v, &state, STATE_EXACT);
	json_decref(passive);
	return o;
}

static long long predicted(pid_t pid)
{
	struct run r;
	long long bytes;
	json_t *o;

	run(&r, pid, "--json", "--dry-run", "trim", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, pid, "trim");
	bytes = json_int(o, "result.predicted_bytes");
	json_decref(o);
	run_free(&r);
	return bytes;
}

/* Eight arenas of 37.5 MiB that are free up to a pin. */
Test(diagnose, retained)
{
	struct victim v;
	struct run r;
	json_t *o, *line, *trim;
	long long expected;

	victim_start_named(&v, "retained", NULL, NULL);
	o = diagnose(&v, "retained");
	line = advice(o, "trim", "malloc_trim(0)");
	cr_assert_not_null(line);
	expected = json_int(line, "expected_bytes");
	cr_assert_eq(expected, predicted(v.pid));
	cr_assert_eq(expected, fact_int(o, "glibc.trimmable"));
	cr_assert_geq(expected, 299 * MIB);
	line = advice(o, "restart", "MALLOC_ARENA_MAX=2");
	cr_assert_not_null(line);
	/* those of six arenas, of the main arena nearly nothing */
	cr_assert_geq(json_int(line, "expected_bytes"), 6 * 37 * MIB);
	cr_assert_leq(json_int(line, "expected_bytes"), 6 * 38 * MIB);
	cr_assert_eq(fact_int(o, "glibc.arenas"), 9);
	cr_assert_eq(fact_int(o, "threads"), 9);
	json_decref(o);
	run(&r, v.pid, "--json", "trim", NULL);
	run_expect(&r, 0);
	trim = run_json(&r, 0, v.pid, "trim");
	cr_assert_eq(json_int(trim, "result.returned_bytes"), expected);
	json_decref(trim);
	run_free(&r);
	o = diagnose(&v, "healthy");
	cr_assert_null(advice(o, "trim", ""));
	json_decref(o);
	victim_stop(&v);
}

/* A trim is not advised while it would be refused: what is in the way is. */
Test(diagnose, stopped)
{
	struct victim v;
	struct run r;
	json_t *o;
	int status;

	victim_start_named(&v, "retained", NULL, NULL);
	cr_assert_eq(kill(v.pid, SIGSTOP), 0);
	cr_assert_eq(waitpid(v.pid, &status, WUNTRACED), v.pid);
	run(&r, v.pid, "--json", "diagnose", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "diagnose");
	cr_assert_null(advice(o, "trim", ""));
	cr_assert_not_null(advice(o, "look-at", "no call can be made: "));
	json_decref(o);
	run_free(&r);
	cr_assert_eq(kill(v.pid, SIGCONT), 0);
	cr_assert_eq(waitpid(v.pid, &status, WCONTINUED), v.pid);
	o = diagnose(&v, "retained");
	cr_assert_not_null(advice(o, "trim", "malloc_trim(0)"));
	json_decref(o);
	victim_stop(&v);
}

Test(diagnose, arena_max_that_is_set)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@retained" }, .env = "MALLOC_ARENA_MAX=2" };
	json_t *o;

	victim_start(&v, &plan);
	o = diagnose(&v, "retained");
	cr_assert_eq(fact_int(o, "glibc.arenas"), 2);
	cr_assert_eq(fact_int(o, "glibc.arena_limit"), 2);
	cr_assert_null(advice(o, "restart", "MALLOC_ARENA_MAX"), "it cannot help twice");
	json_decref(o);
	victim_stop(&v);
}

/* Too wide a cap is advised to be tightened where it was set. */
Test(diagnose, arena_max_that_is_too_wide)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@retained" },
				    .env = "GLIBC_TUNABLES=glibc.malloc.arena_max=8" };
	json_t *o, *line;

	victim_start(&v, &plan);
	o = diagnose(&v, "retained");
	cr_assert_eq(fact_int(o, "glibc.arena_limit"), 8);
	line = advice(o, "restart",
		      "GLIBC_TUNABLES=...:glibc.malloc.arena_max=2 in place of 8, which is set by "
		      "GLIBC_TUNABLES");
	cr_assert_not_null(line);
	cr_assert_geq(json_int(line, "expected_bytes"), 5 * 37 * MIB);
	cr_assert_null(advice(o, "restart", "MALLOC_ARENA_MAX"), "it would not be looked at");
	json_decref(o);
	victim_stop(&v);
}

/* Shapes of a heap of one thread, and what is said about each. */
static const struct {
	const char *shape, *verdict, *action, *text;
} shapes[] = {
	{ "halves", "fragmented", "restart", "no call returns" },
	{ "held", "live", "look-at", "what it keeps" },
	{ "lockall", "locked", "look-at", "mlockall" },
	{ "lockall", "locked", "note", "are free but locked" },
	{ "top", "retained", "note", "main arena: MALLOC_ARENA_MAX does not help" },
	{ "risen", "retained", "restart", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:" },
};

Test(diagnose, shapes_of_a_heap)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct victim v;
		json_t *o;

		victim_start_named(&v, "shapes", shapes[i].shape, NULL);
		o = diagnose(&v, shapes[i].verdict);
		cr_assert_not_null(advice(o, shapes[i].action, shapes[i].text), "%s: %s",
				   shapes[i].shape, shapes[i].text);
		json_decref(o);
		victim_stop(&v);
	}
}

/* Without any libc, so without any glibc fact: these are not zero. */
Test(diagnose, go)
{
	struct victim v;
	struct victim_plan plan = { .argv = { "@gopure", "128" }, .env = "GOMEMLIMIT=512MiB" };
	json_t *o;

	victim_start(&v, &plan);
	/* its own runtime starts threads when it likes: its state is not compared */
	o = ask(v.pid, false, "diagnose");
	check_whole(o);
	cr_assert_str_eq(json_text(o, "result.verdict"), "go-heap", "%s",
			 json_text(o, "result.summary"));
	cr_assert_geq(fact_int(o, "go.heap_resident"), 128 * MIB);
	cr_assert_geq(fact_int(o, "go.heap_mapped"), fact_int(o, "go.heap_resident"));
	cr_assert(json_is_null(fact(o, "glibc.system")));
	cr_assert_not_null(advice(o, "look-at", "GOMEMLIMIT is 512.0 MiB"));
	json_decref(o);
	victim_kill(&v);
}

/* With cgo: what C has kept is no Go profile's, and a trim returns it. */
Test(diagnose, go_with_c)
{
	const struct victim_plan plan = { .argv = { "@gocgo" }, .env = "GOGC=50" };
	struct victim v;
	json_t *o;

	victim_start(&v, &plan);
	o = ask(v.pid, false, "diagnose");
	check_whole(o);
	cr_assert_str_eq(json_text(o, "result.verdict"), "retained");
	cr_assert_lt(fact_int(o, "go.heap_resident"), 16 * MIB);
	cr_assert_not_null(advice(o, "note", "no Go heap profile shows them"));
	cr_assert_not_null(advice(o, "note", "GOGC is 50, GOMEMLIMIT is not set"));
	json_decref(o);
	victim_stop(&v);
}

Test(diagnose, not_the_allocator)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "mapped", "shared", "150");
	o = diagnose(&v, "not-allocator");
	cr_assert_geq(fact_int(o, "shm.resident"), 150 * MIB);
	cr_assert_not_null(advice(o, "look-at", "not the allocator, look at shared memory"));
	cr_assert_null(advice(o, "trim", ""));
	json_decref(o);
	victim_stop(&v);
}

Test(diagnose, small)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "retained", "1", "64");
	o = diagnose(&v, "healthy");
	cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
	json_decref(o);
	victim_stop(&v);
}

/* Looking is safe where a trim is not: the damage is named, and what stands before it is counted.
 */
Test(diagnose, damaged_heap)
{
	struct victim v;
	json_t *o;

	victim_start_named(&v, "damaged", "size", "main");
	o = diagnose(&v, "healthy");
	cr_assert(json_warned(o, "damaged-heap"));
	cr_assert(json_warned(o, "partial"));
	cr_assert_null(advice(o, "trim", ""));
	cr_assert_not_null(advice(o, "restart", "the heap is damaged"));
	json_decref(o);
	victim_kill(&v);
}

/* Reading brings no page in, neither of the heap nor of a library's file. */
Test(diagnose, no_page_is_touched)
{
	static const char *const commands[] = { "check", "maps", "arenas", "facts", "diagnose" };
	struct victim v;

	victim_start_named(&v, "retained", "4", "256");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		long rss = victim_settle(&v);
		long tables = proc_number(v.pid, "status", "VmPTE:");

		run_ok(v.pid, commands[i], NULL);
		cr_assert_eq(proc_number(v.pid, "smaps_rollup", "Rss:"), rss, "%s", commands[i]);
		cr_assert_eq(proc_number(v.pid, "status", "VmPTE:"), tables, "%s", commands[i]);
	}
	victim_stop(&v);
}

/* ---- as text */

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

Test(diagnose, is_one_screen)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "mapped", "shared", "150");
	run(&r, v.pid, "diagnose", NULL);
	run_expect(&r, 0);
	cr_assert_eq(strncmp(r.out, "not-allocator: ", 15), 0, "%s", r.out);
	/* what a restart may set stands there as it is, also where nothing is advised */
	cr_assert_not_null(strstr(r.out, "\nin force  trim_threshold "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, ", mmap_threshold "), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\ntotal "));
	cr_assert_not_null(strstr(r.out, "\nlook at "));
	cr_assert_leq(lines_of(r.out), 24, "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* The same names in both forms; what is not known is in the one only, as null. */
Test(facts, by_their_names)
{
	struct victim v;
	struct run r;
	json_t *o, *value;
	const char *name;
	size_t known = 0;

	victim_start_named(&v, "retained", "2", "64");
	o = ask(v.pid, false, "facts");
	run(&r, v.pid, "facts", NULL);
	run_expect(&r, 0);
	json_object_foreach(json_at(o, "result"), name, value)
	{
		char line[64];
		bool printed;

		snprintf(line, sizeof(line), "\n%s ", name);
		printed = strstr(r.out, line) != NULL;
		cr_assert_eq(printed, !json_is_null(value), "%s", name);
		known += printed;
	}
	cr_assert_eq(lines_of(r.out), known + 1);
	cr_assert_not_null(strstr(r.out, "passive\n"));
	cr_assert_not_null(strstr(r.out, "predicted\n"));
	value = json_object_get(json_at(o, "result"), "glibc.arenas");
	cr_assert_eq(json_integer_value(value), 3);
	value = json_object_get(json_at(o, "result"), "jemalloc.allocated");
	cr_assert(json_is_null(value));
	json_decref(o);
	run_free(&r);
	victim_stop(&v);
}

/* In the order asked for, each once; what is not known says why. */
Test(facts, those_that_are_named)
{
	static const char *const order[] = { "rss ", "glibc.trimmable ", "jemalloc.allocated ",
					     "cgroup.used ", "cgroup.limit " };
	struct victim v;
	struct run r;
	const char *at;
	json_t *o;

	victim_start_named(&v, "retained", "2", "64");
	run(&r, v.pid, "facts", "rss", "glibc.trimmable", "jemalloc.allocated", "rss", "cgroup.",
	    NULL);
	run_expect(&r, 0);
	at = r.out;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strchr(at, '\n');
		cr_assert_not_null(at, "%s", r.out);
		at++;
		cr_assert_eq(strncmp(at, order[i], strlen(order[i])), 0, "%zu: %s", i, r.out);
	}
	cr_assert_eq(lines_of(r.out), 7, "%s", r.out);
	cr_assert_not_null(strstr(r.out, " -  jemalloc is not in use\n"), "%s", r.out);
	run_free(&r);
	run(&r, v.pid, "--json", "facts", "rss", "jemalloc.allocated", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "facts");
	cr_assert_eq(json_object_size(json_at(o, "result")), 2);
	cr_assert_gt(json_int(o, "result.rss"), 0);
	cr_assert(json_is_null(json_object_get(json_at(o, "result"), "jemalloc.allocated")));
	json_decref(o);
	run_free(&r);
	victim_stop(&v);
}

Test(facts, names_that_there_are_not)
{
	static const struct {
		const char *name, *near;
	} rows[] = {
		{ "glibc.trimable", "did you mean glibc.trimmable?" },
		{ "trim", "did you mean glibc.trimmable, glibc.trim_threshold?" },
		{ "glibc", "did you mean glibc. for all of it?" },
		{ "xyzzy.", "`facts` lists them" },
		{ ".", "`facts` lists them" },
	};
	struct victim v;

	victim_start_named(&v, "retained", "1", "64");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run r;

		run(&r, v.pid, "facts", "rss", rows[i].name, NULL);
		run_expect(&r, 2);
		cr_assert_eq(strlen(r.out), 0, "%s", r.out);
		cr_assert_not_null(strstr(r.err, rows[i].near), "%s", r.err);
		run_free(&r);
	}
	victim_stop(&v);
}

/* ---- jemalloc */

struct server {
	struct victim v;
	char dir[40], socket[64], log[64];
};

/* Some 110 MB that stay. Its log is a file: nothing at all may appear on its standard streams. */
static void server_start(struct server *s)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char populate[] = "DEBUG POPULATE 100000 key 1000\r\n";
	char answer[8] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err = -1;

	snprintf(s->dir, sizeof(s->dir), "/tmp/heapmedic-diagnose-XXXXXX");
	cr_assert_not_null(mkdtemp(s->dir));
	snprintf(s->socket, sizeof(s->socket), "%s/s", s->dir);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	victim_start(&s->v,
		     &(struct victim_plan){ .argv = { "redis-server", "--port", "0", "--save", "",
						      "--appendonly", "no", "--logfile", s->log,
						      "--jemalloc-bg-thread", "no",
						      "--enable-debug-command", "yes",
						      "--unixsocket", s->socket, "--dir", s->dir },
					    .silent = true });
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", s->socket);
	for (int i = 0; i < 1000 && err; i++) {
		err = connect(fd, (struct sockaddr *)&at, sizeof(at));
		if (err)
			sleep_ns(10000000);
	}
	cr_assert_eq(err, 0, "redis-server does not open its socket: %s", strerror(errno));
	cr_assert_eq(send(fd, populate, strlen(populate), MSG_NOSIGNAL), (ssize_t)strlen(populate));
	cr_assert_gt(recv(fd, answer, sizeof(answer) - 1, 0), 0);
	cr_assert_eq(strncmp(answer, "+OK", 3), 0, "%s", answer);
	close(fd);
}

static void server_stop(struct server *s)
{
	victim_kill(&s->v);
	unlink(s->log);
	unlink(s->socket);
	cr_assert_eq(rmdir(s->dir), 0, "redis left something in %s", s->dir);
}

static const char *row_of(json_t *o, const char *owner, const char *key)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.rows"), i, row)
	{
		if (!strcmp(json_text(row, "owner"), owner))
			return json_text(row, key);
	}
	cr_assert_fail("no row %s", owner);
	return NULL;
}

Test(diagnose, jemalloc_is_asked)
{
	static struct state state;
	struct server s = { 0 };
	json_t *o, *line;
	long long purgeable;

	server_start(&s);
	state_take(&s.v, &state);
	o = ask(s.v.pid, false, "diagnose");
	check_whole(o);
	cr_assert_str_eq(json_text(o, "result.verdict"), "live", "%s",
			 json_text(o, "result.summary"));
	cr_assert_str_eq(row_of(o, "jemalloc", "origin"), "called");
	cr_assert_geq(fact_int(o, "jemalloc.allocated"), 100000000);
	cr_assert_leq(fact_int(o, "jemalloc.allocated"), fact_int(o, "jemalloc.active"));
	cr_assert_not_null(json_object_get(json_at(o, "result.origins"), "jemalloc.allocated"));
	cr_assert_gt(fact_int(o, "jemalloc.narenas"), 0);
	cr_assert(json_is_boolean(fact(o, "jemalloc.background_thread")));
	cr_assert_str_eq(json_string_value(fact(o, "jemalloc.version")), "5.3.0");
	purgeable = fact_int(o, "jemalloc.purgeable");
	cr_assert_eq(purgeable, fact_int(o, "jemalloc.dirty") + fact_int(o, "jemalloc.muzzy"));
	line = advice(o, "purge", "");
	cr_assert_eq(line != NULL, purgeable >= MIB);
	if (line)
		cr_assert_eq(json_int(line, "expected_bytes"), purgeable);
	state_same(&s.v, &state, STATE_EXACT);
	json_decref(o);
	server_stop(&s);
}

Test(diagnose, jemalloc_is_not_asked_when_passive)
{
	static struct state state;
	struct server s = { 0 };
	struct run r;
	json_t *o;

	server_start(&s);
	state_take(&s.v, &state);
	o = ask(s.v.pid, true, "diagnose");
	check_whole(o);
	cr_assert_str_eq(json_text(o, "result.verdict"), "undecided", "%s",
			 json_text(o, "result.summary"));
	cr_assert_not_null(strstr(json_text(o, "result.summary"), "only a call could ask"));
	cr_assert(json_warned(o, "not-asked"));
	cr_assert_str_eq(row_of(o, "jemalloc", "origin"), "passive");
	cr_assert_str_eq(row_of(o, "jemalloc", "detail"), "not asked");
	cr_assert(json_is_null(fact(o, "jemalloc.allocated")));
	cr_assert_str_eq(json_string_value(fact(o, "jemalloc.version")), "5.3.0");
	cr_assert_null(advice(o, "purge", ""));
	cr_assert_not_null(advice(o, "look-at", "jemalloc was not asked"));
	run(&r, s.v.pid, "--passive", "facts", NULL);
	run_expect(&r, 0);
	cr_assert_null(strstr(r.out, "called"), "%s", r.out);
	run_free(&r);
	/* it is not asked where nobody asks for it, and nothing is missing then */
	run(&r, s.v.pid, "-v", "facts", "rss", "jemalloc.version", NULL);
	run_expect(&r, 0);
	cr_assert_eq(strlen(r.err), 0, "%s", r.err);
	run_free(&r);
	state_same(&s.v, &state, STATE_EXACT);
	json_decref(o);
	server_stop(&s);
}

/* A stopped process cannot be called: what is known without is said all the same. */
Test(diagnose, jemalloc_cannot_be_asked)
{
	struct server s = { 0 };
	json_t *o, *row;

	server_start(&s);
	cr_assert_eq(kill(s.v.pid, SIGSTOP), 0);
	proc_wait_state(s.v.pid, "T");
	o = ask(s.v.pid, false, "diagnose");
	check_whole(o);
	cr_assert_str_eq(json_text(o, "result.verdict"), "undecided");
	row = json_array_get(json_at(o, "warnings"), 0);
	cr_assert_str_eq(json_text(row, "code"), "not-asked");
	cr_assert_not_null(strstr(json_text(row, "text"), "stopped"), "%s", json_text(row, "text"));
	json_decref(o);
	cr_assert_eq(proc_state(s.v.pid), 'T');
	cr_assert_eq(kill(s.v.pid, SIGCONT), 0);
	server_stop(&s);
}
