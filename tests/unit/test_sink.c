// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../repl/sink.h"

struct capture {
	struct sink s;
	char *text;
	size_t len;
};

static void capture_begin(struct capture *c)
{
	FILE *f = open_memstream(&c->text, &c->len);

	cr_assert_not_null(f);
	sink_init(&c->s, f, f, COLOR_NEVER);
}

static void capture_end(struct capture *c)
{
	cr_assert_eq(fclose(c->s.out), 0);
}

Test(sink, table_is_aligned_and_nothing_trails)
{
	static const struct column columns[] = { { "NAME", false },
						 { "SIZE", true },
						 { "NOTE", false } };
	struct capture c;
	struct table *t = table_new(columns, 3);

	cr_assert_not_null(t);
	capture_begin(&c);
	table_row(t, (const char *const[]){ "a", "1.0 KiB", "x" });
	table_row(t, (const char *const[]){ "longer", "12 B", "" });
	table_row(t, (const char *const[]){ "", "7", NULL });
	cr_assert_eq(table_print(t, &c.s), 0);
	capture_end(&c);
	cr_expect_str_eq(c.text, "NAME       SIZE  NOTE\n"
				 "a       1.0 KiB  x\n"
				 "longer     12 B\n"
				 "              7\n");
	table_free(t);
	free(c.text);
}

Test(sink, table_with_an_empty_cell_keeps_its_columns)
{
	static const struct column columns[] = { { "A", false }, { "B", false }, { "C", true } };
	struct capture c;
	struct table *t = table_new(columns, 3);

	cr_assert_not_null(t);
	capture_begin(&c);
	table_row(t, (const char *const[]){ "aa", "", "1" });
	table_row(t, (const char *const[]){ "a", "bbb", "22" });
	cr_assert_eq(table_print(t, &c.s), 0);
	capture_end(&c);
	cr_expect_str_eq(c.text, "A   B     C\n"
				 "aa        1\n"
				 "a   bbb  22\n");
	table_free(t);
	free(c.text);
}

/* ---- a terminal of so many columns */

struct screen {
	struct sink s;
	int master;
};

static void screen_begin(struct screen *x, unsigned short columns, enum color_when color)
{
	const struct winsize w = { .ws_row = 25, .ws_col = columns };
	int slave;
	FILE *f;

	x->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_geq(x->master, 0);
	cr_assert_eq(grantpt(x->master) | unlockpt(x->master), 0);
	slave = open(ptsname(x->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_geq(slave, 0);
	f = fdopen(slave, "w");
	cr_assert_not_null(f);
	cr_assert_eq(ioctl(fileno(f), TIOCSWINSZ, &w), 0);
	sink_init(&x->s, f, f, color);
}

/* What was shown, with plain ends of lines. */
static void screen_end(struct screen *x, char *buf, size_t size)
{
	size_t n = 0, k = 0;
	ssize_t got;

	cr_assert_eq(sink_flush(&x->s), 0);
	fclose(x->s.out);
	while (n < size - 1 && (got = read(x->master, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	for (size_t i = 0; i < n; i++)
		if (buf[i] != '\r')
			buf[k++] = buf[i];
	buf[k] = '\0';
	close(x->master);
}

static void show_table(const struct sink *s)
{
	static const struct column columns[] = {
		{ "NAME", false }, { "SIZE", true }, { "MORE", true }, { "NOTE", false }
	};
	static const unsigned optional[] = { 2, 1 };
	struct table *t = table_new(columns, 4);

	cr_assert_not_null(t);
	table_optional(t, optional, 2);
	table_row(t, (const char *const[]){ "a", "12", "345", "x" });
	cr_assert_eq(table_print(t, s), 0);
	table_free(t);
}

Test(sink, table_fits_the_terminal)
{
	static const struct {
		unsigned short columns;
		const char *want;
	} cases[] = {
		{ 22, "NAME  SIZE  MORE  NOTE\na       12   345  x\n" },
		{ 21, "NAME  SIZE  NOTE\na       12  x\n" },
		{ 16, "NAME  SIZE  NOTE\na       12  x\n" },
		{ 15, "NAME  NOTE\na     x\n" },
		{ 3, "NAME  NOTE\na     x\n" },
		{ 0, "NAME  SIZE  MORE  NOTE\na       12   345  x\n" },
	};
	struct capture c;
	char got[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct screen x;

		screen_begin(&x, cases[i].columns, COLOR_NEVER);
		show_table(&x.s);
		screen_end(&x, got, sizeof(got));
		cr_expect_str_eq(got, cases[i].want, "%u columns", cases[i].columns);
	}
	capture_begin(&c);
	cr_expect_eq(sink_width(&c.s), 0);
	show_table(&c.s);
	capture_end(&c);
	cr_expect_str_eq(c.text, cases[0].want, "what is no terminal gets all");
	free(c.text);
}

static void show_paths(const struct sink *s)
{
	static const struct column columns[] = { { "NAME", false },
						 { "SWAP", true },
						 { "FILE", false } };
	struct table *t = table_new(columns, 3);

	cr_assert_not_null(t);
	table_row(t, (const char *const[]){ "a", "", "/usr/..x86_64/libc.so.6" });
	table_row(t, (const char *const[]){ "b", NULL, "some words that are long" });
	cr_assert_eq(table_print(t, s), 0);
	table_free(t);
}

/* A column that says nothing goes first; then the end of a path is enough. */
Test(sink, paths_are_cut)
{
	static const struct {
		unsigned short columns;
		const char *want;
	} cases[] = {
		{ 0,
		  "NAME  SWAP  FILE\na           /usr/..x86_64/libc.so.6\nb           some words "
		  "that are long\n" },
		{ 31,
		  "NAME  FILE\na     /usr/..x86_64/libc.so.6\nb     some words that are long\n" },
		{ 24, "NAME  FILE\na     ..x86_64/libc.so.6\nb     some words that are long\n" },
		{ 10,
		  "NAME  FILE\na     /usr/..x86_64/libc.so.6\nb     some words that are long\n" },
	};
	char got[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct screen x;

		screen_begin(&x, cases[i].columns, COLOR_NEVER);
		show_paths(&x.s);
		screen_end(&x, got, sizeof(got));
		cr_expect_str_eq(got, cases[i].want, "%u columns: %s", cases[i].columns, got);
	}
}

Test(sink, a_line_goes_on_below)
{
	static const char *const parts[] = { "rss 1 -> 2 (\033[32m-1\033[0m)", "predicted -1",
					     "call 3 ms" };
	static const struct {
		unsigned short columns;
		const char *want;
	} cases[] = {
		{ 0, "rss 1 -> 2 (\033[32m-1\033[0m), predicted -1, call 3 ms\n" },
		{ 40, "rss 1 -> 2 (\033[32m-1\033[0m), predicted -1, call 3 ms\n" },
		{ 39, "rss 1 -> 2 (\033[32m-1\033[0m), predicted -1,\n  call 3 ms\n" },
		{ 24, "rss 1 -> 2 (\033[32m-1\033[0m),\n  predicted -1,\n  call 3 ms\n" },
		{ 26, "rss 1 -> 2 (\033[32m-1\033[0m),\n  predicted -1, call 3 ms\n" },
	};
	char got[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct screen x;

		screen_begin(&x, cases[i].columns, COLOR_ALWAYS);
		sink_parts(&x.s, parts, 3);
		screen_end(&x, got, sizeof(got));
		cr_expect_str_eq(got, cases[i].want, "%u columns", cases[i].columns);
	}
}

static void show_names(const struct sink *s)
{
	static const struct column columns[] = { { "NAME", false },
						 { "VALUE", false },
						 { "MEANING", false } };
	struct table *t = table_new(columns, 3);

	cr_assert_not_null(t);
	table_flow(t);
	table_row(t, (const char *const[]){ "opt.narenas", "8", "how many it makes" });
	table_row(t, (const char *const[]){ "a", "0123456789abcdef0123456789", "" });
	cr_assert_eq(table_print(t, s), 0);
	table_free(t);
}

Test(sink, a_row_that_is_too_long_becomes_lines)
{
	static const struct {
		unsigned short columns;
		const char *want;
	} cases[] = {
		{ 0, "NAME         VALUE                       MEANING\n"
		     "opt.narenas  8                           how many it makes\n"
		     "a            0123456789abcdef0123456789\n" },
		{ 58, "NAME         VALUE                       MEANING\n"
		      "opt.narenas  8                           how many it makes\n"
		      "a            0123456789abcdef0123456789\n" },
		{ 57, "NAME  VALUE\n    MEANING\n"
		      "opt.narenas  8\n    how many it makes\n"
		      "a  0123456789abcdef0123456789\n" },
		{ 17, "NAME  VALUE\n    MEANING\n"
		      "opt.narenas  8\n    how many it\n    makes\n"
		      "a\n    0123456789abc\n    def0123456789\n" },
		{ 2, "NAME\n    VALUE\n    MEANING\n"
		     "opt.narenas\n    8\n    how\n    many\n    it\n    makes\n"
		     "a\n    0123456789abcdef0123456789\n" },
	};
	char got[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct screen x;

		screen_begin(&x, cases[i].columns, COLOR_NEVER);
		show_names(&x.s);
		screen_end(&x, got, sizeof(got));
		cr_expect_str_eq(got, cases[i].want, "%u columns: %s", cases[i].columns, got);
	}
}

Test(sink, sizes)
{
	char buf[SIZE_TEXT];

	cr_expect_str_eq(text_size(buf, 1536, false), "1.5 KiB");
	cr_expect_str_eq(text_size(buf, 1536, true), "1536");
	cr_expect_str_eq(text_size(buf, UINT64_MAX, true), "18446744073709551615");
	cr_expect_str_eq(text_size_fine(buf, UINT64_C(4230000000), false), "3.94 GiB");
	cr_expect_str_eq(text_delta(buf, -1536, false), "-1.5 KiB");
	cr_expect_str_eq(text_delta(buf, 1536, true), "+1536");
	cr_expect_str_eq(text_delta(buf, INT64_MIN, true), "-9223372036854775808");
	cr_expect_str_eq(text_delta(buf, 0, true), "0");
	cr_expect_str_eq(text_delta(buf, 0, false), "0 B");
}

Test(sink, target_text_cannot_drive_the_terminal)
{
	struct capture c;

	capture_begin(&c);
	sink_text(c.s.out, "a\033[31m\r\n\tb\x7f\xff", 12);
	capture_end(&c);
	cr_expect_str_eq(c.text, "a\\x1b[31m\\x0d\n\tb\\x7f\\xff");
	free(c.text);
}

Test(sink, errors_have_a_next_step)
{
	struct capture c;
	struct diag d;

	diag_fail(&d, -EPERM, HM_UNSAFE, "no-safe-point", "try later", "no safe point in %d s", 2);
	capture_begin(&c);
	sink_error(&c.s, NULL, &d);
	sink_error(&c.s, "run.hm:3", &d);
	d.hint[0] = '\0';
	sink_error(&c.s, NULL, &d);
	snprintf(d.text, sizeof(d.text), "no '\033[2J\302\233\303\274\n'");
	sink_error(&c.s, "\r:1", &d);
	capture_end(&c);
	cr_expect_str_eq(c.text, "heapmedic: no safe point in 2 s; next: try later\n"
				 "run.hm:3: no safe point in 2 s; next: try later\n"
				 "heapmedic: no safe point in 2 s\n"
				 "\\x0d:1: no '\\x1b[2J\\xc2\\x9b\303\274\\x0a'\n");
	free(c.text);
}

static char *dump(const struct envelope *e)
{
	json_t *o = envelope_json(e);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	cr_assert_not_null(text);
	return text;
}

/* The keys and their order are the contract with scripts. */
Test(json, envelope_of_success)
{
	json_t *result = json_pack("{s:i,s:i}", "z", 1, "a", 2);
	const struct envelope e = {
		.time = { .tv_sec = 1769860800, .tv_nsec = 123999999 },
		.pid = 4711,
		.comm = "redis-server",
		.command = "trim",
		.exit = HM_OK,
		.result = result,
	};
	char *text = dump(&e);

	cr_expect_str_eq(text, "{\"schema\":\"heapmedic/1\",\"time\":\"2026-01-31T12:00:00.123Z\","
			       "\"pid\":4711,\"comm\":\"redis-server\",\"command\":\"trim\","
			       "\"ok\":true,\"exit\":0,\"result\":{\"z\":1,\"a\":2},"
			       "\"warnings\":[],\"error\":null}");
	free(text);
	json_decref(result);
}

Test(json, envelope_of_failure)
{
	struct diag d;
	struct envelope e = { .command = "trim", .exit = HM_UNSAFE, .d = &d };
	char *text;

	diag_fail(&d, -EPERM, HM_UNSAFE, "no-safe-point", "try later", "none");
	text = dump(&e);
	cr_expect_str_eq(text,
			 "{\"schema\":\"heapmedic/1\",\"time\":\"1970-01-01T00:00:00.000Z\","
			 "\"pid\":null,\"comm\":null,\"command\":\"trim\",\"ok\":false,\"exit\":6,"
			 "\"result\":{},\"warnings\":[],\"error\":{\"code\":\"no-safe-point\","
			 "\"text\":\"none\",\"hint\":\"try later\"}}");
	free(text);
}

Test(json, text_is_always_utf8)
{
	static const char *const in[] = { "plain",	  "\xc3\xa9", "a\xffz",		 "\xc0\xaf",
					  "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80" };
	static const char *const out[] = { "plain",
					   "\xc3\xa9",
					   "a\xef\xbf\xbdz",
					   "\xef\xbf\xbd\xef\xbf\xbd",
					   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
					   "\xef\xbf\xbd\xef\xbf\xbd",
					   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" };

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		json_t *o = json_text(in[i], strlen(in[i]));

		cr_assert_not_null(o);
		cr_expect_str_eq(json_string_value(o), out[i], "%zu", i);
		json_decref(o);
	}
}

Test(json, any_bytes_make_a_string_that_jansson_reads_back)
{
	unsigned seed = 11;

	for (int round = 0; round < 20000; round++) {
		char in[24];
		size_t len = (size_t)(rand_r(&seed) % (int)sizeof(in));
		json_t *list = json_array(), *again;
		char *text;

		for (size_t i = 0; i < len; i++)
			in[i] = (char)(rand_r(&seed) % 256);
		cr_assert_eq(json_array_append_new(list, json_text(in, len)), 0);
		text = json_dumps(list, 0);
		cr_assert_not_null(text);
		again = json_loads(text, JSON_ALLOW_NUL, NULL);
		cr_assert_not_null(again, "%s", text);
		json_decref(again);
		json_decref(list);
		free(text);
	}
}

/* DEL, and C1 with CSI (0x9b) among them: jansson prints both as they are. */
Test(json, line_drives_no_terminal)
{
	static const char in[] = "a\x7f\xc2\x80\xc2\x9b[2J\xc2\xa0\xc3\x9b\x1b";
	json_t *o = json_object(), *again;
	char *text;

	cr_assert_eq(json_object_set_new(o, "name", json_text(in, sizeof(in) - 1)), 0);
	text = json_line(o);
	cr_assert(text);
	cr_expect_str_eq(text, "{\"name\":\"a\\u007F\\u0080\\u009B[2J\xc2\xa0\xc3\x9b\\u001B\"}");
	again = json_loads(text, 0, NULL);
	cr_expect(json_equal(o, again));
	json_decref(again);
	json_decref(o);
	free(text);
	cr_expect_null(json_line(NULL));
}

Test(json, numbers)
{
	json_t *small = json_u64(INT64_MAX), *big = json_u64(UINT64_MAX);

	cr_expect(json_is_integer(small));
	cr_expect_eq(json_integer_value(small), INT64_MAX);
	cr_expect(json_is_real(big));
	cr_expect_gt(json_real_value(big), 1.8e19);
	json_decref(small);
	json_decref(big);
}

/* A full disk must not look like an answer. */
Test(sink, write_errors_are_noticed)
{
	struct sink s;
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		cr_skip_test("/dev/full is missing: a full disk cannot be tried");
	sink_init(&s, full, stderr, COLOR_NEVER);
	fputs("data\n", full);
	cr_expect_eq(sink_flush(&s), -ENOSPC);
	cr_expect_eq(sink_flush(&s), -ENOSPC);
	fclose(full);
}

Test(sink, colour_only_where_asked)
{
	struct sink s;
	FILE *f = tmpfile();

	cr_assert_not_null(f);
	sink_init(&s, f, f, COLOR_AUTO);
	cr_expect_str_eq(sink_paint(&s, PAINT_GOOD), "");
	cr_expect_str_eq(sink_plain(&s), "");
	sink_init(&s, f, f, COLOR_ALWAYS);
	cr_expect_str_neq(sink_paint(&s, PAINT_GOOD), "");
	cr_expect_str_neq(sink_plain(&s), "");
	fclose(f);
}
