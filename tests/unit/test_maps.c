// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/maps.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

Test(maps, service)
{
	struct maps m;
	size_t len;
	char *text = fixture_read("proc/maps-service", &len);

	cr_assert_eq(maps_parse(text, len, &m), 0);
	free(text); /* the names are copies */
	cr_assert_eq(m.n, 16);
	cr_assert_eq(m.v[1].start, 0x401000);
	cr_assert_eq(m.v[1].end, 0x402000);
	cr_assert_eq(m.v[1].offset, 0x1000);
	cr_assert_eq(m.v[1].prot, PROT_READ | PROT_EXEC);
	cr_assert_eq(m.v[1].dev_major, 0xfe);
	cr_assert_eq(m.v[1].dev_minor, 1);
	cr_assert_eq(m.v[1].inode, 131099);
	cr_assert_str_eq(m.v[1].name, "/opt/app/bin/service");
	cr_assert(!m.v[1].shared && !m.v[1].deleted);
	cr_assert_str_eq(m.v[4].name, "");
	cr_assert_eq(m.v[5].prot, PROT_NONE);
	cr_assert(m.v[7].shared && m.v[7].deleted);
	cr_assert_str_eq(m.v[7].name, "/memfd:ring buffer");
	cr_assert_str_eq(m.v[9].name, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	cr_assert(m.v[9].deleted);
	cr_assert_str_eq(m.v[11].name, "/data/with\nnewline and space");
	cr_assert_eq(m.v[11].inode, UINT64_MAX);
	cr_assert_eq(m.v[11].dev_major, 0x103);
	maps_free(&m);
	cr_assert_null(m.v);
}

Test(maps, find)
{
	struct maps m;
	size_t len;
	char *text = fixture_read("proc/maps-service", &len);

	cr_assert_eq(maps_parse(text, len, &m), 0);
	free(text);
	for (size_t i = 0; i < m.n; i++) {
		cr_assert_eq(maps_find(&m, m.v[i].start), &m.v[i]);
		cr_assert_eq(maps_find(&m, m.v[i].end - 1), &m.v[i]);
	}
	cr_assert_null(maps_find(&m, 0));
	cr_assert_null(maps_find(&m, 0x402000));
	cr_assert_null(maps_find(&m, UINT64_MAX));
	maps_free(&m);
	cr_assert_null(maps_find(&m, 0x401000));
}

Test(maps, anonymous)
{
	static const bool want[] = { false, false, false, true,	 true, true,  true,  false,
				     false, false, false, false, true, false, false, false };
	struct maps m;
	size_t len;
	char *text = fixture_read("proc/maps-service", &len);

	cr_assert_eq(maps_parse(text, len, &m), 0);
	free(text);
	for (size_t i = 0; i < m.n; i++)
		cr_expect_eq(map_is_anon(&m.v[i]), want[i], "line %zu", i + 1);
	maps_free(&m);
}

Test(maps, last_line_without_newline_and_nothing)
{
	static const char one[] = "1000-2000 rw-p 00000000 00:00 0";
	struct maps m;

	cr_assert_eq(maps_parse(one, sizeof(one) - 1, &m), 0);
	cr_assert_eq(m.n, 1);
	cr_assert_str_eq(m.v[0].name, "");
	maps_free(&m);
	cr_assert_eq(maps_parse("", 0, &m), 0);
	cr_assert_eq(m.n, 0);
	maps_free(&m);
}

/* The file is read in several pieces, and in between mappings grow and are merged. */
Test(maps, that_change_while_they_are_read)
{
	static const struct {
		const char *text;
		size_t n;
		struct {
			uint64_t start, end;
			const char *name;
		} want[3];
	} cases[] = {
		/* grown */
		{ "1000-2000 r--p 0 00:00 0 a\n3000-4000 rw-p 0 00:00 0\n3000-6000 rw-p 0 00:00 0 "
		  "b\n",
		  2,
		  { { 0x1000, 0x2000, "a" }, { 0x3000, 0x6000, "b" } } },
		/* merged with both that were before it */
		{ "1000-2000 r--p 0 00:00 0 a\n2000-3000 rw-p 0 00:00 0\n1000-4000 rw-p 0 00:00 0 "
		  "b\n",
		  1,
		  { { 0x1000, 0x4000, "b" } } },
		/* split, and its upper part merged with the next one */
		{ "1000-3000 r--p 0 00:00 0 a\n2000-4000 rw-p 0 00:00 0 b\n5000-6000 rw-p 0 00:00 "
		  "0 c\n",
		  3,
		  { { 0x1000, 0x2000, "a" }, { 0x2000, 0x4000, "b" }, { 0x5000, 0x6000, "c" } } },
	};
	struct maps m;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(maps_parse(cases[i].text, strlen(cases[i].text), &m), 0, "case %zu",
			     i);
		cr_assert_eq(m.n, cases[i].n, "case %zu has %zu", i, m.n);
		for (size_t k = 0; k < m.n; k++) {
			cr_expect_eq(m.v[k].start, cases[i].want[k].start, "case %zu, %zu", i, k);
			cr_expect_eq(m.v[k].end, cases[i].want[k].end, "case %zu, %zu", i, k);
			cr_expect_str_eq(m.v[k].name, cases[i].want[k].name, "case %zu, %zu", i, k);
		}
		maps_free(&m);
	}
}

Test(maps, damaged)
{
	static const char *const bad[] = {
		"\n",
		"1000\n",
		"1000-2000\n",
		"2000-1000 rw-p 00000000 00:00 0\n",
		"1000-1000 rw-p 00000000 00:00 0\n",
		"1000-2000 rwxq 00000000 00:00 0\n",
		"1000-2000 wr-p 00000000 00:00 0\n",
		"1000-2000 rw- 00000000 00:00 0\n",
		"1000-2000 rw-p 00000000 00:00\n",
		"1000-2000 rw-p 00000000 00:00 \n",
		"1000-2000 rw-p 00000000 00:00 0x\n",
		"1000-2000 rw-p -1 00:00 0\n",
		" 1000-2000 rw-p 00000000 00:00 0\n",
		"1000-2000 rw-p 00000000 00:00 0\n1800-2000 rw-p 00000000 00:00 0\n",
		"3000-4000 rw-p 00000000 00:00 0\n1000-2000 rw-p 00000000 00:00 0\n",
		"10000000000000000-20000000000000000 rw-p 00000000 00:00 0\n",
		"1000-2000 rw-p 00000000 00:00 0\n\n",
	};
	struct maps m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(maps_parse(bad[i], strlen(bad[i]), &m), -EINVAL, "case %zu", i);
		cr_expect_null(m.v, "case %zu", i);
	}
	cr_expect_eq(maps_parse("1000-2000 rw-p 00000000 00:00 0 a\0b\n", 36, &m), -EINVAL);
}

static void parse(const char *text, size_t len)
{
	struct maps m;

	if (maps_parse(text, len, &m))
		return;
	for (size_t i = 0; i < m.n; i++) {
		cr_assert_eq(maps_find(&m, m.v[i].start), &m.v[i]);
		cr_assert_geq(strlen(m.v[i].name), 0);
	}
	maps_free(&m);
}

Test(maps, garbage)
{
	size_t len;
	char *text = fixture_read("proc/maps-service", &len);

	fuzz_text(text, len, 20000, parse);
	free(text);
}

struct place {
	uint64_t addr;
};

static void map_many(void *arg)
{
	struct place *p = arg;
	size_t page = 4096, n = 3000;
	char *m = mmap(NULL, n * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* every other page differs: thousands of lines, many reads */
	for (size_t i = 0; i < n; i += 2)
		mprotect(m + i * page, page, PROT_READ | PROT_WRITE);
	__atomic_store_n(&p->addr, (uint64_t)(uintptr_t)m, __ATOMIC_SEQ_CST);
	child_sleep(NULL);
}

Test(maps, thousands_of_mappings_of_a_child)
{
	struct place *p = child_shared(sizeof(*p));
	pid_t pid = child_start(map_many, p);
	struct target t;
	struct diag d;
	struct maps m;
	const struct map *a;

	cr_assert(child_reach_call(pid, pid, 34 /* pause */));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &m, &d), 0, "%s", d.text);
	cr_assert_geq(m.n, 3000);
	a = maps_find(&m, p->addr + 4096 * 1001);
	cr_assert_not_null(a);
	cr_assert_eq(a->start, p->addr + 4096 * 1001);
	cr_assert_eq(a->prot, PROT_READ);
	cr_assert_eq(a[1].prot, PROT_READ | PROT_WRITE);
	maps_free(&m);
	child_end(pid);
	cr_assert_eq(maps_read(&t, &m, &d), -ESRCH);
	cr_assert_eq(d.exit, HM_GONE);
	target_close(&t);
}
