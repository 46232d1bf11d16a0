// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Each fixture NAME.txt has its numbers in NAME.expect:
 *   arena INDEX SYSTEM IN_USE FREE FAST MAX SUBHEAPS FLAGS ; total the same without index ; mmap
 *   BYTES COUNT. FLAGS are names with '+' between them, or '-'.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/glibc_info_xml.h"

#define DIR "tests/fixtures/malloc_info/"

static char *load(const char *name, const char *ext, size_t *len)
{
	char path[256], *text;
	FILE *f;
	long n;

	snprintf(path, sizeof(path), DIR "%s.%s", name, ext);
	f = fopen(path, "r");
	cr_assert(f, "%s (run the tests from the top directory)", path);
	cr_assert(!fseek(f, 0, SEEK_END));
	n = ftell(f);
	cr_assert(n > 0);
	rewind(f);
	text = malloc((size_t)n + 1);
	cr_assert(text);
	cr_assert_eq(fread(text, 1, (size_t)n, f), (size_t)n);
	text[n] = '\0';
	*len = (size_t)n;
	fclose(f);
	return text;
}

static void flags_print(unsigned flags, char *buf, size_t size)
{
	buf[0] = '\0';
	for (unsigned bit = 1; bit; bit <<= 1) {
		size_t n = strlen(buf);

		if (flags & bit)
			snprintf(buf + n, size - n, "%s%s", n ? "+" : "", info_flag_name(bit));
	}
	if (!flags)
		snprintf(buf, size, "-");
}

static size_t arena_print(const struct info_arena *a, char *buf, size_t size)
{
	char flags[128];

	flags_print(a->flags, flags, sizeof(flags));
	return (size_t)snprintf(
		buf, size, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %s\n",
		a->system, a->in_use, a->free, a->fast, a->max, a->subheaps, flags);
}

/* The result in the form of an .expect file. */
static void print(const struct glibc_info *i, char *buf, size_t size)
{
	size_t o = 0;

	for (size_t k = 0; k < i->arenas; k++) {
		o += (size_t)snprintf(buf + o, size - o, "arena %u ", i->arena[k].index);
		o += arena_print(&i->arena[k], buf + o, size - o);
	}
	o += (size_t)snprintf(buf + o, size - o, "total ");
	o += arena_print(&i->total, buf + o, size - o);
	snprintf(buf + o, size - o, "mmap %" PRIu64 " %" PRIu64 "\n", i->mmapped, i->mmapped_count);
}

static const char *const fixtures[] = {
	"one-arena",
	"seven-arenas",
	"cut",
	"log-lines",
	"json-log",
	"one-line",
	"glibc-2.43",
	"glibc-2.28",
	"wrapped-total",
	"wrapped-arena",
	"wrapped-unproven",
	"wrapped-aspace",
	"total-differs",
	"stats",
	"stats-wrapped-total",
	"stats-wrapped-arena",
	"stats-cut",
};

Test(glibc_info, fixtures)
{
	for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++) {
		char got[8192];
		size_t len, expect_len;
		char *text = load(fixtures[i], "txt", &len);
		char *expect = load(fixtures[i], "expect", &expect_len);
		struct glibc_info info;
		struct diag d = { 0 };
		int rc = glibc_info_parse(text, len, &info, &d);

		cr_expect_eq(rc, 0, "%s: %s", fixtures[i], d.text);
		if (!rc) {
			print(&info, got, sizeof(got));
			cr_expect_str_eq(got, expect, "%s gave\n%s", fixtures[i], got);
			glibc_info_free(&info);
		}
		free(expect);
		free(text);
	}
}

/* What mallinfo2 said of the same heap stands in the first line. */
Test(glibc_info, agrees_with_mallinfo2)
{
	static const char *const real[] = { "one-arena", "seven-arenas", "stats" };

	for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
		size_t arena, ford, fsm, hblks, hblkhd, len;
		char *text = load(real[i], "txt", &len);
		struct glibc_info info;
		struct diag d = { 0 };

		cr_assert_eq(sscanf(text,
				    "mallinfo2 arena=%zu fordblks=%zu fsmblks=%zu hblks=%zu "
				    "hblkhd=%zu",
				    &arena, &ford, &fsm, &hblks, &hblkhd),
			     5);
		cr_assert_eq(glibc_info_parse(text, len, &info, &d), 0);
		cr_expect_eq(info.total.system, arena);
		cr_expect_eq(info.total.free, ford);
		cr_expect_eq(info.total.in_use, arena - ford);
		cr_expect_eq(info.mmapped, hblkhd);
		if (strcmp(real[i], "stats") != 0) {
			cr_expect_eq(info.total.fast, fsm);
			cr_expect_eq(info.mmapped_count, hblks);
		}
		cr_expect(info.has_total);
		glibc_info_free(&info);
		free(text);
	}
}

static void refused(const char *text, const char *word)
{
	struct glibc_info info;
	struct diag d = { 0 };

	cr_assert_eq(glibc_info_parse(text, strlen(text), &info, &d), -EINVAL, "%s", text);
	cr_expect_eq(d.exit, HM_CALL_FAILED);
	cr_expect_str_eq(d.code, "bad-malloc-info");
	cr_expect(strstr(d.text, "line ") == d.text, "%s", d.text);
	cr_expect(strstr(d.text, word), "'%s' does not have '%s'", d.text, word);
	cr_expect(!info.arena && !info.arenas);
}

Test(glibc_info, refuses)
{
	size_t len;
	char *entity = load("entity", "txt", &len);

	refused("", "no <malloc>");
	refused("nothing\nto\nsee", "line 3:");
	refused("<mallocs version=\"1\"><heap nr=\"0\"></heap></mallocs>", "no <malloc>");
	refused("\n<malloc version=\"1\">\n</malloc>", "no complete <heap>");
	refused("<malloc version=\"1\"><heap nr=\"0\"><sizes>", "no complete <heap>");
	refused("<malloc version=\"1\"><heap nr=\"x\"></heap></malloc>", "no complete <heap>");
	refused("<malloc version=\"1\"><heap nr=\"99999999999\"></heap></malloc>", "no complete");
	refused("<malloc version=\"1\"><heap nr=\"0\"></heap></malloc>", "no complete <heap>");
	refused(entity, "refused");
	refused("<malloc><!ENTITY x \"y\"><heap nr=\"0\"></heap></malloc>", "refused");
	free(entity);
}

/* Damage after complete arenas costs only what comes after it. */
/* A free chunk of a thread arena that was split off another one is without that arena's mark. */
Test(glibc_info, chunks_without_the_mark_of_their_arena)
{
	static const struct {
		const char *row;
		uint64_t sum; /* of the true sizes */
	} rows[] = {
		{ "<size from=\"133\" to=\"133\" total=\"266\" count=\"2\"/>", 256 },
		{ "<size from=\"129\" to=\"133\" total=\"262\" count=\"2\"/>", 256 },
		{ "<size from=\"129\" to=\"129\" total=\"258\" count=\"2\"/>", 256 },
		{ "<size from=\"129\" to=\"133\" total=\"1189\" count=\"9\"/>", 1152 },
		{ "<unsorted from=\"129\" to=\"5013\" total=\"5142\" count=\"2\"/>", 5136 },
		{ "<unsorted from=\"133\" to=\"5009\" total=\"5142\" count=\"2\"/>", 5136 },
		{ "<unsorted from=\"133\" to=\"5013\" total=\"5279\" count=\"3\"/>", 5264 },
		{ "<unsorted from=\"129\" to=\"5009\" total=\"5267\" count=\"3\"/>", 5264 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct glibc_info info;
		struct diag d = { 0 };
		unsigned total = 0, n = 0;
		char text[1024];
		int len;

		cr_assert_eq(sscanf(strstr(rows[i].row, "total"), "total=\"%u\" count=\"%u\"",
				    &total, &n),
			     2);
		/* top has 4096 */
		len = snprintf(text, sizeof(text),
			       "<malloc version=\"1\">\n<heap nr=\"1\">\n<sizes>\n%s\n</sizes>\n"
			       "<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
			       "<total type=\"rest\" count=\"%u\" size=\"%u\"/>\n"
			       "<system type=\"current\" size=\"135168\"/>\n"
			       "<system type=\"max\" size=\"135168\"/>\n"
			       "<aspace type=\"total\" size=\"135168\"/>\n</heap>\n</malloc>\n",
			       rows[i].row, n + 1, total + 4096);
		cr_assert_eq(glibc_info_parse(text, (size_t)len, &info, &d), 0, "%s", d.text);
		cr_expect_eq(info.arena[0].free, rows[i].sum + 4096, "%s: %" PRIu64, rows[i].row,
			     info.arena[0].free - 4096);
		glibc_info_free(&info);
	}
}

Test(glibc_info, damage_keeps_what_is_complete)
{
	static const char *const bad[] = {
		"<heap nr=\"1\"><system type=\"current\" size=\"-5\"/></heap></malloc>",
		"<heap nr=\"1\"><system type=\"current\"/></heap></malloc>",
		"<heap nr=\"1\"><heap nr=\"2\"></heap></heap></malloc>",
		"<heap nr=\"1\"></sizes></heap></malloc>",
		"<heap nr=\"1\"><size from=\"1\" to=\"99999999999999999999\" count=\"1\"/></heap>",
		"<sizes><sizes><sizes><sizes><sizes><sizes><sizes><sizes><sizes>",
		"",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[512];
		struct glibc_info info;
		struct diag d = { 0 };

		snprintf(text, sizeof(text),
			 "<malloc version=\"1\"><heap nr=\"0\"><total type=\"rest\" count=\"1\" "
			 "size=\"96\"/><system type=\"current\" size=\"4096\"/></heap>%s",
			 bad[i]);
		cr_assert_eq(glibc_info_parse(text, strlen(text), &info, &d), 0, "%s: %s", bad[i],
			     d.text);
		cr_expect_eq(info.arenas, 1, "%s", bad[i]);
		cr_expect(info.total.flags & INFO_CUT, "%s", bad[i]);
		cr_expect(!info.has_total);
		cr_expect_eq(info.total.in_use, 4000);
		glibc_info_free(&info);
	}
}

/* Sums of absurd numbers stay at the limit instead of passing for small ones. */
Test(glibc_info, sums_do_not_wrap)
{
	static const char text[] =
		"<malloc version=\"1\"><heap nr=\"0\"><system type=\"current\" "
		"size=\"18446744073709551615\"/></heap><heap nr=\"1\"><system type=\"current\" "
		"size=\"18446744073709551615\"/></heap></malloc>";
	struct glibc_info info;
	struct diag d = { 0 };

	cr_assert_eq(glibc_info_parse(text, strlen(text), &info, &d), 0);
	cr_expect_eq(info.total.system, UINT64_MAX);
	glibc_info_free(&info);
}

Test(glibc_info, bounds_the_number_of_arenas)
{
	static const char one[] = "<heap nr=\"1\"><system type=\"current\" size=\"1\"/></heap>";
	size_t n = GLIBC_INFO_ARENAS + 10, o = 0;
	char *text = malloc(n * sizeof(one) + 64);
	struct glibc_info info;
	struct diag d = { 0 };

	cr_assert(text);
	o += (size_t)sprintf(text, "<malloc>");
	for (size_t i = 0; i < n; i++)
		o += (size_t)sprintf(text + o, "%s", one);
	o += (size_t)sprintf(text + o, "</malloc>");
	cr_assert_eq(glibc_info_parse(text, o, &info, &d), 0);
	cr_expect_eq(info.arenas, GLIBC_INFO_ARENAS);
	cr_expect(info.total.flags & INFO_CUT);
	glibc_info_free(&info);
	free(text);
}

/* Every prefix, and texts with random bytes in them: no crash, and no more arenas than there are.
 */
Test(glibc_info, survives_garbage, .timeout = 120)
{
	static const char *const base[] = { "seven-arenas", "json-log", "stats", "wrapped-arena" };
	unsigned seed = 1;

	for (size_t b = 0; b < sizeof(base) / sizeof(base[0]); b++) {
		size_t len;
		char *text = load(base[b], "txt", &len);
		char *copy = malloc(len);

		cr_assert(copy);
		for (size_t round = 0; round < 1500; round++) {
			struct glibc_info info;
			struct diag d = { 0 };
			size_t n = round % 2 ? len : (round * 37) % len;

			memcpy(copy, text, len);
			for (size_t k = 0; round % 2 && k < 1 + round % 7; k++) {
				seed = seed * 1103515245 + 12345;
				copy[(seed >> 8) % len] = (char)(seed >> 16);
			}
			if (!glibc_info_parse(copy, n, &info, &d)) {
				cr_expect(info.arenas >= 1 && info.arenas <= 8);
				glibc_info_free(&info);
			} else {
				cr_expect_str_eq(d.code, "bad-malloc-info");
			}
		}
		free(copy);
		free(text);
	}
}

/* A tag is no longer than those of malloc_info: expat's time for one grows with its square. */
Test(glibc_info, a_tag_without_end_is_text)
{
	char text[4096];
	struct glibc_info info;
	struct diag d = { 0 };

	snprintf(text, sizeof(text),
		 "<malloc version=\"1\">\n<heap nr=\"0\">\n<size%2000s>\n"
		 "<system type=\"current\" size=\"4096\"/>\n</heap>\n</malloc>\n",
		 "");
	cr_assert_eq(glibc_info_parse(text, strlen(text), &info, &d), 0);
	cr_expect_eq(info.arenas, 1);
	glibc_info_free(&info);
	snprintf(text, sizeof(text),
		 "<malloc version=\"1\">\n<heap nr=\"0\"%2000s>\n"
		 "<system type=\"current\" size=\"4096\"/>\n</heap>\n</malloc>\n",
		 "");
	cr_expect_eq(glibc_info_parse(text, strlen(text), &info, &d), -EINVAL);
}
