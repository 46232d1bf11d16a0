// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * jemalloc's own commands on processes that use Debian's: each name of the table, sweeps,
 * arenas, purges and decay times; and on one that answers what no jemalloc would.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define MIB	(1024 * 1024)
#define SOON_NS 60000000000ull /* a loop without an end, not a slow machine */

static const struct victim_plan linked = { .argv = { "@jemlinked", "2" } };
static const struct victim_plan preloaded = { .argv = { "@retained", "2" },
					      .env = "LD_PRELOAD=libjemalloc.so.2" };
/* Blocks of 16 MiB: they come from the arena that jemalloc has for such. */
static const struct victim_plan huge = { .argv = { "@jemlinked", "2", "2", "16777216" } };

static json_t *ask(pid_t pid, const char *command, int exit, const char *a, const char *b,
		   const char *c)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--json", command, a, b, c, NULL);
	run_expect(&r, exit);
	o = run_json(&r, 0, pid, command);
	run_free(&r);
	return o;
}

/* ---- each name of the table */

struct name {
	char name[80], type[64], access[16], condition[96];
};
static struct name names[600];
static size_t n_names;

static void read_table(void)
{
	FILE *f = fopen("agent/mallctl.tsv", "re");
	char line[1024];

	cr_assert(f, "agent/mallctl.tsv (run the tests from the top directory)");
	cr_assert(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f)) {
		struct name *n = &names[n_names++];

		cr_assert_lt(n_names, sizeof(names) / sizeof(names[0]));
		cr_assert_eq(sscanf(line, "%79[^\t]\t%63[^\t]\t%15[^\t]\t%95[^\t]", n->name,
				    n->type, n->access, n->condition),
			     4, "%s", line);
	}
	fclose(f);
}

static bool is_integer(const char *type)
{
	static const char *const types[] = { "size_t",	 "ssize_t",  "int64_t",
					     "uint64_t", "uint32_t", "unsigned" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* Readable with a plain value, and not about the thread that asks. */
static bool is_readable(const struct name *n)
{
	return n->access[0] == 'r' && strncmp(n->name, "thread.", 7) != 0 &&
	       strncmp(n->name, "experimental.", 13) != 0 &&
	       strcmp(n->name, "tcache.create") != 0 &&
	       (is_integer(n->type) || !strcmp(n->type, "bool") ||
		!strcmp(n->type, "const char *"));
}

/* Versions are compared as text: each of their parts has one digit. */
static bool is_since(const char *condition, const char *word, bool after)
{
	const char *version = strstr(condition, word);
	int order;

	if (!version)
		return false;
	order = strncmp(victim_jemalloc(), version + strlen(word), 5);
	return after ? order > 0 : order >= 0;
}

/* Does that version have it? */
static bool is_of_version(const struct name *n)
{
	const char *c = n->condition;

	if (strstr(c, "since ") && !is_since(c, "since ", false))
		return false;
	if (strstr(c, "after 5.3.1 (dev)") && !is_since(c, "after ", true))
		return false;
	return !is_since(c, "gone in ", false) && !is_since(c, "gone after ", true);
}

/* Does Debian's have it? It is built with profiling, statistics and filling. */
static bool is_there(const struct name *n)
{
	static const char *const absent[] = { "utrace", "xmalloc", "prof_stats", "uaf-detection",
					      "if set" };

	if (!is_of_version(n))
		return false;
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (strstr(n->condition, absent[i]))
			return false;
	/* what only a program that was started with prof:true has */
	return strncmp(n->condition, "prof & opt.prof", 15) != 0;
}

/* With 0 in the place of each index. */
static const char *concrete(const struct name *n, char buf[96])
{
	size_t used = 0;

	for (const char *s = n->name; *s; s += *s == '<' ? 3 : 1)
		buf[used++] = *s == '<' ? '0' : *s;
	buf[used] = '\0';
	return buf;
}

static void check_value(const struct name *n, json_t *o)
{
	json_t *v = json_at(o, "result.value");

	cr_expect_str_eq(json_text(o, "result.type"), n->type, "%s", n->name);
	if (!strcmp(n->type, "bool"))
		cr_expect(json_is_boolean(v), "%s is no bool", n->name);
	else if (is_integer(n->type))
		cr_expect(json_is_integer(v) || json_is_real(v), "%s is no number", n->name);
	else
		cr_expect(json_is_string(v), "%s is no text", n->name);
}

/* What is there: one session for all of them, which ends at the first that is refused. */
static void names_that_are_there(pid_t pid)
{
	static char script[64 * 1024];
	struct run_opts opts = { .input = script };
	size_t line = 0, used = 0;
	char pid_text[16], name[96];
	struct run r;

	snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	for (size_t i = 0; i < n_names; i++)
		if (is_readable(&names[i]) && is_there(&names[i]))
			used += (size_t)snprintf(script + used, sizeof(script) - used,
						 "mallctl %s\n", concrete(&names[i], name));
	cr_assert_lt(used, sizeof(script) - 100);
	run_with(&r, &opts, (const char *[]){ "-p", pid_text, "--json", NULL });
	for (size_t i = 0; i < n_names; i++) {
		json_t *o;

		if (!is_readable(&names[i]) || !is_there(&names[i]))
			continue;
		cr_assert_lt(line, run_lines(&r), "%s: no answer", names[i].name);
		o = run_json(&r, line++, pid, "mallctl");
		cr_assert(json_bool(o, "ok"), "%s: %s", names[i].name, json_text(o, "error.text"));
		check_value(&names[i], o);
		json_decref(o);
	}
	run_expect(&r, 0);
	cr_assert_gt(line, 220, "only %zu names", line);
	run_free(&r);
}

/* What is not there: one name of each condition. */
static void names_that_are_not(pid_t pid)
{
	char name[96];

	for (size_t i = 0; i < n_names; i++) {
		const struct name *n = &names[i];
		bool seen = false;
		const char *code;
		json_t *o;

		if (!is_readable(n) || is_there(n))
			continue;
		for (size_t k = 0; k < i; k++)
			seen |= is_readable(&names[k]) && !strcmp(names[k].condition, n->condition);
		if (seen)
			continue;
		o = ask(pid, "mallctl", 1, concrete(n, name), NULL, NULL);
		code = json_text(o, "error.code");
		if (!is_of_version(n))
			cr_expect_str_eq(code, "mallctl-version", "%s: %s", name, code);
		else if (strncmp(n->condition, "prof", 4) == 0)
			cr_expect_str_eq(code, "mallctl-not-enabled", "%s: %s", name, code);
		else
			cr_expect_str_eq(code, "mallctl-not-built", "%s: %s", name, code);
		json_decref(o);
	}
}

Test(jemalloc, each_name_is_as_the_table_says, .timeout = 300)
{
	static struct state state;
	struct victim v;

	read_table();
	victim_start(&v, &linked);
	run_ok(v.pid, "stats", NULL); /* the first call is one more thread that allocates */
	state_take(&v, &state);
	names_that_are_there(v.pid);
	names_that_are_not(v.pid);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* --list reads the same, and says null for what this build does not have. */
Test(jemalloc, the_list_has_the_values, .timeout = 120)
{
	struct victim v;
	json_t *o, *row;
	size_t i, known = 0;

	read_table();
	victim_start(&v, &preloaded);
	o = ask(v.pid, "mallctl", 0, "--list", NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.names")), n_names);
	json_array_foreach(json_at(o, "result.names"), i, row)
	{
		const struct name *n = &names[i];
		json_t *value = json_object_get(row, "value");
		bool plain = is_readable(n) && !strchr(n->name, '<');

		cr_assert_str_eq(json_text(row, "name"), n->name);
		cr_expect_str_eq(json_text(row, "type"), n->type);
		cr_expect(*json_text(row, "meaning"));
		cr_expect_eq(!json_is_null(value), plain && is_there(n), "%s", n->name);
		known += !json_is_null(value);
	}
	cr_assert_gt(known, 80);
	json_int(o, "result.epoch");
	json_decref(o);
	/* in text: name, type, access, value, meaning; also with an index that is typed */
	o = ask(v.pid, "mallctl", 0, "--list", "arena.0.d", NULL);
	cr_assert_gt(json_array_size(json_at(o, "result.names")), 2);
	json_decref(o);
	victim_stop(&v);
}

/* ---- what was written is read again */

/* jemalloc rounds a limit down to a size that it has, and counts its epochs itself. */
Test(jemalloc, a_write_says_what_has_come_of_it, .timeout = 120)
{
	struct victim v;
	json_t *o, *row;
	size_t i;

	victim_start(&v, &linked);
	o = ask(v.pid, "mallctl", 0, "arena.0.retain_grow_limit", "100000", NULL);
	cr_assert_eq(json_int(o, "result.new"), 98304);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "arena.all.retain_grow_limit", "300000", NULL);
	cr_assert_gt(json_array_size(json_at(o, "result.values")), 0u);
	json_array_foreach(json_at(o, "result.values"), i, row)
		cr_assert_eq(json_int(row, "new"), 262144);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "epoch", "1", NULL);
	cr_assert_eq(json_int(o, "result.new"), json_int(o, "result.old") + 1);
	json_decref(o);
	/* no page is that small: of one arena, and of each */
	o = ask(v.pid, "mallctl", 1, "arena.0.retain_grow_limit", "1", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-invalid");
	json_decref(o);
	o = ask(v.pid, "mallctl", 1, "arena.all.retain_grow_limit", "1", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-refused");
	json_decref(o);
	victim_stop(&v);
}

/* ---- statistics are fresh */

Test(jemalloc, statistics_say_when)
{
	long long first, allocated;
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, &linked);
	o = ask(v.pid, "mallctl", 0, "stats.allocated", NULL, NULL);
	first = json_int(o, "result.epoch");
	cr_assert_gt(strlen(json_text(o, "result.as_of")), 20);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "stats.allocated", NULL, NULL);
	cr_assert_gt(json_int(o, "result.epoch"), first);
	allocated = json_int(o, "result.value");
	cr_assert_gt(allocated, 0);
	json_decref(o);
	/* an option is of no epoch */
	o = ask(v.pid, "mallctl", 0, "opt.narenas", NULL, NULL);
	cr_assert_null(json_object_get(json_at(o, "result"), "epoch"));
	json_decref(o);
	/* as text: the number alone is data */
	run(&r, v.pid, "mallctl", "stats.allocated", NULL);
	run_expect(&r, 0);
	cr_assert_eq(strspn(r.out, "0123456789"), strlen(r.out) - 1, "%s", r.out);
	cr_assert_not_null(strstr(r.err, "epoch "), "%s", r.err);
	run_free(&r);
	victim_stop(&v);
}

/* ---- all */

Test(jemalloc, all_is_each_initialised_arena, .timeout = 120)
{
	static struct state state;
	long long sum = 0, dirty, active = 0;
	struct victim v;
	json_t *o, *arenas, *row;
	size_t i;

	victim_start(&v, &linked);
	/* what is unused stays as it is while it is counted */
	run_ok(v.pid, "decay", "dirty", "all", "off", NULL);
	state_take(&v, &state);
	arenas = ask(v.pid, "arenas", 0, NULL, NULL, NULL);
	o = ask(v.pid, "mallctl", 0, "stats.arenas.all.pdirty", NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.values")),
		     json_array_size(json_at(arenas, "result.arenas")));
	json_array_foreach(json_at(o, "result.values"), i, row) sum += json_int(row, "value");
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "stats.arenas.4096.pdirty", NULL, NULL);
	dirty = json_int(o, "result.value") * 4096;
	cr_assert_eq(sum * 4096, dirty);
	json_decref(o);
	cr_assert_eq(json_int(arenas, "result.jemalloc.total.dirty"), dirty);
	json_array_foreach(json_at(arenas, "result.arenas"), i, row)
	{
		cr_assert_str_eq(json_text(row, "allocator"), "jemalloc");
		cr_assert_leq(json_int(row, "allocated"), json_int(row, "active"));
		cr_assert_leq(json_int(row, "tcache"), json_int(row, "allocated"));
		active += json_int(row, "active");
	}
	cr_assert_eq(json_int(arenas, "result.jemalloc.total.active"), active);
	json_decref(arenas);
	/* both indices */
	o = ask(v.pid, "mallctl", 0, "arenas.bin.all.size", NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.values")), 36);
	cr_assert_eq(json_int(json_array_get(json_at(o, "result.values"), 0), "value"), 8);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "stats.arenas.0.bins.all.curregs", NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.values")), 36);
	json_decref(o);
	/* no name says how many there are: up to the last one */
	o = ask(v.pid, "mallctl", 0, "stats.arenas.0.extents.all.ndirty", NULL, NULL);
	cr_assert_gt(json_array_size(json_at(o, "result.values")), 100);
	cr_assert_lt(json_array_size(json_at(o, "result.values")), 300);
	json_decref(o);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* ---- what must not reach jemalloc, or is refused by it */

static void refused(pid_t pid, const char *name, const char *value, int exit, const char *code,
		    const char *word)
{
	json_t *o = ask(pid, "mallctl", exit, name, value, NULL);

	cr_expect_str_eq(json_text(o, "error.code"), code, "%s: %s", name,
			 json_text(o, "error.text"));
	cr_expect_not_null(strstr(json_text(o, "error.text"), word), "%s: %s", name,
			   json_text(o, "error.text"));
	cr_expect_gt(strlen(json_text(o, "error.hint")), 0);
	json_decref(o);
}

/* The first arena that nobody has used: -1 if all are in use. */
static long long unused_arena(pid_t pid)
{
	json_t *o = ask(pid, "arenas", 0, NULL, NULL, NULL), *row;
	long long narenas = json_int(o, "result.jemalloc.narenas"), found = -1;

	for (long long a = 1; a < narenas && found < 0; a++) {
		bool used = false;
		size_t i;

		json_array_foreach(json_at(o, "result.arenas"), i, row) used |=
			json_int(row, "index") == a;
		found = used ? -1 : a;
	}
	json_decref(o);
	return found;
}

Test(jemalloc, refusals_say_why, .timeout = 120)
{
	static struct state state;
	char name[64], narenas[16];
	struct victim v;
	json_t *o;

	victim_start(&v, &linked);
	o = ask(v.pid, "mallctl", 0, "arenas.narenas", NULL, NULL);
	snprintf(narenas, sizeof(narenas), "%lld", json_int(o, "result.value"));
	json_decref(o);
	state_take(&v, &state);
	refused(v.pid, "opt.narenas", "4", 1, "mallctl-read-only", "can only be read");
	refused(v.pid, "stats.allocatd", NULL, 1, "unknown-mallctl", "has no name");
	refused(v.pid, "prof.dump", "/tmp/heapmedic-none", 1, "mallctl-not-enabled", "opt.prof");
	refused(v.pid, "prof.active", "true", 1, "mallctl-not-enabled", "when the program started");
	if (strncmp(victim_jemalloc(), "5.3.1", 5) < 0)
		refused(v.pid, "opt.hpa_hugify_style", NULL, 1, "mallctl-version",
			"came with 5.3.1");
	refused(v.pid, "opt.utrace", NULL, 1, "mallctl-not-built", "config.utrace is false");
	refused(v.pid, "arena.0.dss", "tertiary", 1, "mallctl-invalid", "precedence");
	refused(v.pid, "arenas.dirty_decay_ms", "-2", 2, "bad-value", "-2");
	refused(v.pid, "background_thread", "true", 6, "mallctl-forbidden", "threads");
	refused(v.pid, "max_background_threads", "1", 6, "mallctl-forbidden", "threads");
	refused(v.pid, "arena.0.reset", NULL, 6, "mallctl-forbidden", "never");
	refused(v.pid, "arena.0.extent_hooks", NULL, 5, "mallctl-type", "extent_hooks_t");
	/* jemalloc itself would purge all arenas for the first of these, and read past a table for
	 * the others */
	snprintf(name, sizeof(name), "arena.%s.purge", narenas);
	refused(v.pid, name, NULL, 1, "mallctl-no-index", "too large");
	snprintf(name, sizeof(name), "stats.arenas.%s.pdirty", narenas);
	refused(v.pid, name, NULL, 1, "mallctl-no-index", "too large");
	refused(v.pid, "arenas.bin.36.size", NULL, 1, "mallctl-no-index", "arenas.nbins is 36");
	/* not initialised, and it stays so */
	snprintf(name, sizeof(name), "arena.%lld.dirty_decay_ms", unused_arena(v.pid));
	refused(v.pid, name, NULL, 1, "mallctl-no-arena", "not initialised");
	refused(v.pid, name, "1", 1, "mallctl-no-arena", "not initialised");
	/* jemalloc itself says of these that they are done */
	snprintf(name, sizeof(name), "arena.%lld.purge", unused_arena(v.pid));
	refused(v.pid, name, NULL, 1, "mallctl-no-arena", "not initialised");
	snprintf(name, sizeof(name), "arena.%lld.decay", unused_arena(v.pid));
	refused(v.pid, name, NULL, 1, "mallctl-no-arena", "not initialised");
	json_decref(ask(v.pid, "mallctl", 0, "arena.0.decay", NULL, NULL));
	json_decref(ask(v.pid, "mallctl", 0, "arena.all.decay", NULL, NULL));
	snprintf(name, sizeof(name), "arena.%lld.initialized", unused_arena(v.pid));
	o = ask(v.pid, "mallctl", 0, name, NULL, NULL);
	cr_assert_not(json_bool(o, "result.value"));
	json_decref(o);
	victim_check(&v);
	state_same(&v, &state, STATE_THREADS_VARY);
	victim_stop(&v);
}

/* ---- purge and decay */

static long long dirty_of(pid_t pid)
{
	json_t *o = ask(pid, "arenas", 0, NULL, NULL, NULL);
	long long dirty = json_int(o, "result.jemalloc.total.dirty");

	json_decref(o);
	return dirty;
}

static void try_purge(const struct victim_plan *plan)
{
	struct victim v;
	long long dirty, rss;
	char index[16];
	struct run r;
	json_t *o;

	victim_start(&v, plan);
	dirty = dirty_of(v.pid);
	cr_assert_gt(dirty, 20ll * MIB, "nothing to purge");
	snprintf(index, sizeof(index), "%lld", unused_arena(v.pid));
	o = ask(v.pid, "purge", 1, index, NULL, NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-no-arena");
	json_decref(o);
	rss = 1024 * proc_number(v.pid, "smaps_rollup", "Rss:");
	run(&r, v.pid, "--dry-run", "purge", NULL);
	run_expect(&r, 0);
	run_free(&r);
	cr_assert_gt(dirty_of(v.pid), dirty / 2, "a dry run has purged");
	o = ask(v.pid, "purge", 0, NULL, NULL, NULL);
	cr_assert_geq(json_int(o, "result.returned_bytes"), dirty / 2);
	cr_assert_lt(json_int(o, "result.rss_after_bytes"), rss - dirty / 2);
	cr_assert_lt(json_int(o, "result.jemalloc.dirty.after"), MIB);
	cr_assert_geq(json_int(o, "result.jemalloc.retained.after"),
		      json_int(o, "result.jemalloc.retained.before"));
	cr_assert_str_eq(json_text(o, "result.call"), "arena.4096.purge");
	/* the keys of a trim */
	cr_assert_eq(json_array_size(json_at(o, "result.allocators")), 1);
	cr_assert_str_eq(json_text(o, "result.allocators.0.name"), "jemalloc");
	cr_assert_str_eq(json_text(o, "result.allocators.0.version"), victim_jemalloc());
	cr_assert_eq(json_text(o, "result.allocators.0.file")[0], '/');
	cr_assert_str_eq(json_text(o, "result.allocators.0.call"), "arena.4096.purge");
	cr_assert_eq(json_int(o, "result.allocators.0.rc"), 0);
	cr_assert_eq(json_int(o, "result.allocators.0.returned_bytes"),
		     json_int(o, "result.returned_bytes"));
	cr_assert_eq(json_int(o, "result.allocators.0.predicted_bytes"),
		     json_int(o, "result.predicted_bytes"));
	cr_assert_eq(json_int(o, "result.allocators.0.duration_us"),
		     json_int(o, "result.duration_us"));
	json_decref(o);
	cr_assert_lt(1024 * proc_number(v.pid, "smaps_rollup", "Rss:"), rss - dirty / 2);
	/* as text, with nothing left to return */
	run(&r, v.pid, "purge", NULL);
	run_expect(&r, 0);
	cr_assert_eq(strncmp(r.out, "rss ", 4), 0, "%s", r.out);
	cr_assert_not_null(strstr(r.out, "address space only"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

Test(jemalloc, purge_linked, .timeout = 120)
{
	try_purge(&linked);
}

Test(jemalloc, purge_preloaded, .timeout = 120)
{
	try_purge(&preloaded);
}

Test(jemalloc, purge_of_one_arena, .timeout = 120)
{
	long long dirty, index = -1, before, after;
	struct victim v;
	char text[16];
	json_t *o;

	victim_start(&v, &linked);
	o = ask(v.pid, "arenas", 0, NULL, NULL, NULL);
	/* most first */
	index = json_int(json_array_get(json_at(o, "result.arenas"), 0), "index");
	dirty = json_int(json_array_get(json_at(o, "result.arenas"), 0), "dirty");
	json_decref(o);
	cr_assert_gt(dirty, 10ll * MIB);
	snprintf(text, sizeof(text), "%lld", index);
	before = dirty_of(v.pid);
	o = ask(v.pid, "purge", 0, text, NULL, NULL);
	cr_assert_leq(json_int(o, "result.jemalloc.dirty.before"), dirty);
	cr_assert_lt(json_int(o, "result.jemalloc.dirty.after"), MIB);
	json_decref(o);
	after = dirty_of(v.pid);
	cr_assert_leq(after, before - dirty + MIB);
	cr_assert_gt(after, 10ll * MIB, "the other arenas were purged, too");
	victim_stop(&v);
}

static json_t *row_of(json_t *o, long long index)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.arenas"), i,
			   row) if (json_int(row, "index") == index) return row;
	return NULL;
}

/* Sets them all but the huge one, and nothing that was not there comes to be. */
Test(jemalloc, decay_of_all_arenas, .timeout = 120)
{
	long long huge_index;
	struct victim v;
	struct run r;
	json_t *o, *now, *row;
	char text[16];
	size_t i, n;

	victim_start(&v, &huge);
	o = ask(v.pid, "mallctl", 0, "opt.narenas", NULL, NULL);
	huge_index = json_int(o, "result.value");
	json_decref(o);
	o = ask(v.pid, "arenas", 0, NULL, NULL, NULL);
	n = json_array_size(json_at(o, "result.arenas"));
	row = row_of(o, huge_index);
	cr_assert_not_null(row, "no arena for large blocks");
	cr_assert_str_eq(json_string_value(json_array_get(json_object_get(row, "flags"), 0)),
			 "huge");
	cr_assert_eq(json_int(row, "dirty_decay_ms"), 0);
	cr_assert_eq(json_int(o, "result.jemalloc.oversize_threshold"), 8ll * MIB);
	json_decref(o);

	o = ask(v.pid, "decay", 0, "dirty", "all", "1500ms");
	cr_assert(json_warned(o, "huge-arena-left"));
	cr_assert_eq(json_int(o, "result.default.old"), 10000);
	cr_assert_eq(json_int(o, "result.default.new"), 1500);
	cr_assert_eq(json_int(o, "result.old"), 10000);
	cr_assert_eq(json_int(o, "result.new"), 1500);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), n);
	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		bool is_huge = json_int(row, "index") == huge_index;

		cr_assert_eq(json_bool(row, "huge"), is_huge);
		if (is_huge)
			cr_assert(json_is_null(json_object_get(row, "new")));
		else
			cr_assert_eq(json_int(row, "old"), 10000);
	}
	json_decref(o);
	now = ask(v.pid, "decay", 0, NULL, NULL, NULL);
	cr_assert_eq(json_int(now, "result.default.dirty_ms"), 1500);
	cr_assert_eq(json_array_size(json_at(now, "result.arenas")), n);
	json_array_foreach(json_at(now, "result.arenas"), i, row) cr_assert_eq(
		json_int(row, "dirty_ms"), json_int(row, "index") == huge_index ? 0 : 1500);
	json_decref(now);

	/* by its number, with a word about it */
	snprintf(text, sizeof(text), "%lld", huge_index);
	o = ask(v.pid, "decay", 0, "dirty", text, "2s");
	cr_assert(json_warned(o, "huge-arena"));
	cr_assert_eq(json_int(o, "result.old"), 0);
	json_decref(o);
	now = ask(v.pid, "decay", 0, "dirty", text, NULL);
	cr_assert_eq(json_int(row_of(now, huge_index), "dirty_ms"), 2000);
	cr_assert_eq(json_array_size(json_at(now, "result.arenas")), 1);
	json_decref(now);

	/* as text, and nothing trails */
	run(&r, v.pid, "decay", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "default    dirty 1500 ms   muzzy at once\n"), "%s",
			   r.out);
	cr_assert_null(strstr(r.out, " \n"), "%s", r.out);
	run_free(&r);

	/* the default alone; off is never */
	o = ask(v.pid, "decay", 0, "muzzy", "default", "off");
	cr_assert_eq(json_int(o, "result.new"), -1);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), 0);
	json_decref(o);
	now = ask(v.pid, "decay", 0, NULL, NULL, NULL);
	cr_assert_eq(json_int(now, "result.default.muzzy_ms"), -1);
	cr_assert_neq(json_int(row_of(now, 0), "muzzy_ms"), -1);
	json_decref(now);
	snprintf(text, sizeof(text), "%lld", unused_arena(v.pid));
	o = ask(v.pid, "decay", 1, "dirty", text, "0");
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-no-arena");
	json_decref(o);
	o = ask(v.pid, "arenas", 0, NULL, NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.arenas")), n, "an arena has come to be");
	json_decref(o);
	victim_stop(&v);
}

/* The same sweep by mallctl; at once is a purge. */
Test(jemalloc, decay_at_once_returns_pages, .timeout = 120)
{
	long long dirty;
	struct victim v;
	json_t *o;

	victim_start(&v, &linked);
	dirty = dirty_of(v.pid);
	cr_assert_gt(dirty, 20ll * MIB);
	o = ask(v.pid, "decay", 0, "dirty", "all", "0");
	cr_assert_geq(json_int(o, "result.returned_bytes"), dirty / 2);
	json_decref(o);
	cr_assert_lt(dirty_of(v.pid), MIB);
	o = ask(v.pid, "mallctl", 0, "arena.all.dirty_decay_ms", "3000", NULL);
	cr_assert_geq(json_array_size(json_at(o, "result.values")), 2);
	cr_assert_eq(json_int(json_array_get(json_at(o, "result.values"), 0), "old"), 0);
	cr_assert_eq(json_int(json_array_get(json_at(o, "result.values"), 0), "new"), 3000);
	json_decref(o);
	victim_stop(&v);
}

/* ---- in a terminal */

#define COLUMNS 80

/* What it says on a terminal of 80 columns. */
static char *on_terminal(pid_t pid, const char *const *words)
{
	const struct winsize size = { .ws_row = 24, .ws_col = COLUMNS };
	const char *argv[12] = { "heapmedic", "-p" }, *path = getenv("HEAPMEDIC");
	size_t n = 3, used = 0, room = 1 << 20;
	char number[16], *text = malloc(room);
	ssize_t got;
	int fd, status;
	pid_t child;

	snprintf(number, sizeof(number), "%d", (int)pid);
	argv[2] = number;
	for (; *words; words++)
		argv[n++] = *words;
	cr_assert_not_null(text);
	child = forkpty(&fd, NULL, NULL, &size);
	if (child == 0) {
		setenv("NO_COLOR", "1", 1);
		if (freopen("/dev/null", "we", stderr))
			execv(path ? path : "./heapmedic", (char *const *)argv);
		_exit(126);
	}
	cr_assert_gt(child, 0);
	while (used < room - 1 && (got = read(fd, text + used, room - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(fd);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%s: %#x", *(words - 1), status);
	return text;
}

Test(jemalloc, fits_a_terminal, .timeout = 120)
{
	static const struct {
		const char *words[5], *has;
	} cases[] = {
		{ { "arenas" }, "initialised" },
		{ { "--bytes", "arenas" }, "initialised" },
		{ { "mallctl", "--list" }, "thread.tcache.flush" },
		{ { "decay" }, "default" },
		{ { "decay", "dirty", "all", "1ms" }, "rss" },
		{ { "purge" }, "address space" },
		{ { "trim" }, "rss" },
		{ { "background_thread" }, "off" },
		{ { "prof", "status" }, "since" },
	};
	static const struct victim_plan plan = {
		.argv = { "@jemlinked", "2", "2", "16777216" },
		.env = "MALLOC_CONF=prof:true,prof_active:false,prof_gdump:true,prof_final:false"
	};
	struct victim v;

	victim_start(&v, &plan);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = on_terminal(v.pid, cases[i].words), *rest = text, *line;

		cr_expect_not_null(strstr(text, cases[i].has), "%s: %s", cases[i].words[0], text);
		while ((line = strsep(&rest, "\n"))) {
			size_t len = strcspn(line, "\r");

			cr_expect_leq(len, COLUMNS, "%s: %s", cases[i].words[0], line);
			cr_expect(!len || line[len - 1] != ' ', "%s: %s", cases[i].words[0], line);
		}
		free(text);
	}
	victim_stop(&v);
}

/* ---- a program with one thread: the calls are made on it, in few batches */

Test(jemalloc, one_thread, .timeout = 120)
{
	static const struct victim_plan plan = { .argv = { "@single" },
						 .env = "LD_PRELOAD=libjemalloc.so.2" };
	static struct state state;
	struct victim v;
	json_t *o;

	victim_start(&v, &plan);
	run_ok(v.pid, "decay", "dirty", "all", "off", NULL);
	state_take(&v, &state);
	o = ask(v.pid, "arenas", 0, NULL, NULL, NULL);
	cr_assert_geq(json_array_size(json_at(o, "result.arenas")), 1);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "stats.arenas.all.bins.all.curregs", NULL, NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.values")) % 36, 0);
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "--list", "stats.", NULL);
	cr_assert(json_is_integer(
		json_object_get(json_array_get(json_at(o, "result.names"), 0), "value")));
	json_decref(o);
	o = ask(v.pid, "purge", 0, NULL, NULL, NULL);
	cr_assert_str_eq(json_text(o, "result.via"), "direct");
	json_decref(o);
	/* what is about the caller is about the program's own thread then */
	o = ask(v.pid, "mallctl", 6, "thread.arena", "0", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "acts-on-caller");
	json_decref(o);
	o = ask(v.pid, "mallctl", 0, "thread.arena", NULL, NULL);
	cr_assert_str_eq(json_text(o, "warnings.0.code"), "acts-on-caller");
	cr_assert_not_null(strstr(json_text(o, "warnings.0.text"), "one of the application's"));
	json_decref(o);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* ---- threads of its own */

static size_t count_threads(pid_t pid)
{
	pid_t tid[STATE_MAX];

	return proc_tids(pid, tid, STATE_MAX);
}

Test(jemalloc, background_threads_only_when_told, .timeout = 120)
{
	struct victim v;
	struct run r;
	size_t n;
	json_t *o;

	victim_start(&v, &linked);
	n = count_threads(v.pid);
	o = ask(v.pid, "background_thread", 0, NULL, NULL, NULL);
	cr_assert_not(json_bool(o, "result.enabled"));
	cr_assert_eq(json_int(o, "result.running"), 0);
	json_decref(o);
	o = ask(v.pid, "background_thread", 6, "on", NULL, NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "starts-threads");
	cr_assert_not_null(strstr(json_text(o, "error.hint"), "--yes"));
	json_decref(o);
	cr_assert_eq(count_threads(v.pid), n);
	run(&r, v.pid, "--json", "--yes", "background_thread", "on", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "background_thread");
	cr_assert(json_warned(o, "threads-started"));
	cr_assert_not(json_warned(o, "not-as-before"), "%s", r.out);
	json_decref(o);
	run_free(&r);
	cr_assert_gt(count_threads(v.pid), n, "no thread has come");
	/* all else works with them */
	run_ok(v.pid, "trim", NULL);
	run_ok(v.pid, "stats", NULL);
	o = ask(v.pid, "background_thread", 0, NULL, NULL, NULL);
	cr_assert(json_bool(o, "result.enabled"));
	cr_assert_gt(json_int(o, "result.running"), 0);
	json_decref(o);
	run_ok(v.pid, "background_thread", "off", NULL);
	for (int i = 0; i < 500 && count_threads(v.pid) > n; i++)
		sleep_ns(10000000);
	cr_assert_eq(count_threads(v.pid), n, "a thread has stayed");
	victim_check(&v);
	victim_stop(&v);
}

/* ---- statistics in parts */

Test(jemalloc, statistics_in_parts, .timeout = 120)
{
	struct victim v;
	struct run all, some;
	json_t *o, *one;

	victim_start(&v, &preloaded);
	run(&all, v.pid, "stats", NULL);
	run_expect(&all, 0);
	cr_assert_not_null(strstr(all.out, "Run-time option settings"), "%s", all.out);
	cr_assert_not_null(strstr(all.out, "bins:"));
	run(&some, v.pid, "stats", "--omit", "general,bins,arenas", NULL);
	run_expect(&some, 0);
	cr_assert_null(strstr(some.out, "Run-time option settings"));
	cr_assert_null(strstr(some.out, "\narenas[0]"));
	cr_assert_lt(strlen(some.out), strlen(all.out) / 2);
	run_free(&all);
	run_free(&some);
	run(&some, v.pid, "stats", "--omit", "bin", NULL);
	run_expect(&some, 2);
	cr_assert_not_null(strstr(some.err, "mutexes"), "%s", some.err);
	run_free(&some);
	/* its JSON as members of ours */
	o = ask(v.pid, "stats", 0, "J", "--omit", "arenas,bins,large");
	one = json_array_get(json_at(o, "result.allocators"), 0);
	cr_assert_eq(strncmp(json_text(one, "stats.jemalloc.version"), victim_jemalloc(), 5), 0);
	cr_assert_gt(json_int(one, "stats.jemalloc.stats.allocated"), 0);
	json_decref(o);
	victim_stop(&v);
}

Test(jemalloc, parts_are_jemallocs_alone)
{
	struct victim v;
	struct run r;

	victim_start_named(&v, "eight", NULL, NULL);
	run(&r, v.pid, "stats", "--omit", "bins", NULL);
	run_expect(&r, 5);
	run_free(&r);
	run(&r, v.pid, "purge", NULL);
	run_expect(&r, 5);
	cr_assert_not_null(strstr(r.err, "does not allocate with jemalloc"), "%s", r.err);
	run_free(&r);
	run(&r, v.pid, "decay", NULL);
	run_expect(&r, 5);
	run_free(&r);
	victim_stop(&v);
}

/* ---- what no jemalloc would answer: tests/victims/fakectl.c */

static void fake_start(struct victim *v, const char *kind)
{
	victim_start_named(v, "fakectl", kind, NULL);
}

static json_t *soon(pid_t pid, const char *command, int exit, const char *a, const char *b)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--json", command, a, b, NULL);
	run_expect(&r, exit);
	cr_assert_lt(r.ns, SOON_NS, "%s", command);
	o = run_json(&r, 0, pid, command);
	run_free(&r);
	return o;
}

/* Bounded whatever it says; what is left out is told. */
Test(jemalloc, absurdly_many_arenas, .timeout = 300)
{
	struct victim v;
	json_t *o;

	fake_start(&v, "many");
	o = soon(v.pid, "arenas", 0, NULL, NULL);
	cr_assert(json_warned(o, "sweep-cut"));
	cr_assert_leq(json_array_size(json_at(o, "result.arenas")), 4096 + 16);
	json_decref(o);
	o = soon(v.pid, "mallctl", 0, "stats.arenas.all.pdirty", NULL);
	cr_assert_eq(json_array_size(json_at(o, "result.values")), 4095);
	cr_assert(json_warned(o, "sweep-cut"));
	json_decref(o);
	o = soon(v.pid, "mallctl", 0, "stats.arenas.0.bins.all.curregs", NULL);
	cr_assert_leq(json_array_size(json_at(o, "result.values")), 512);
	json_decref(o);
	victim_stop(&v);
}

Test(jemalloc, numbers_that_cannot_be, .timeout = 120)
{
	struct victim v;
	json_t *o, *row;
	size_t i;

	fake_start(&v, "garbage");
	o = soon(v.pid, "arenas", 0, NULL, NULL);
	cr_assert(json_warned(o, "impossible"));
	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		if (!strcmp(json_text(row, "allocator"), "jemalloc"))
			cr_assert(json_is_null(json_object_get(row, "active")));
	}
	json_decref(o);
	/* text that is nowhere */
	o = soon(v.pid, "mallctl", 1, "arena.0.dss", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-string");
	json_decref(o);
	soon(v.pid, "facts", 0, "jemalloc.", NULL);
	soon(v.pid, "decay", 0, NULL, NULL);
	victim_stop(&v);
}

Test(jemalloc, other_sizes_than_the_types, .timeout = 120)
{
	struct victim v;
	json_t *o;

	fake_start(&v, "sizes");
	o = soon(v.pid, "mallctl", 1, "stats.allocated", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-size");
	cr_assert_not_null(strstr(json_text(o, "error.text"), "4 bytes"), "%s",
			   json_text(o, "error.text"));
	json_decref(o);
	o = soon(v.pid, "arenas", 0, NULL, NULL);
	json_decref(o);
	victim_stop(&v);
}

Test(jemalloc, strings_of_the_target_are_escaped, .timeout = 120)
{
	struct victim v;
	struct run r;

	fake_start(&v, "strings");
	run(&r, v.pid, "mallctl", "opt.metadata_thp", NULL);
	run_expect(&r, 0);
	cr_assert_null(strchr(r.out, 1), "control characters reach the terminal");
	cr_assert_leq(strlen(r.out), 8192);
	run_free(&r);
	victim_stop(&v);
}

Test(jemalloc, a_number_of_another_length, .timeout = 120)
{
	struct victim v;
	json_t *o;

	fake_start(&v, "path");
	o = soon(v.pid, "mallctl", 1, "stats.arenas.all.pdirty", NULL);
	cr_assert(*json_text(o, "error.code"));
	json_decref(o);
	victim_stop(&v);
}

/* Each code has its sentence, and none of them harms anybody. */
Test(jemalloc, odd_codes, .timeout = 300)
{
	static const struct {
		const char *code, *word;
	} codes[] = {
		{ "1", "mallctl-read-only" }, { "11", "mallctl-again" },
		{ "12", "mallctl-memory" },   { "22", "mallctl-invalid" },
		{ "14", "mallctl-refused" },  { "77", "mallctl-failed" },
		{ "-7", "mallctl-failed" },   { "2147483647", "mallctl-failed" },
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct victim v;
		json_t *o;

		fake_start(&v, codes[i].code);
		o = soon(v.pid, "mallctl", 1, "opt.abort", NULL);
		cr_expect_str_eq(json_text(o, "error.code"), codes[i].word, "%s: %s", codes[i].code,
				 json_text(o, "error.text"));
		json_decref(o);
		o = soon(v.pid, "arenas", 0, NULL, NULL);
		json_decref(o);
		victim_stop(&v);
	}
}

/* A version that is known from what it says: sentences are of that version. */
Test(jemalloc, an_older_version, .timeout = 120)
{
	struct victim v;
	json_t *o;

	fake_start(&v, "old");
	o = soon(v.pid, "mallctl", 1, "opt.hpa", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-version");
	cr_assert_not_null(strstr(json_text(o, "error.text"), "the target has 5.2.1"));
	json_decref(o);
	o = soon(v.pid, "mallctl", 1, "prof.active", "true");
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-not-enabled");
	cr_assert_not_null(strstr(json_text(o, "error.hint"), "JE_MALLOC_CONF=prof:true"), "%s",
			   json_text(o, "error.hint"));
	json_decref(o);
	o = soon(v.pid, "mallctl", 1, "arena.1.dirty_decay_ms", NULL);
	cr_assert_str_eq(json_text(o, "error.code"), "mallctl-no-arena");
	json_decref(o);
	/* options are read from a variable with the prefix of the build */
	o = soon(v.pid, "mallctl", 1, "opt.narenas", "3");
	cr_assert_not_null(strstr(json_text(o, "error.hint"), "JE_MALLOC_CONF"), "%s",
			   json_text(o, "error.hint"));
	json_decref(o);
	/* glibc's are printed all the same */
	o = soon(v.pid, "stats", 0, "--omit", "hpa");
	cr_assert(json_warned(o, "stats-part"));
	cr_assert_not_null(strstr(json_text(json_array_get(json_at(o, "warnings"), 0), "text"),
				  "the target has 5.2.1"));
	json_decref(o);
	victim_stop(&v);
}
