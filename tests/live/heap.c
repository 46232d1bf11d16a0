// SPDX-License-Identifier: GPL-3.0-or-later
#include "heap.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

json_t *heap_ask(pid_t pid, const char *command, const char *more)
{
	struct run r;
	json_t *o;

	run(&r, pid, "--passive", "--json", command, more, NULL);
	run_expect(&r, 0);
	cr_assert_eq(run_lines(&r), 1);
	o = run_json(&r, 0, pid, command);
	run_free(&r);
	return o;
}

json_t *heap_arena(json_t *o, long long index)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.arenas"), i,
			   row) if (json_int(row, "index") == index) return row;
	return NULL;
}

bool heap_flag(json_t *row, const char *name)
{
	json_t *word;
	size_t i;

	json_array_foreach(json_at(row, "flags"), i,
			   word) if (!strcmp(json_string_value(word), name)) return true;
	return false;
}

static const char *const figures[] = { "system",    "in_use", "free", "free_resident", "stranded",
				       "trimmable", "pinned", "top",  "threads" };

void heap_check_rows(json_t *o)
{
	json_t *list = json_at(o, "result.arenas"), *row;
	long long last = -1;
	size_t i;

	cr_assert_eq(json_int(o, "result.total.arenas"), (long long)json_array_size(list));
	json_array_foreach(list, i, row)
	{
		cr_assert_str_eq(json_text(row, "allocator"), "glibc");
		cr_assert_str_eq(json_text(row, "origin"), "passive");
		cr_assert_eq(json_int(row, "system"),
			     json_int(row, "in_use") + json_int(row, "free"));
		cr_assert_leq(json_int(row, "free_resident"), json_int(row, "free"));
		cr_assert_leq(json_int(row, "stranded") + json_int(row, "trimmable") +
				      json_int(row, "pinned"),
			      json_int(row, "free_resident"));
		cr_assert_leq(json_int(row, "top"), json_int(row, "free"));
		cr_assert(last < 0 || json_int(row, "system") <= last);
		last = json_int(row, "system");
	}
	for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++) {
		char path[64];
		long long sum = 0;

		json_array_foreach(list, i, row) sum += json_int(row, figures[k]);
		snprintf(path, sizeof(path), "result.total.%s", figures[k]);
		cr_assert_eq(json_int(o, path), sum, "%s", figures[k]);
	}
}

void heap_check_quiet(json_t *o)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_at(o, "result.arenas"), i, row)
	{
		cr_assert_eq(json_array_size(json_at(row, "flags")), 0, "arena %lld",
			     json_int(row, "index"));
		cr_assert(json_is_null(json_at(row, "damage")));
	}
	cr_assert_eq(json_array_size(json_at(o, "result.total.flags")), 0);
	cr_assert_eq(json_array_size(json_at(o, "warnings")), 0);
}

static void compare_with_info(json_t *o, json_t *said)
{
	json_t *want;
	size_t i;

	cr_assert_eq(json_array_size(json_at(o, "result.arenas")),
		     json_array_size(json_at(said, "result.arenas")));
	json_array_foreach(json_at(said, "result.arenas"), i, want)
	{
		long long index = json_int(want, "index");
		json_t *got = heap_arena(o, index);

		cr_assert_not_null(got, "arena %lld", index);
		cr_assert_eq(json_int(got, "system"), json_int(want, "system_bytes"), "arena %lld",
			     index);
		cr_assert_eq(json_int(got, "in_use"), json_int(want, "in_use_bytes"), "arena %lld",
			     index);
		cr_assert_eq(json_int(got, "free"), json_int(want, "free_bytes"), "arena %lld",
			     index);
	}
	cr_assert_eq(json_int(o, "result.parameters.mmapped"),
		     json_int(said, "result.total.mmapped_bytes"));
	cr_assert_eq(json_int(o, "result.parameters.mmapped_count"),
		     json_int(said, "result.total.mmapped_count"));
}

void heap_check_info(pid_t pid)
{
	struct run r;
	json_t *o, *said;

	run(&r, pid, "--json", "-e", "info", "-e", "arenas", "-e", "info", NULL);
	run_expect(&r, 0);
	o = run_json(&r, 1, pid, "arenas");
	for (size_t line = 0; line <= 2; line += 2) {
		said = run_json(&r, line, pid, "info");
		compare_with_info(o, said);
		json_decref(said);
	}
	json_decref(o);
	run_free(&r);
}

int heap_glibc(pid_t pid)
{
	json_t *o = heap_ask(pid, "facts", NULL), *version = heap_fact(o, "glibc.version");
	int minor = 0;

	if (json_is_string(version))
		cr_assert_eq(sscanf(json_string_value(version), "2.%d", &minor), 1);
	json_decref(o);
	return minor;
}

json_t *heap_fact(json_t *o, const char *name)
{
	json_t *v = json_object_get(json_at(o, "result"), name);

	cr_assert_not_null(v, "no fact %s, not even an unknown one", name);
	return v;
}

long long heap_fact_int(json_t *o, const char *name)
{
	json_t *v = heap_fact(o, name);

	cr_assert(json_is_integer(v), "%s is not known", name);
	return json_integer_value(v);
}
