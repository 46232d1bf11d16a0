// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/profile.h"

#define NEAR(a, b) cr_assert_lt(fabs((a) - (b)), 1e-6 * (fabs(b) + 1e-9), "%.9g, not %.9g", a, b)

static struct profile *parse(const char *text)
{
	struct profile *p;
	struct diag d;
	int err;

	diag_clear(&d);
	err = profile_parse(text, strlen(text), &p, &d);
	cr_assert_eq(err, 0, "%s", d.text);
	return p;
}

static void refuse(const char *text, const char *code)
{
	struct profile *p;
	struct diag d;

	diag_clear(&d);
	cr_assert_lt(profile_parse(text, strlen(text), &p, &d), 0);
	cr_assert_null(p);
	cr_assert_eq(d.exit, HM_USAGE);
	cr_assert_str_eq(d.code, code);
	cr_assert(d.text[0] && d.hint[0]);
}

static const char whole[] = "heap_v2/524288\n"
			    "  t*: 3: 30720 [5: 50000]\n"
			    "  t0: 2: 20480 [4: 40000] a name: 1\n"
			    "  t7: 1: 10240 [1: 10000]\n"
			    "@ 0x5000 0x401010 0x401020\n"
			    "  t*: 2: 20480 [4: 40000]\n"
			    "  t0: 2: 20480 [4: 40000]\n"
			    "@ 0x5000 0x401030\n"
			    "  t*: 1: 10240 [1: 10000]\n"
			    "  t7: 1: 10240 [1: 10000]\n"
			    "\n"
			    "MAPPED_LIBRARIES:\n"
			    "00400000-00402000 r-xp 00001000 08:01 77      /opt/a program\n"
			    "00005000-00006000 r-xp 00002000 08:01 78      /lib/libjemalloc.so.2\n"
			    "00600000-00700000 rw-p 00000000 00:00 0       [heap]\n"
			    "7fff0000-7fff1000 r-xp 00000000 00:00 0       [vdso]\n";

/* Each stack by the rule, then the sum: 1 / (1 - exp(-10240 / 524288)) = 51.7016. */
Test(profile, parts)
{
	struct profile *p = parse(whole);
	double k = 1 / (1 - exp(-10240.0 / 524288)), a = 1 / (1 - exp(-10000.0 / 524288));

	cr_assert_eq(p->sample_bytes, 524288u);
	cr_assert_eq(p->stacks, 2u);
	cr_assert_eq(p->stack[0].depth, 3u);
	cr_assert_eq(p->stack[0].pc[0], 0x5000u);
	cr_assert_eq(p->stack[0].pc[2], 0x401020u);
	NEAR(p->stack[0].n.live_objects, 2 * k);
	NEAR(p->stack[0].n.live_bytes, 20480 * k);
	NEAR(p->stack[0].n.all_objects, 4 * a);
	NEAR(p->stack[1].n.live_bytes, 10240 * k);
	NEAR(p->total.live_bytes, 30720 * k);
	NEAR(p->total.all_bytes, 50000 * a);
	cr_assert(p->has_accum);
	cr_assert(!p->cut);
	cr_assert_eq(p->odd, 0u);
	cr_assert_eq(p->names, 0u);
	profile_free(p);
}

/* The innermost frame is where it is, the others are behind a call. */
Test(profile, lookup_is_one_less_but_at_the_leaf)
{
	struct profile *p = parse(whole);

	cr_assert_eq(profile_lookup(&p->stack[0], 0), 0x5000u);
	cr_assert_eq(profile_lookup(&p->stack[0], 1), 0x40100fu);
	profile_free(p);
}

Test(profile, mappings)
{
	struct profile *p = parse(whole);
	const struct profile_map *m = profile_map_find(p, 0x401fff);

	cr_assert_eq(p->maps, 3u); /* by address; what is neither a file nor code is left out */
	cr_assert_not_null(m);
	cr_assert_str_eq(m->path, "/opt/a program");
	cr_assert_eq(m->offset, 0x1000u);
	cr_assert(m->exec);
	cr_assert_null(profile_map_find(p, 0x402000));
	cr_assert_null(profile_map_find(p, 0x4fff));
	cr_assert_str_eq(profile_map_find(p, 0x5000)->path, "/lib/libjemalloc.so.2");
	cr_assert_str_eq(profile_map_find(p, 0x7fff0fff)->path, "[vdso]");
	profile_free(p);
}

/* Unbiased and then summed is another number than the other way round: small blocks count more. */
Test(profile, each_record_is_unbiased_for_itself)
{
	struct profile *p = parse("heap_v2/1000\n"
				  "@ 0x1\n  t*: 10: 160 [0: 0]\n"
				  "@ 0x2\n  t*: 1: 100000 [0: 0]\n");
	double small = 10 / (1 - exp(-0.016));

	NEAR(p->stack[0].n.live_objects, small);
	NEAR(p->stack[1].n.live_objects, 1.0);
	NEAR(p->total.live_bytes, small * 16 + 100000);
	cr_assert(!p->has_accum);
	profile_free(p);
}

Test(profile, unbias_at_the_edges)
{
	double n, b;

	profile_unbias(0, 0, 512, &n, &b);
	cr_assert(n == 0 && b == 0);
	profile_unbias(0, 77, 512, &n, &b);
	cr_assert(n == 0 && b == 0);
	profile_unbias(5, 0, 512, &n, &b);
	cr_assert(n == 5 && b == 0);
	profile_unbias(5, 80, 1, &n, &b); /* each was sampled */
	cr_assert(n == 5 && b == 80);
	/* blocks so small that 1 - exp(-z/R) has no digits left: each sample stands for R bytes */
	profile_unbias(1, 1, 1ull << 62, &n, &b);
	NEAR(b, (double)(1ull << 62));
	profile_unbias(UINT64_MAX, UINT64_MAX, UINT64_MAX, &n, &b);
	cr_assert(isfinite(n) && isfinite(b));
	cr_assert_eq(profile_round(b), (uint64_t)INT64_MAX);
	cr_assert_eq(profile_round(-1), 0u);
	cr_assert_eq(profile_round(NAN), 0u);
	cr_assert_eq(profile_round(2.5), 3u);
}

/* A stack that has no line for all threads together is the sum of single ones. */
Test(profile, threads_stand_in_for_their_sum)
{
	struct profile *p =
		parse("heap_v2/1\n"
		      "@ 0x1\n  t1: 1: 16 [0: 0]\n  t2: 2: 64 [0: 0]\n"
		      "@ 0x2\n  t1: 1: 16 [0: 0]\n  t*: 3: 48 [0: 0]\n  t2: 2: 32 [0: 0]\n");

	cr_assert_eq(p->stacks, 2u);
	NEAR(p->stack[0].n.live_bytes, 80.0);
	NEAR(p->stack[1].n.live_bytes, 48.0);
	profile_free(p);
}

/* jemalloc 3 and gperftools: a record is one line. */
Test(profile, one_line_records)
{
	struct profile *p = parse("heap profile:    3:   300 [  5:  500] @ heap_v2/100\n"
				  "     2:      200 [     4:      400] @ 0x10 0x20 0x30\n"
				  "     1:      100 [     1:      100] @ 0x10 0x40\n"
				  "\nMAPPED_LIBRARIES:\n"
				  "00000000-00001000 r-xp 00000000 08:01 77  /x\n");
	double k = 1 / (1 - exp(-1.0));

	cr_assert_eq(p->stacks, 2u);
	cr_assert_eq(p->stack[0].depth, 3u);
	NEAR(p->stack[0].n.live_bytes, 200 * k);
	NEAR(p->stack[1].n.all_bytes, 100 * k);
	cr_assert(!p->cut);
	profile_free(p);
	p = parse("heap profile: 1: 100 [1: 100] @ heapprofile\n"
		  "1: 100 [1: 100] @ 0x10\n");
	NEAR(p->total.live_bytes, 100.0);
	profile_free(p);
	refuse("heap profile: 1: 100 [1: 100] @ growthz\n", "no-profile");
	refuse("heap profile: 1: 100 [1: 100]\n", "no-profile");
}

static const char symbolised[] = "--- symbol\n"
				 "binary=/opt/server\n"
				 "0x00000000401020 main\n"
				 "0x40100f outer(int)--inner<char>--operator--\n"
				 "0x5000 malloc\n"
				 "0x5000 zzz\n"
				 "0x6000\n"
				 "not a line of it\n"
				 "---\n"
				 "--- heap\n"
				 "heap_v2/1\n"
				 "  t*: 1: 100 [0: 0]\n"
				 "@ 0x5000 0x401010 0x401020\n"
				 "  t*: 1: 100 [0: 0]\n";

Test(profile, symbolised)
{
	struct profile *p = parse(symbolised);

	cr_assert_eq(p->stacks, 1u);
	cr_assert_str_eq(p->binary, "/opt/server");
	cr_assert_str_eq(profile_names_find(p, 0x40100f), "outer(int)--inner<char>--operator--");
	cr_assert_str_eq(profile_names_find(p, 0x5000), "malloc");
	cr_assert_str_eq(profile_names_find(p, 0x401020), "main");
	cr_assert_null(profile_names_find(p, 0x6000));
	cr_assert_null(profile_names_find(p, 0));
	cr_assert(!p->cut); /* names stand in for mappings */
	profile_free(p);
}

/* Of the mapping that begins there; what is no id, or of none, says nothing. */
Test(profile, build_ids)
{
	char text[1200];
	struct profile *p;

	snprintf(text, sizeof(text),
		 "--- symbol\n"
		 "# build-id 0x400000 00ff12\n"
		 "# build-id 0x5000 0g\n"
		 "# build-id 0x5000 abc\n"
		 "# build-id 0x5000 %0130d\n"
		 "# build-id 0x6000 aa\n"
		 "# build-id\n"
		 "# build-id 0x5000\n"
		 "---\n--- heap\n%s",
		 0, whole);
	p = parse(text);
	cr_assert_eq(p->maps, 3u);
	cr_assert_null(p->map[0].build_id);
	cr_assert_str_eq(p->map[1].build_id, "00ff12");
	cr_assert_null(p->map[2].build_id);
	cr_assert_eq(p->names, 0u);
	profile_free(p);
}

Test(profile, line_ends_and_comments)
{
	struct profile *p = parse("%warn by somebody's HTTP\r\n\r\nheap_v2/1\r\n"
				  "@ 0x1  0x2\t0x3 \r\n  t*: 1: 100 [0: 0]\r\n"
				  "MAPPED_LIBRARIES:\r\n");

	cr_assert_eq(p->stacks, 1u);
	cr_assert_eq(p->stack[0].depth, 3u);
	cr_assert(!p->cut);
	profile_free(p);
}

Test(profile, what_is_none)
{
	refuse("", "no-profile");
	refuse("\n\n", "no-profile");
	refuse("heap_v1/4\n", "no-profile");
	refuse("heap_v2/\n", "no-profile");
	refuse("heap_v2/x\n", "no-profile");
	refuse("heap_v2/99999999999999999999999\n", "no-profile");
	refuse("heap_v2/0\n", "profile-period");
	refuse("--- symbol\n0x1 a\n", "no-profile");
	refuse("<html>404</html>\n", "no-profile");
}

Test(profile, odd_records_are_left_out_and_counted)
{
	struct profile *p = parse("heap_v2/1\n"
				  "@ 0x1 nonsense\n  t*: 1: 100 [0: 0]\n"
				  "@\n  t*: 1: 100 [0: 0]\n"
				  "@ 0x2\n  t*: 1: -100 [0: 0]\n"
				  "@ 0x11112222333344445\n  t*: 1: 1 [0: 0]\n"
				  "@ 0x3\n  t*: 1: 7 [0: 0]\n"
				  "MAPPED_LIBRARIES:\nrubbish\n");

	cr_assert_eq(p->stacks, 1u);
	NEAR(p->total.live_bytes, 7.0);
	cr_assert_eq(p->odd, 5u); /* 0x2 for its line, and for having none then */
	cr_assert_eq(p->maps, 0u);
	profile_free(p);
}

/* Wherever it is cut, it is either refused or said to be cut. */
Test(profile, cut_anywhere)
{
	size_t end = (size_t)(strstr(whole, "MAPPED") - whole) + strlen("MAPPED_LIBRARIES:");

	for (size_t len = 0; len < end; len++) {
		struct profile *p;
		struct diag d;
		char *text = malloc(len + 1); /* exactly as large: what reads on is seen */

		cr_assert_not_null(text);
		memcpy(text, whole, len);
		diag_clear(&d);
		if (profile_parse(text, len, &p, &d) == 0) {
			cr_assert(p->cut, "at %zu", len);
			profile_free(p);
		} else {
			cr_assert_lt(len, sizeof("heap_v2/5") - 1, "at %zu: %s", len, d.text);
		}
		free(text);
	}
}

/* n times the same record. */
static char *many_records(const char *head, const char *one, size_t n, size_t *len)
{
	size_t size = strlen(one);
	char *text = malloc(strlen(head) + n * size + 1);

	cr_assert_not_null(text);
	*len = strlen(head);
	memcpy(text, head, *len);
	for (size_t i = 0; i < n; i++, *len += size)
		memcpy(text + *len, one, size);
	return text;
}

static void check_many(const char *head, const char *one, size_t most, const char *what)
{
	struct profile *p;
	struct diag d = { 0 };
	size_t len;
	char *text = many_records(head, one, most + 1, &len);

	cr_assert_eq(profile_parse(text, len, &p, &d), -E2BIG, "%s", what);
	cr_assert_eq(d.exit, HM_USAGE);
	cr_assert_str_eq(d.code, "profile-too-large");
	cr_assert_not_null(strstr(d.text, what), "%s", d.text);
	free(text);
}

/* Short records take more memory than text. */
Test(profile, too_much, .timeout = 120)
{
	static const char one[] = "@ 1\nt*:1:1[0:0]\n";
	char frames[2 * PROFILE_DEPTH + 40] = "@";
	struct profile *p;
	struct diag d = { 0 };
	size_t len;
	char *text = many_records("heap_v2/1\n", one, PROFILE_STACKS_MAX, &len);

	cr_assert_eq(profile_parse(text, len, &p, &d), 0);
	cr_assert_eq(p->stacks, PROFILE_STACKS_MAX);
	profile_free(p);
	free(text);
	check_many("heap_v2/1\n", one, PROFILE_STACKS_MAX, "2097152 stacks");
	for (size_t i = 0; i < PROFILE_DEPTH; i++)
		strcpy(frames + 1 + 2 * i, " 1");
	strcat(frames, "\nt*:1:1[0:0]\n");
	check_many("heap_v2/1\n", frames, PROFILE_FRAMES_MAX / PROFILE_DEPTH, "frames");
	check_many("--- symbol\n", "0x1 a\n", PROFILE_NAMES_MAX, "names");
	check_many("--- symbol\n", "# build-id 0x1 ab\n", PROFILE_MAPS_MAX, "build ids");
	check_many("heap_v2/1\nMAPPED_LIBRARIES:\n", "1000-2000 r-xp 0 0:0 0 /a\n",
		   PROFILE_MAPS_MAX, "mappings");
}

Test(profile, too_deep_is_no_record)
{
	size_t size = (PROFILE_DEPTH + 2) * 4 + 100, used;
	char *text = malloc(size);
	struct profile *p;

	cr_assert_not_null(text);
	for (size_t depth = PROFILE_DEPTH; depth <= PROFILE_DEPTH + 1; depth++) {
		used = (size_t)snprintf(text, size, "heap_v2/1\n@");
		for (size_t i = 0; i < depth; i++)
			used += (size_t)snprintf(text + used, size - used, " 0x1");
		snprintf(text + used, size - used, "\n t*: 1: 1 [0: 0]\nMAPPED_LIBRARIES:\n");
		p = parse(text);
		cr_assert_eq(p->stacks, depth == PROFILE_DEPTH ? 1u : 0u);
		cr_assert_eq(p->odd, depth == PROFILE_DEPTH ? 0u : 1u);
		profile_free(p);
	}
	free(text);
}

Test(profile, overlapping_mappings_are_one)
{
	struct profile *p = parse("heap_v2/1\nMAPPED_LIBRARIES:\n"
				  "00003000-00004000 r-xp 00000000 08:01 7 /c\n"
				  "00001000-00003000 r-xp 00000000 08:01 7 /a\n"
				  "00002000-00003000 r-xp 00000000 08:01 7 /b\n"
				  "00001000-00001000 r-xp 00000000 08:01 7 /empty\n"
				  "00002000-00001000 r-xp 00000000 08:01 7 /back\n");

	cr_assert_eq(p->maps, 2u);
	cr_assert_str_eq(profile_map_find(p, 0x2500)->path, "/a");
	cr_assert_str_eq(profile_map_find(p, 0x3000)->path, "/c");
	profile_free(p);
}
