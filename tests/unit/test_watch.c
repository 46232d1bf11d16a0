// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/watch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../repl/watch_text.h"

#define MIB ((uint64_t)1 << 20)
#define MS  ((uint64_t)1000000)
#define SEC (1000 * MS)

/* A process that is watched: MiB of each kind. */
struct fixture {
	struct watch w;
	struct trim_mark mark;
	uint64_t live, retained, other, swap, minflt;
	bool unasked; /* what is live or retained only a call could tell */
	uint64_t cost;
	struct watch_line line;
};

static void start(struct fixture *x)
{
	memset(x, 0, sizeof(*x));
	watch_begin(&x->w, SEC);
	x->live = 100;
	x->retained = 50;
	x->other = 10;
	x->cost = MS;
}

static void look(struct fixture *x, uint64_t at)
{
	struct makeup m = { .rss = (x->live + x->retained + x->other) * MIB,
			    .live = x->unasked ? 0 : x->live * MIB,
			    .retained = x->unasked ? 0 : x->retained * MIB,
			    .unasked = x->unasked ? (x->live + x->retained) * MIB : 0,
			    .other = x->other * MIB };
	struct facts f = { 0 };

	facts_set(&f, FACT_SWAP, FROM_KERNEL, x->swap * MIB);
	watch_looked(&x->w, at, x->cost, &m, &f);
}

/* The line of that second. */
static const struct watch_line *line(struct fixture *x, uint64_t second)
{
	struct watch_reading r = {
		.at = second * SEC,
		.usage = { .rss = (x->live + x->retained + x->other) * MIB,
			   .anon = (x->live + x->retained) * MIB,
			   .swap = x->swap * MIB },
		.minflt = x->minflt,
	};

	if (watch_due(&x->w, r.at))
		look(x, r.at);
	watch_next(&x->w, &r, &x->mark, &x->line);
	return &x->line;
}

Test(watch, growth_is_counted_from_the_first_line)
{
	struct fixture x;
	const struct watch_line *l;

	start(&x);
	l = line(&x, 1);
	cr_assert_eq(l->growth, GROWTH_NONE);
	cr_assert_not(l->rate_known, "there is no line before it");
	cr_assert(l->looked && !l->older && l->look.divided);
	cr_assert_eq(l->look.live, 100 * MIB);
	for (unsigned i = 0; i < 5; i++) {
		x.live++;
		x.minflt += 256;
		l = line(&x, 2 + i);
		cr_assert_float_eq(l->rate, 256, 1e-9);
	}
	cr_assert_eq(l->growth, GROWTH_LIVE, "%s", l->text);
	cr_assert_eq(l->grown, 5 * MIB);
	cr_assert_not_null(strstr(l->text, "5.0 MiB in 5.0 s (60.0 MiB/min)"), "%s", l->text);
	x.retained += 200;
	l = line(&x, 8);
	cr_assert_eq(l->growth, GROWTH_RETAINED, "%s", l->text);
	x.other += 900;
	cr_assert_eq(line(&x, 9)->growth, GROWTH_NOT_ALLOCATOR);
	cr_assert_eq(x.w.looks, 8);
	cr_assert_eq(x.w.lines, 8);
}

/* An expensive look is made less often: its lines are marked, and never wrong about the sum. */
Test(watch, lines_between_two_looks)
{
	struct fixture x;
	const struct watch_line *l;

	start(&x);
	x.cost = 40 * MS;
	line(&x, 1);
	x.live += 20;
	l = line(&x, 2);
	cr_assert(l->looked && l->older);
	cr_assert_eq(l->age, 1);
	cr_assert_eq(l->look.live, 100 * MIB);
	cr_assert_eq(l->growth, GROWTH_UNKNOWN, "that it has grown is known, of what is not");
	cr_assert_eq(l->grown, 20 * MIB);
	cr_assert_eq(line(&x, 4)->age, 3);
	l = line(&x, 5);
	cr_assert_not(l->older);
	cr_assert_eq(l->growth, GROWTH_LIVE);
	x.live += 5;
	l = line(&x, 6);
	cr_assert(l->older);
	cr_assert_eq(l->growth, GROWTH_LIVE, "so it was when it was last looked at");
	cr_assert_eq(l->grown, 25 * MIB);
	x.live -= 25;
	cr_assert_eq(line(&x, 7)->growth, GROWTH_NONE, "it is gone again");
	cr_assert_eq(x.line.grown, 0);
}

Test(watch, a_look_that_fails_is_made_later)
{
	struct fixture x;

	start(&x);
	cr_assert(watch_due(&x.w, SEC));
	watch_not_looked(&x.w, SEC, 30 * MS);
	cr_assert_not(watch_due(&x.w, 2 * SEC));
	line(&x, 2);
	cr_assert_not(x.line.looked);
	cr_assert_eq(x.line.growth, GROWTH_NONE);
	cr_assert(line(&x, 4)->looked);
}

Test(watch, what_only_a_call_could_tell_is_unknown)
{
	struct fixture x;

	start(&x);
	x.unasked = true;
	line(&x, 1);
	cr_assert_not(x.line.look.divided);
	x.live += 50;
	cr_assert_eq(line(&x, 2)->growth, GROWTH_UNKNOWN);
	cr_assert_eq(x.line.grown, 50 * MIB);
}

Test(watch, anew)
{
	struct fixture x;
	double rate;

	start(&x);
	x.cost = 900 * MS;
	line(&x, 1);
	cr_assert_not(watch_rate(&x.w, &rate));
	x.live += 50;
	x.minflt = 300;
	line(&x, 4);
	cr_assert(watch_rate(&x.w, &rate));
	cr_assert_float_eq(rate, 100, 1e-9);
	watch_anew(&x.w);
	cr_assert(watch_due(&x.w, 4 * SEC));
	cr_assert_eq(line(&x, 4)->growth, GROWTH_NONE);
	cr_assert_not(x.line.rate_known);
	cr_assert_not(x.line.older);
	cr_assert_eq(x.w.lines, 3);
}

Test(watch, after_a_trim)
{
	struct fixture x;

	start(&x);
	cr_assert_not(line(&x, 1)->after);
	x.mark = (struct trim_mark){
		.made = true, .at = SEC, .held = 150 * MIB, .returned = 60 * MIB, .minflt = 0
	};
	x.live += 30;
	x.minflt = 7680;
	cr_assert(line(&x, 2)->after);
	cr_assert_eq(x.line.trim.back, 30 * MIB);
	cr_assert_eq(x.line.trim.faulted, 30 * MIB);
}

/* ---- as text */

static const char *printed(const struct watch_style *s, const struct watch_line *l)
{
	static char text[512];
	FILE *f = fmemopen(text, sizeof(text), "w");

	cr_assert_not_null(f);
	if (l)
		watch_print(f, s, "12:00:02", l);
	else
		watch_print_header(f, s);
	fclose(f);
	return text;
}

Test(watch, columns_stand_below_their_titles)
{
	static const struct watch_style styles[] = {
		{ false, false }, { true, false }, { false, true }, { true, true }
	};
	struct fixture x;

	start(&x);
	x.live = 1023;
	line(&x, 1);
	x.minflt = 2560;
	x.live += 100;
	x.mark = (struct trim_mark){ .made = true, .held = 1000 * MIB, .returned = 1000 * MIB };
	line(&x, 2);
	for (size_t i = 0; i < 4; i++) {
		char head[512];
		const char *row, *at = head + strlen("12:00:02");
		size_t columns = 0;

		snprintf(head, sizeof(head), "%s", printed(&styles[i], NULL));
		row = printed(&styles[i], &x.line);
		/* a title ends where the values end; the last column begins there */
		while ((at = strpbrk(at, " \n")) && *at != '\n') {
			cr_expect_eq(row[at - head], ' ', "style %zu:\n%s%s", i, head, row);
			at += strspn(at, " ");
			columns++;
		}
		cr_expect_eq(columns, styles[i].after ? 9 : 6, "%s", head);
		cr_expect_not_null(
			strstr(row, styles[i].raw ? "live +104857600\n" : "live +100.0 MiB\n"),
			"%s", row);
	}
	cr_assert_not_null(strstr(printed(&styles[2], &x.line), "173.0 MiB  17%"), "%s",
			   printed(&styles[2], &x.line));
}

Test(watch, marks_in_a_line)
{
	static const struct watch_style plain = { 0 };
	struct fixture x;

	start(&x);
	x.cost = 40 * MS;
	line(&x, 1);
	cr_assert_not_null(
		strstr(printed(&plain, &x.line), "100.0 MiB     50.0 MiB         -  none"), "%s",
		printed(&plain, &x.line));
	x.live += 20;
	line(&x, 2);
	cr_assert_not_null(strstr(printed(&plain, &x.line), " ~100.0 MiB "));
	cr_assert_not_null(strstr(printed(&plain, &x.line), " unknown +20.0 MiB"));
	line(&x, 5);
	line(&x, 6);
	cr_assert_not_null(strstr(printed(&plain, &x.line), " ~live +20.0 MiB"));
	start(&x);
	x.unasked = true;
	line(&x, 1);
	cr_assert_not_null(strstr(printed(&plain, &x.line), "  -            -  "), "%s",
			   printed(&plain, &x.line));
}

Test(watch, as_an_object)
{
	struct reply r = { 0 };
	struct fixture x;
	json_t *o, *trim;

	start(&x);
	line(&x, 1);
	o = watch_json(&r, &x.line, &x.mark);
	cr_assert_eq(json_integer_value(json_object_get(o, "live_bytes")), 100 * (long)MIB);
	cr_assert_eq(json_real_value(json_object_get(o, "age_seconds")), 0);
	cr_assert(json_is_null(json_object_get(o, "minflt_per_second")));
	cr_assert(json_is_null(json_object_get(o, "after_trim")));
	cr_assert_str_eq(json_string_value(json_object_get(o, "growth")), "none");
	json_decref(o);
	x.unasked = true;
	x.live += 50;
	x.mark = (struct trim_mark){
		.made = true, .at = SEC, .held = 150 * MIB, .returned = 60 * MIB
	};
	line(&x, 2);
	o = watch_json(&r, &x.line, &x.mark);
	cr_assert(json_is_null(json_object_get(o, "live_bytes")));
	cr_assert(json_is_null(json_object_get(o, "growth")));
	cr_assert_eq(json_integer_value(json_object_get(o, "growth_bytes")), 50 * (long)MIB);
	trim = json_object_get(o, "after_trim");
	cr_assert_eq(json_integer_value(json_object_get(trim, "back_bytes")), 50 * (long)MIB);
	cr_assert_str_eq(json_string_value(json_object_get(trim, "worth")), "regrown");
	cr_assert(json_is_null(json_object_get(trim, "minflt_per_second_before")));
	json_decref(o);
	cr_assert_not(r.failed);
}
