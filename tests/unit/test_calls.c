// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/call_tree.h"
#include "../../agent/profile_top.h"
#include "some_profile.h"

/* "inner<outer", with all that is inlined. */
static void expect_stack(const struct calls *c, size_t i, const char *want)
{
	char text[300] = "";
	size_t used = 0;

	for (uint32_t k = 0; k < c->stack[i].depth; k++) {
		const struct call_site *s = &c->site[c->stack[i].site[k]];

		for (uint32_t l = 0; l < s->lines; l++)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s%s", used ? "<" : "",
				calls_text(c, c->func[c->line[s->first + l].func].name));
	}
	cr_assert_str_eq(text, want);
}

/* The allocator's frames go, whatever is below them; what has no name has its place in its file. */
Test(calls, stacks)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);

	cr_assert_eq(c->stacks, 5u);
	expect_stack(c, 0, "a<main");
	expect_stack(c, 1, "b<a<main");
	expect_stack(c, 2, "b<b<main");
	expect_stack(c, 3, "libstripped.so.1+0x5000<helper<main");
	expect_stack(c, 4, "malloc"); /* there is nothing else */
	cr_assert_eq(c->unknown, 1u);
	some_free(c, p);
}

Test(calls, names_as_they_are_wanted)
{
	static const char text[] =
		"--- symbol\n0x10 _ZN1a1bEi\n0x1f f(int)--g(long)\n---\n--- heap\n"
		"heap_v2/1\n@ 0x10 0x20 0x30\n  t*: 1: 1 [0: 0]\n";
	static const char *const want[] = {
		[CALL_NAMES_BRIEF] = "a::b<g<f<0x2f",
		[CALL_NAMES_FULL] = "a::b(int)<g(long)<f(int)<0x2f",
		[CALL_NAMES_MANGLED] = "_ZN1a1bEi<g(long)<f(int)<0x2f",
	};

	for (int i = CALL_NAMES_BRIEF; i <= CALL_NAMES_MANGLED; i++) {
		struct profile *p;
		struct calls *c = some_calls(text, (enum call_names)i, &p);

		expect_stack(c, 0, want[i]);
		some_free(c, p);
	}
}

/* A section whose writer has not subtracted 1 is of use all the same. */
Test(calls, names_at_the_return_address)
{
	struct profile *p;
	struct calls *c = some_calls("--- symbol\n0x20 f\n---\n--- heap\nheap_v2/1\n"
				     "@ 0x10 0x20\n  t*: 1: 1 [0: 0]\n",
				     CALL_NAMES_BRIEF, &p);

	expect_stack(c, 0, "0x10<f");
	some_free(c, p);
}

/* In the file of an allocator all innermost frames go, named or not, but not what comes later. */
Test(calls, frames_in_the_file_of_an_allocator)
{
	struct profile *p;
	struct calls *c =
		some_calls("heap_v2/1\n"
			   "@ 0x5000 0x5100 0x1111 0x5200 0x1311\n  t*: 1: 1 [0: 0]\n"
			   "@ 0x5000 0x5100\n  t*: 1: 1 [0: 0]\n"
			   "MAPPED_LIBRARIES:\n"
			   "00005000-00006000 r-xp 00000000 08:01 77 /lib/libjemalloc.so.2\n",
			   CALL_NAMES_BRIEF, &p);

	struct bytes out = { .v = NULL };

	expect_stack(c, 0, "a<libjemalloc.so.2+0x1ff<main");
	expect_stack(c, 1, "libjemalloc.so.2+0xff");
	/* whoever knows only names leaves them out as well */
	calls_symbol_section(c, NULL, NULL, &out);
	bytes_char(&out, '\0');
	cr_assert_not_null(strstr(out.v, "\n0x0000000000005000 malloc\n"));
	cr_assert_not_null(strstr(out.v, "\n0x00000000000050ff malloc\n"));
	bytes_free(&out);
	some_free(c, p);
}

Test(calls, text_is_made_printable)
{
	struct profile *p;
	struct calls *c = some_calls("--- symbol\n0x10 a\x1b[31m\xff\n---\n--- heap\nheap_v2/1\n"
				     "@ 0x10\n  t*: 1: 1 [0: 0]\n",
				     CALL_NAMES_BRIEF, &p);

	expect_stack(c, 0, "a\\x1b[31m\\xff");
	some_free(c, p);
}

Test(calls, addresses_to_look_up)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	uint64_t *pcs;
	size_t n;

	cr_assert_eq(calls_lookups(p, &pcs, &n), 0);
	cr_assert_eq(n, 11u); /* 0x1010 four times, 0x1310 twice */
	cr_assert_eq(pcs[0], 0x1010u);
	cr_assert_eq(pcs[1], 0x1110u);
	free(pcs);
	some_free(c, p);
}

/* No program has so many call sites: what says so takes no memory for them. */
Test(calls, too_many_addresses, .timeout = 120)
{
	const struct call_source none = { .names = CALL_NAMES_BRIEF };
	const size_t n = CALLS_SITES_MAX + 1;
	struct profile_stack *stack = calloc(n, sizeof(*stack));
	uint64_t *pc = calloc(n, sizeof(*pc)), *pcs;
	struct profile p = { .stack = stack, .stacks = n - 1 };
	struct calls *c;
	size_t found;

	cr_assert(stack && pc);
	for (size_t i = 0; i < n; i++) {
		pc[i] = 0x1000 + i;
		stack[i] = (struct profile_stack){ .pc = &pc[i], .depth = 1 };
	}
	cr_assert_eq(calls_lookups(&p, &pcs, &found), 0);
	cr_assert_eq(found, CALLS_SITES_MAX);
	free(pcs);
	p.stacks = n;
	cr_assert_eq(calls_lookups(&p, &pcs, &found), -E2BIG);
	cr_assert_eq(calls_make(&p, &none, &c), -E2BIG);
	free(stack);
	free(pc);
}

static const char *id_of_first(void *arg, size_t map)
{
	return map == 0 ? arg : NULL;
}

/* What is written for jeprof is read back, and gives the same stacks. */
Test(calls, symbol_section)
{
	struct profile *p, *q;
	struct calls *c = some_calls(NULL, CALL_NAMES_FULL, &p), *again;
	struct bytes out = { .v = NULL };
	char id[] = "00ff12";

	calls_symbol_section(c, id_of_first, id, &out);
	cr_assert(out.len > 11 && memcmp(out.v, "--- symbol\n", 11) == 0);
	bytes_text(&out, some_text);
	bytes_char(&out, '\0');
	cr_assert(!out.failed);
	cr_assert_not_null(strstr(out.v, "\n0x0000000000001330 main--helper\n"));
	cr_assert_not_null(strstr(out.v, "\n0x0000000000001010 malloc\n"));
	again = some_calls(out.v, CALL_NAMES_FULL, &q);
	expect_stack(again, 2, "b<b<main");
	expect_stack(again, 3, "libstripped.so.1+0x5000<helper<main");
	cr_assert_str_eq(q->map[0].build_id, id);
	for (size_t i = 1; i < q->maps; i++)
		cr_assert_null(q->map[i].build_id);
	some_free(again, q);
	some_free(c, p);
	bytes_free(&out);
}

/* ---- rows */

static void expect_row(const struct profile_top *t, size_t i, const char *symbol, double flat,
		       double objects, double cum)
{
	cr_assert_lt(i, t->rows);
	cr_assert_str_eq(t->row[i].symbol, symbol, "row %zu is %s", i, t->row[i].symbol);
	cr_assert_eq(t->row[i].flat.live_bytes, flat);
	cr_assert_eq(t->row[i].flat.live_objects, objects);
	cr_assert_eq(t->row[i].cum_bytes, cum, "%s", symbol);
}

/* What calls itself counts once. */
Test(profile_top, flat)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	struct profile_top t;

	cr_assert_eq(profile_top_make(c, false, &t), 0);
	cr_assert_eq(t.rows, 6u);
	expect_row(&t, 0, "b", 600, 6, 600);
	expect_row(&t, 1, "a", 100, 1, 300);
	expect_row(&t, 2, "libstripped.so.1+0x5000", 50, 1, 50);
	expect_row(&t, 3, "malloc", 8, 1, 8);
	expect_row(&t, 4, "main", 0, 0, 750);
	expect_row(&t, 5, "helper", 0, 0, 50);
	cr_assert_eq(t.total.live_bytes, SOME_BYTES);
	cr_assert_str_eq(t.row[0].file, "src/prog&ram.c");
	cr_assert(t.row[0].line == 0x30 || t.row[0].line == 0x40);
	cr_assert_str_eq(t.row[2].file, "");
	cr_assert_eq(t.row[2].line, 0u);
	profile_top_free(&t);
	some_free(c, p);
}

Test(profile_top, cum)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	struct profile_top t;

	cr_assert_eq(profile_top_make(c, true, &t), 0);
	expect_row(&t, 0, "main", 0, 0, 750);
	expect_row(&t, 1, "b", 600, 6, 600);
	expect_row(&t, 2, "a", 100, 1, 300);
	profile_top_free(&t);
	some_free(c, p);
}

Test(profile_top, text)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	struct bytes out = { .v = NULL };
	struct profile_top t;

	cr_assert_eq(profile_top_make(c, false, &t), 0);
	profile_top_text(&t, p, &out);
	bytes_char(&out, '\0');
	cr_assert_not_null(strstr(out.v, "total 758 bytes in 9 objects"));
	cr_assert_not_null(strstr(out.v, "           600  79.2%  79.2%            600  79.2%"
					 "            6  b (src/prog&ram.c:"));
	cr_assert_not_null(strstr(out.v, "  malloc\n"));
	bytes_free(&out);
	profile_top_free(&t);
	some_free(c, p);
}

/* A profile without a stack is one all the same. */
Test(profile_top, nothing)
{
	struct profile *p;
	struct calls *c = some_calls("heap_v2/1\nMAPPED_LIBRARIES:\n", CALL_NAMES_BRIEF, &p);
	struct bytes out = { .v = NULL };
	struct profile_top t;
	struct call_tree tree;

	cr_assert_eq(profile_top_make(c, false, &t), 0);
	cr_assert_eq(t.rows, 0u);
	profile_top_text(&t, p, &out);
	cr_assert(!out.failed);
	profile_top_free(&t);
	cr_assert_eq(call_tree_make(c, &tree), 0);
	call_tree_folded(c, &tree, &out);
	call_tree_free(&tree);
	bytes_free(&out);
	some_free(c, p);
}

Test(profile_change, rows)
{
	struct profile *p, *q;
	struct calls *a = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	/* b has 200 less, a 10 more, there is something new, malloc and the unknown are gone */
	struct calls *b = some_calls("heap_v2/1\n"
				     "@ 0x1010 0x1111 0x1311\n  t*: 1: 110 [0: 0]\n"
				     "@ 0x1010 0x1421 0x1231 0x1241 0x1321\n  t*: 4: 400 [0: 0]\n"
				     "@ 0x3000 0x1311\n  t*: 1: 1000 [0: 0]\n",
				     CALL_NAMES_BRIEF, &q);
	struct profile_change x;

	cr_assert_eq(profile_change_make(a, b, &x), 0);
	cr_assert_eq(x.before.live_bytes, 758);
	cr_assert_eq(x.after.live_bytes, 1510);
	cr_assert_str_eq(x.row[0].symbol, "0x3000");
	cr_assert_eq(x.row[0].before_bytes, 0);
	cr_assert_eq(x.row[0].after_bytes, 1000);
	cr_assert_str_eq(x.row[1].symbol, "b");
	cr_assert_eq(x.row[1].before_bytes, 600);
	cr_assert_eq(x.row[1].after_bytes, 400);
	cr_assert_eq(x.row[1].before_objects, 6);
	cr_assert_str_eq(x.row[2].symbol, "libstripped.so.1+0x5000");
	cr_assert_eq(x.row[2].after_bytes, 0);
	cr_assert_str_eq(x.row[3].symbol, "a");
	cr_assert_eq(x.row[3].cum_before_bytes, 300);
	cr_assert_eq(x.row[3].cum_after_bytes, 110);
	profile_change_free(&x);
	cr_assert_eq(profile_change_make(a, a, &x), 0);
	cr_assert_eq(x.rows, 0u);
	profile_change_free(&x);
	some_free(a, p);
	some_free(b, q);
}

/* ---- the tree */

Test(call_tree, folded)
{
	struct profile *p;
	struct calls *c = some_calls(NULL, CALL_NAMES_BRIEF, &p);
	struct bytes out = { .v = NULL };
	struct call_tree t;

	cr_assert_eq(call_tree_make(c, &t), 0);
	cr_assert_eq(t.v[0].total, SOME_BYTES);
	call_tree_folded(c, &t, &out);
	bytes_char(&out, '\0');
	cr_assert_str_eq(out.v, "main;a 100\n"
				"main;a;b 200\n"
				"main;b;b 400\n"
				"main;helper;libstripped.so.1+0x5000 50\n"
				"malloc 8\n");
	bytes_free(&out);
	call_tree_free(&t);
	some_free(c, p);
}

Test(call_tree, semicolons_part_nothing)
{
	struct profile *p;
	struct calls *c = some_calls("--- symbol\n0x10 a;b c\n---\n--- heap\nheap_v2/1\n"
				     "@ 0x10\n  t*: 1: 5 [0: 0]\n@ 0x10\n  t*: 1: 6 [0: 0]\n",
				     CALL_NAMES_FULL, &p);
	struct bytes out = { .v = NULL };
	struct call_tree t;

	cr_assert_eq(call_tree_make(c, &t), 0);
	call_tree_folded(c, &t, &out);
	bytes_char(&out, '\0');
	cr_assert_str_eq(out.v, "a:b c 11\n");
	bytes_free(&out);
	call_tree_free(&t);
	some_free(c, p);
}

/* One short line can stand for many functions that are inlined into each other: the tree ends. */
Test(call_tree, is_bounded, .timeout = 120)
{
	struct bytes text = { .v = NULL };
	struct profile *p;
	struct calls *c;
	struct call_tree t;
	uint64_t x = 1;

	bytes_text(&text, "--- symbol\n");
	for (int i = 0; i < 2; i++) {
		bytes_printf(&text, "0x%x ", 0x10 + i);
		for (int k = 0; k < 60; k++)
			bytes_printf(&text, "%sf%d", k ? "--" : "", i);
		bytes_char(&text, '\n');
	}
	bytes_text(&text, "---\n--- heap\nheap_v2/1\n");
	for (int i = 0; i < 2000; i++) {
		bytes_char(&text, '@');
		for (int k = 0; k < 100; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			bytes_printf(&text, " 0x%x", 0x11 + (unsigned)(x >> 63));
		}
		bytes_text(&text, "\n t*: 1: 1 [0: 0]\n");
	}
	bytes_char(&text, '\0');
	c = some_calls(text.v, CALL_NAMES_FULL, &p);
	cr_assert_eq(call_tree_make(c, &t), -EFBIG);
	cr_assert_null(t.v);
	some_free(c, p);
	bytes_free(&text);
}
