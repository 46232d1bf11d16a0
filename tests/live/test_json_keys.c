// SPDX-License-Identifier: GPL-3.0-or-later
/* What --json prints, key by key, against what heapmedic-json(5) says: see repl/schema.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "server.h"
#include "victim.h"

#define KEYS 1000

static struct key {
	char of[32], path[96], type[32];
	bool sometimes, null, seen;
} keys[KEYS];
static size_t n_keys;

static void read_keys(void)
{
	const char *docs = getenv("DOCS");
	char path[512], line[256];
	FILE *f;

	cr_assert_not_null(docs, "$DOCS is where the built documents are");
	snprintf(path, sizeof(path), "%s/json-keys", docs);
	f = fopen(path, "re");
	cr_assert_not_null(f, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		struct key *k = &keys[n_keys++];
		char type[32];
		size_t n;

		cr_assert_lt(n_keys, KEYS);
		cr_assert_eq(sscanf(line, "%31[^\t]\t%95[^\t]\t%31[^\n]", k->of, k->path, type), 3);
		k->sometimes = type[0] == '~';
		n = strlen(type);
		k->null = type[n - 1] == '?';
		snprintf(k->type, sizeof(k->type), "%.*s", (int)(n - k->sometimes - k->null),
			 type + k->sometimes);
	}
	fclose(f);
	cr_assert_gt(n_keys, 400);
}

/* A path, in which * is any one name. */
static bool matches(const char *pattern, const char *path)
{
	while (*pattern && *path) {
		if (*pattern == '*') {
			pattern++;
			path += strcspn(path, ".");
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return !*pattern && !*path;
}

static bool fits(const char *type, const json_t *v)
{
	static const char *const integers[] = { "bytes", "count", "us", "ms", "index" };
	static const char *const numbers[] = { "seconds", "number", "fraction" };
	static const char *const strings[] = { "text", "word", "time", "address" };

	for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
		if (strcmp(type, integers[i]) == 0)
			return json_is_integer(v);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(type, numbers[i]) == 0)
			return json_is_number(v);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strcmp(type, strings[i]) == 0)
			return json_is_string(v);
	return strcmp(type, "any") == 0 || (strcmp(type, "bool") == 0 && json_is_boolean(v)) ||
	       (strcmp(type, "list") == 0 && json_is_array(v)) ||
	       (strcmp(type, "object") == 0 && json_is_object(v));
}

static struct key *find_key(const char *of, const char *path)
{
	for (size_t i = 0; i < n_keys; i++)
		if (strcmp(keys[i].of, of) == 0 && matches(keys[i].path, path))
			return &keys[i];
	return NULL;
}

static void walk(const char *of, const char *prefix, json_t *o);

static void member(const char *of, const char *prefix, const char *name, json_t *v)
{
	char path[256], clean[96];
	struct key *k;

	/* facts have dots in their names */
	snprintf(clean, sizeof(clean), "%s", name);
	for (char *c = clean; *c; c++)
		*c = *c == '.' ? '_' : *c;
	snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", clean);
	k = find_key(of, path);
	cr_assert_not_null(k, "%s prints %s, which is not documented", of, path);
	/* of several (glibc's and jemalloc's arenas) the first tells the type */
	for (size_t i = 0; i < n_keys; i++)
		if (strcmp(keys[i].of, of) == 0 && matches(keys[i].path, path))
			keys[i].seen = true;
	cr_expect((json_is_null(v) && (k->null || !strcmp(k->type, "any"))) || fits(k->type, v),
		  "%s: %s is no %s", of, path, k->type);
	/* what stands below is somebody else's, or is told elsewhere */
	if (strcmp(k->type, "any") == 0 || (strcmp(of, "*") == 0 && strcmp(path, "result") == 0))
		return;
	walk(of, path, v);
}

static void walk(const char *of, const char *prefix, json_t *o)
{
	const char *name;
	char below[256];
	size_t i;
	json_t *v;

	if (json_is_object(o))
		json_object_foreach(o, name, v) member(of, prefix, name, v);
	snprintf(below, sizeof(below), "%s[]", prefix);
	if (json_is_array(o))
		json_array_foreach(o, i, v) walk(of, below, v);
}

static void check_answer(json_t *o)
{
	const char *command = json_string_value(json_object_get(o, "command"));

	walk("*", "", o);
	if (command)
		walk(command, "", json_object_get(o, "result"));
}

static void check_lines(const char *out)
{
	while (*out) {
		const char *end = strchr(out, '\n');
		json_t *o;

		cr_assert_not_null(end, "%s", out);
		o = json_loadb(out, (size_t)(end - out), 0, NULL);
		cr_assert_not_null(o, "%s", out);
		check_answer(o);
		json_decref(o);
		out = end + 1;
	}
}

/* heapmedic --json with the words of line: @NAME is a file in dir, and A|B one word with blanks. */
static void run_line(const char *selector, const char *line, const char *dir, int exit)
{
	const struct run_opts none = { 0 };
	const char *args[RUN_ARGS] = { "--json" };
	char text[256], file[4][128], *word, *save = NULL;
	size_t n = 1, files = 0;
	struct run r;

	if (selector) {
		args[n++] = "-p";
		args[n++] = selector;
	}
	snprintf(text, sizeof(text), "%s", line);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		for (char *c = word; *c; c++)
			*c = *c == '|' ? ' ' : *c;
		if (*word == '@') {
			snprintf(file[files], sizeof(file[0]), "%s/%s", dir, word + 1);
			word = file[files++];
		}
		cr_assert(n + 1 < RUN_ARGS && files < 4);
		args[n++] = word;
	}
	run_with(&r, &none, args);
	cr_expect_eq(r.exit, exit, "%s: %s%s", line, r.out, r.err);
	check_lines(r.out);
	run_free(&r);
}

static const char *const of_any[] = {
	"check",
	"check --hold",
	"diagnose",
	"facts",
	"watch 100ms 2",
	"maps --all",
	"arenas",
	"threads",
	"bt",
	"stats",
	"trim --dry-run",
	"trim",
	"snapshot --force @a",
	"snapshot --force @b",
	"diff @a @b",
	"diff @a",
	"--dry-run snapshot @none",
};

static const char *const of_glibc[] = {
	"info",
	"info --raw",
	"mallopt M_ARENA_MAX 8",
	"watch 100ms 3 --after-trim",
	"guard --when rss|>|1 --do trim|--dry-run --max 1 --every 1s",
};

static const char *const of_jemalloc[] = {
	"mallctl stats.allocated",
	"mallctl stats.arenas.all.pdirty",
	"mallctl arena.0.dirty_decay_ms 5000",
	"mallctl arena.all.dirty_decay_ms 4000",
	"mallctl arena.0.purge",
	"mallctl --list arenas.",
	"--dry-run mallctl arena.0.dirty_decay_ms 1",
	"purge",
	"decay",
	"decay dirty",
	"decay dirty all 5000",
	"decay muzzy default 100",
	"--dry-run decay dirty all 1",
	"background_thread",
	"background_thread off",
	"--dry-run background_thread off",
	"stats J",
	"prof status",
	"prof off",
	"prof on",
	"prof dump @a.heap",
	"prof dump @b.heap",
	"prof top --file @b.heap",
	"prof diff @a.heap @b.heap",
	"prof export @b.folded --file @b.heap",
	"prof reset",
	"--dry-run prof reset",
};

static void run_all(const char *pid, const char *const *lines, size_t n, const char *dir)
{
	for (size_t i = 0; i < n; i++)
		run_line(pid, lines[i], dir, 0);
}
#define RUN_ALL(pid, lines) run_all(pid, lines, sizeof(lines) / sizeof((lines)[0]), dir)

/* The last line of what has a first and a last one. */
static void run_serve(const char *pid)
{
	const char *const args[] = { "-p", pid, NULL }, *const more[] = { NULL };
	struct server s;
	json_t *o;

	server_start(&s, args, more);
	o = server_stop(&s);
	check_answer(o);
	json_decref(o);
}

Test(json_keys, are_documented_and_seen)
{
	const struct victim_plan glibc = { .argv = { "@retained", "2" } };
	const struct victim_plan jemalloc = {
		.argv = { "@jemlinked", "2" },
		.env = "MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:0"
	};
	char dir[] = "/tmp/heapmedic-keys-XXXXXX", remove[64], a[16], b[16];
	struct victim v, w;

	read_keys();
	cr_assert_not_null(mkdtemp(dir));
	victim_start(&v, &glibc);
	victim_start(&w, &jemalloc);
	snprintf(a, sizeof(a), "%d", (int)v.pid);
	snprintf(b, sizeof(b), "%d", (int)w.pid);
	RUN_ALL(a, of_any);
	RUN_ALL(a, of_glibc);
	RUN_ALL(b, of_any);
	RUN_ALL(b, of_jemalloc);
	run_serve(a);
	/* errors have an answer, too: of a command, of the command line, of a runbook's control */
	run_line(a, "require rss|>|1T", dir, 7);
	run_line(NULL, "no-such-command", dir, 2);
	run_line(b, "info", dir, 5);
	for (size_t i = 0; i < n_keys; i++)
		cr_expect(keys[i].seen || keys[i].sometimes, "%s: %s was never printed", keys[i].of,
			  keys[i].path);
	victim_stop(&v);
	victim_stop(&w);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	cr_expect_eq(system(remove), 0);
}
