// SPDX-License-Identifier: GPL-3.0-or-later
/* jemalloc wherever it is: each one in a process is shown, asked and trimmed, and none is called
 * that is not what it says. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "victim.h"

#define MIB (1024ll * 1024)
/* Each keeps 64 MiB, of which jemalloc itself may have given some back (5.2 is quicker at it). */
#define KEPT_LEAST (16 * MIB)
#define KEPT_MOST  (80 * MIB) /* with what else it had unused */
/* Plugins with a jemalloc need room in static TLS (tls_model initial-exec of Debian's build). */
#define ROOM "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536"

/* libc.so.6 and before glibc 2.34 libc-2.33.so */
#define LIBC "/libc"

/* What `check` has to say of one allocator. */
struct expected {
	const char *name, *linkage, *prefix;
	bool owns, in_use, callable;
	const char *file; /* the end of it */
};

#define FOUND_MAX 4
struct find_case {
	struct victim_plan plan;
	struct expected found[FOUND_MAX]; /* in their order, until one without a name */
	int check;			  /* its exit code */
	int trimmed;			  /* so many jemallocs give back what it has kept */
	const char *unasked;		  /* why one cannot be called; NULL: no symbols */
};

static const struct find_case cases[] = {
	{ .plan = { .argv = { "@jemlinked", "2" } },
	  .found = { { "jemalloc", "dynamic", "", true, true, true, "/libjemalloc.so.2" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@retained", "2" }, .env = "LD_PRELOAD=libjemalloc.so.2" },
	  .found = { { "jemalloc", "preload", "", true, true, true, "/libjemalloc.so.2" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@jem-static" } },
	  .found = { { "jemalloc", "static", "", true, true, true, "/jem-static" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@jem-nopie" } },
	  .found = { { "jemalloc", "static", "", true, true, true, "/jem-nopie" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } },
	  .trimmed = 1 },
	/* glibc's malloc is not in it */
	{ .plan = { .argv = { "@jem-whole" } },
	  .found = { { "jemalloc", "static", "", true, true, true, "/jem-whole" } },
	  .trimmed = 1 },
	/* the program's own malloc is jemalloc's; that of its libraries is not */
	{ .plan = { .argv = { "@jem-hidden" } },
	  .found = { { "jemalloc", "static", "", false, true, true, "/jem-hidden" },
		     { "glibc", "dynamic", "", true, true, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@jem-rust" } },
	  .found = { { "jemalloc", "static", "_rjem_", false, true, true, "/jem-rust" },
		     { "glibc", "dynamic", "", true, true, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@jem-rust" }, .env = "LD_PRELOAD=libjemalloc.so.2" },
	  .found = { { "jemalloc", "static", "_rjem_", false, true, true, "/jem-rust" },
		     { "jemalloc", "preload", "", true, true, true, "/libjemalloc.so.2" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } },
	  .trimmed = 1 },
	{ .plan = { .argv = { "@jem-host", "@jem-hidden.so", "@jem-exported.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "_rjem_", false, true, true, "/jem-hidden.so" },
		     { "jemalloc", "static", "_rjem_", false, true, true, "/jem-exported.so" } },
	  .trimmed = 2 },
	/* exported by a library that looks into itself first, or into the program's libraries: then
	 * nobody reaches it, and it is not asked */
	{ .plan = { .argv = { "@jem-host", "@jem-symbolic.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, true, true, "/jem-symbolic.so" } },
	  .trimmed = 1 },
	/* its own calls were bound by the linker */
	{ .plan = { .argv = { "@jem-host", "@jem-functions.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, true, true, "/jem-functions.so" } },
	  .trimmed = 1 },
	/* opened so that it looks into itself first */
	{ .plan = { .argv = { "@jem-host", "deep", "@jem-plain.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, true, true, "/jem-plain.so" } },
	  .trimmed = 1 },
	/* in a namespace of its own, with a libc of its own: no thread of ours may call it */
	{ .plan = { .argv = { "@jem-host", "apart", "@jem-plain.so" }, .env = ROOM },
	  .unasked = "other-namespace",
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, true, false, "/jem-plain.so" } } },
	{ .plan = { .argv = { "@jem-host", "apart", "@jem-hidden.so" }, .env = ROOM },
	  .unasked = "other-namespace",
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "_rjem_", false, true, false, "/jem-hidden.so" } } },
	{ .plan = { .argv = { "@jem-host", "@jem-plain.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, false, true, "/jem-plain.so" } } },
	/* exported, so that libc finds it, and stripped: the malloc is there, but mallctl is not */
	{ .plan = { .argv = { "@jem-bare" } },
	  .check = 5,
	  .found = { { "jemalloc", "static", "", true, true, false, "/jem-bare" },
		     { "glibc", "dynamic", "", false, false, true, LIBC } } },
	{ .plan = { .argv = { "@jem-host", "@jem-stripped.so" }, .env = ROOM },
	  .found = { { "glibc", "dynamic", "", true, true, true, LIBC },
		     { "jemalloc", "static", "", false, true, false, "/jem-stripped.so" } } },
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

static void check_one(json_t *o, const struct expected *x, const char *all)
{
	cr_assert_str_eq(json_text(o, "name"), x->name, "%s", all);
	cr_assert_str_eq(json_text(o, "linkage"), x->linkage, "%s", all);
	cr_assert_str_eq(json_text(o, "symbol_prefix"), x->prefix, "%s", all);
	cr_assert_eq(json_bool(o, "owns_malloc"), x->owns, "%s", all);
	cr_assert_eq(json_bool(o, "in_use"), x->in_use, "%s", all);
	cr_assert_eq(json_bool(o, "callable"), x->callable, "%s", all);
	if (!strcmp(x->file, LIBC))
		cr_assert_not_null(strstr(json_text(o, "file"), LIBC), "%s", all);
	else
		cr_assert(ends_with(json_text(o, "file"), x->file), "%s", all);
	if (strcmp(x->name, "jemalloc") == 0)
		cr_assert_str_eq(json_text(o, "version"), victim_jemalloc(), "%s", all);
}

static void check_found(const struct victim *v, const struct find_case *f)
{
	struct run r;
	json_t *o, *list;
	size_t n = 0;

	run(&r, v->pid, "--json", "check", NULL);
	run_expect(&r, f->check);
	o = run_json(&r, 0, v->pid, "check");
	list = json_at(o, "result.allocators");
	for (; n < FOUND_MAX && f->found[n].name; n++) {
		cr_assert_gt(json_array_size(list), n, "%s", r.out);
		check_one(json_array_get(list, n), &f->found[n], r.out);
		if (f->found[n].in_use && !f->found[n].callable)
			cr_assert(json_warned(o, f->unasked ? f->unasked : "no-mallctl"), "%s",
				  r.out);
	}
	cr_assert_eq(json_array_size(list), n, "%s", r.out);
	json_decref(o);
	run_free(&r);
}

/* Each gives back what it has kept, and is named. */
static void check_trimmed(const struct victim *v, const struct find_case *f)
{
	int seen = 0;
	struct run r;
	json_t *o, *part;
	size_t i;

	run(&r, v->pid, "--json", "trim", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "trim");
	json_array_foreach(json_at(o, "result.allocators"), i, part)
	{
		if (strcmp(json_text(part, "name"), "jemalloc") != 0 ||
		    json_int(part, "returned_bytes") < KEPT_LEAST)
			continue;
		seen++;
		cr_assert_eq(json_int(part, "rc"), 0);
		cr_assert_eq(json_text(part, "file")[0], '/');
	}
	cr_assert_eq(seen, f->trimmed, "%s", r.out);
	json_decref(o);
	run_free(&r);
}

Test(find_jemalloc, wherever_it_is, .timeout = 300)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct state state;
		struct victim v;

		victim_start(&v, &cases[i].plan);
		state_take(&v, &state);
		check_found(&v, &cases[i]);
		if (cases[i].trimmed)
			check_trimmed(&v, &cases[i]);
		else if (cases[i].unasked)
			run_ok(v.pid, "trim", NULL);
		state_same(&v, &state, STATE_EXACT);
		victim_stop(&v);
	}
}

/* ---- whose memory it is */

/* Beside glibc, which owns malloc: by its own tree of extents, without a call. */
Test(find_jemalloc, its_mappings_are_known, .timeout = 120)
{
	static const struct {
		struct victim_plan plan;
		int heaps; /* so many of 64 MiB, of which a part may have been given back */
	} plans[] = {
		{ { .argv = { "@jem-rust" } }, 1 },
		{ { .argv = { "@jem-host", "@jem-hidden.so", "@jem-exported.so" }, .env = ROOM },
		  2 },
	};

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		long long own = 0, nobodys = 0;
		struct victim v;
		struct run r;
		json_t *o, *row;
		size_t k;

		victim_start(&v, &plans[i].plan);
		run(&r, v.pid, "--json", "--passive", "maps", NULL);
		run_expect(&r, 0);
		o = run_json(&r, 0, v.pid, "maps");
		json_array_foreach(json_at(o, "result.rows"), k, row)
		{
			bool its = strcmp(json_text(row, "owner"), "jemalloc") == 0;

			own += its ? json_int(row, "mapped_bytes") : 0;
			if (strcmp(json_text(row, "owner"), "unclaimed") == 0)
				nobodys += json_int(row, "mapped_bytes");
		}
		cr_assert_geq(own, plans[i].heaps * 64 * MIB, "%s", r.out);
		cr_assert_leq(nobodys, 16 * MIB, "%s", r.out);
		json_decref(o);
		run_free(&r);
		victim_stop(&v);
	}
}

/* ---- which one is asked */

static void read_version(const struct victim *v, const char *which)
{
	struct run r;
	json_t *o;

	run(&r, v->pid, "--json", "--allocator", which, "mallctl", "version", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v->pid, "mallctl");
	cr_assert_eq(strncmp(json_text(o, "result.value"), victim_jemalloc(), 5), 0, "%s", r.out);
	cr_assert_not(json_warned(o, "several-allocators"));
	json_decref(o);
	run_free(&r);
}

static void refused(const struct victim *v, const char *which, const char *const *command, int exit,
		    const char *code, const char *hint)
{
	char pid[16];
	const char *args[RUN_ARGS] = { "-p", pid, "--json" };
	const struct run_opts opts = { 0 };
	struct run r;
	size_t n = 3;
	json_t *o;

	snprintf(pid, sizeof(pid), "%d", v->pid);
	if (which) {
		args[n++] = "--allocator";
		args[n++] = which;
	}
	for (size_t i = 0; command[i]; i++)
		args[n++] = command[i];
	run_with(&r, &opts, args);
	run_expect(&r, exit);
	o = run_json(&r, 0, v->pid, command[0]);
	cr_assert_str_eq(json_text(o, "error.code"), code, "%s", r.out);
	cr_assert_not_null(strstr(json_text(o, "error.hint"), hint), "%s", r.out);
	json_decref(o);
	run_free(&r);
}

static const char *const version[] = { "mallctl", "version", NULL };
static const char *const trim[] = { "trim", NULL };

/* None owns malloc: nobody can say which one is meant. */
Test(find_jemalloc, one_of_two_plugins_is_chosen)
{
	const struct victim_plan plan = {
		.argv = { "@jem-host", "@jem-hidden.so", "@jem-exported.so" }, .env = ROOM
	};
	char one[64], other[64];
	struct victim v;
	struct run r;
	json_t *o;

	victim_start(&v, &plan);
	refused(&v, NULL, version, 2, "several-allocators", "jem-hidden.so, jem-exported.so");
	refused(&v, "_rjem_", version, 2, "several-allocators", "jem-hidden.so");
	refused(&v, "other.so", version, 5, "no-such-allocator", "libc");
	refused(&v, "glibc", version, 5, "no-jemalloc", "`check`");
	read_version(&v, "jem-hidden.so");
	read_version(&v, "jem-exported.so:_rjem_");
	run(&r, v.pid, "stats", NULL);
	run_expect(&r, 0);
	snprintf(one, sizeof(one), "jemalloc %s in jem-hidden.so:", victim_jemalloc());
	snprintf(other, sizeof(other), "jemalloc %s in jem-exported.so:", victim_jemalloc());
	cr_assert_not_null(strstr(r.out, one), "%s", r.out);
	cr_assert_not_null(strstr(r.out, other), "%s", r.out);
	run_free(&r);
	/* only that one: the other keeps its memory */
	run(&r, v.pid, "--json", "trim", "--allocator", "jem-exported.so", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "trim");
	cr_assert_eq(json_array_size(json_at(o, "result.allocators")), 1, "%s", r.out);
	cr_assert(ends_with(json_text(o, "result.allocators.0.file"), "/jem-exported.so"));
	cr_assert_geq(json_int(o, "result.returned_bytes"), KEPT_LEAST);
	cr_assert_leq(json_int(o, "result.returned_bytes"), KEPT_MOST);
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "trim", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "/jem-hidden.so): -"), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* The one that owns malloc is meant as a rule, and that is said. */
Test(find_jemalloc, the_owner_of_two_is_asked)
{
	const struct victim_plan plan = { .argv = { "@jem-rust" },
					  .env = "LD_PRELOAD=libjemalloc.so.2" };
	struct victim v;
	struct run r;
	long long both, one;
	json_t *o;

	victim_start(&v, &plan);
	run(&r, v.pid, "--json", "mallctl", "stats.allocated", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "mallctl");
	cr_assert(json_warned(o, "several-allocators"), "%s", r.out);
	json_decref(o);
	run_free(&r);
	read_version(&v, "libjemalloc.so.2");
	read_version(&v, "_rjem_");
	/* facts are of both together, or of the one that was named */
	run(&r, v.pid, "--json", "facts", "jemalloc.purgeable", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "facts");
	both = json_integer_value(json_object_get(json_at(o, "result"), "jemalloc.purgeable"));
	json_decref(o);
	run_free(&r);
	run(&r, v.pid, "--json", "facts", "jemalloc.purgeable", "--allocator", "libjemalloc.so.2",
	    NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "facts");
	one = json_integer_value(json_object_get(json_at(o, "result"), "jemalloc.purgeable"));
	json_decref(o);
	run_free(&r);
	cr_assert_geq(both, KEPT_LEAST);
	cr_assert_lt(one, both / 2);
	victim_stop(&v);
}

/* Its names are local ones of a library: a thread inside of it is seen all the same, and not used
 * for a call that would wait for the lock that it holds. */
Test(find_jemalloc, a_thread_inside_a_plugin_is_not_used, .timeout = 120)
{
	const struct victim_plan plan = { .argv = { "@jem-host", "busy", "@jem-hidden.so" },
					  .env = ROOM };
	struct victim v;
	int done = 0;

	victim_start(&v, &plan);
	for (int i = 0; i < 40; i++) {
		struct run r;

		run(&r, v.pid, "--via", "direct", "--timeout", "5s", "trim", NULL);
		cr_assert(r.exit == 0 || r.exit == 6, "%d: %s", r.exit, r.err);
		done += r.exit == 0;
		run_free(&r);
		victim_check(&v);
	}
	cr_assert_gt(done, 0);
	victim_stop(&v);
}

/* ---- symbols in another file, or in none */

/* Where the debug file of jem-stripped is looked for; false without a build id. */
static bool debug_place(char dir[64], char file[160])
{
	char command[512], id[80];
	FILE *f;

	snprintf(command, sizeof(command), "readelf -n '%s' | sed -n 's/.*Build ID: //p'",
		 victim_path("jem-stripped"));
	f = popen(command, "re");
	cr_assert_not_null(f);
	if (!fgets(id, sizeof(id), f))
		id[0] = '\0';
	pclose(f);
	id[strcspn(id, "\n")] = '\0';
	snprintf(dir, 64, "/usr/lib/debug/.build-id/%.2s", id);
	snprintf(file, 160, "%s/%s.debug", dir, id + (id[0] ? 2 : 0));
	return strlen(id) > 4;
}

/* Not found, and why; and found once the file is there that the hint has named. */
Test(find_jemalloc, stripped_and_then_with_its_debug_file)
{
	char dir[64], file[160], *from = realpath(victim_path("jem-stripped.debug"), NULL);
	struct victim v;
	struct run r;
	bool made;

	if (geteuid() != 0)
		cr_skip_test("only root can put a debug file in its place");
	if (getenv("VICTIM_ROOT"))
		cr_skip_test("the root of another release does not have it");
	cr_assert_not_null(from);
	cr_assert(debug_place(dir, file), "gcc makes no build ids");
	unlink(file);
	victim_start_named(&v, "jem-stripped", NULL, NULL);
	refused(&v, NULL, version, 5, "no-mallctl", file);
	made = mkdir("/usr/lib/debug", 0755) == 0;
	made = mkdir("/usr/lib/debug/.build-id", 0755) == 0 || made;
	mkdir(dir, 0755);
	cr_assert_eq(symlink(from, file), 0, "%s: %s", file, strerror(errno));
	free(from);
	run(&r, v.pid, "--json", "check", NULL);
	unlink(file);
	rmdir(dir);
	if (made)
		rmdir("/usr/lib/debug/.build-id");
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.out, "\"symbol_prefix\":\"_rjem_\""), "%s", r.out);
	run_free(&r);
	victim_stop(&v);
}

/* Its malloc is all that the program has: nothing else can be asked or trimmed. */
Test(find_jemalloc, without_symbols_it_is_said)
{
	static struct state state;
	struct victim v;
	struct run r;

	victim_start_named(&v, "jem-bare", NULL, NULL);
	state_take(&v, &state);
	refused(&v, NULL, version, 5, "no-mallctl", "strip --strip-debug");
	refused(&v, NULL, trim, 5, "no-mallctl", "/usr/lib/debug/.build-id/");
	run(&r, v.pid, "diagnose", NULL);
	run_expect(&r, 0);
	cr_assert_not_null(strstr(r.err, "it was stripped"), "%s", r.err);
	run_free(&r);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* ---- what only says that it is jemalloc */

Test(find_jemalloc, a_liar_is_not_called)
{
	static const char *const names[] = { "_rjem_", "jemalloc_", "je_", "jemk_" };
	const struct victim_plan plan = { .argv = { "@jem-host", "@jem-liar.so" } };
	static struct state state;
	struct victim v;

	victim_start(&v, &plan);
	state_take(&v, &state);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		refused(&v, names[i], version, 5, "not-jemalloc", "cannot be trusted");
	/* its plain mallctl is nobody's malloc: not even in use */
	refused(&v, "jem-liar.so:", version, 5, "no-such-allocator", "libc");
	/* glibc is trimmed all the same */
	run_ok(v.pid, "trim", NULL);
	state_same(&v, &state, STATE_EXACT);
	victim_stop(&v);
}

/* Two hundred of them: the one that owns malloc is there among those that there is room for. */
Test(find_jemalloc, two_hundred_liars, .timeout = 120)
{
	const char *args[] = { "@manylibs", "@jem-liar.so", "200", "kept" };
	struct victim_plan plan = { .argv = { args[0], args[1], args[2], args[3] } };
	struct victim v;
	struct run r;
	json_t *o, *a;
	bool owner = false;
	size_t i;

	victim_start(&v, &plan);
	run(&r, v.pid, "--json", "check", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 0, v.pid, "check");
	json_array_foreach(json_at(o, "result.allocators"), i, a)
	{
		bool owns = json_bool(a, "owns_malloc");

		owner |= owns && strcmp(json_text(a, "name"), "glibc") == 0;
		cr_assert(!owns || strcmp(json_text(a, "name"), "glibc") == 0, "%s", r.out);
	}
	cr_assert(owner, "%s", r.out);
	cr_assert_gt(json_int(o, "result.more_allocators"), 500, "%s", r.out);
	json_decref(o);
	run_free(&r);
	run_ok(v.pid, "trim", NULL);
	victim_stop(&v);
}
