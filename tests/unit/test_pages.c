// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/pages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../inject/mem.h"
#include "../../inject/peek.h"
#include "../../inject/touched.h"
#include "child.h"

#define PAGE  ((size_t)PAGES_SIZE)
#define PAGES 300U

/*
 * A child with 300 pages of private memory: 0 to 9 written, 10 to 99 untouched, 100 to 199 written,
 * 200 read only (the page of zeros), the others untouched.
 */
struct scene {
	uint64_t at;
	pid_t pid;
	struct target t;
	struct pages pages;
};

static void touch(void *arg)
{
	unsigned char *p = (unsigned char *)*(const uintptr_t *)arg;
	volatile unsigned char sink;

	for (size_t i = 0; i < 200; i++)
		if (i < 10 || i >= 100)
			memset(p + i * PAGE, (int)(i + 1), PAGE);
	sink = p[200 * PAGE];
	(void)sink;
	child_sleep(NULL);
}

static void setup_scene(struct scene *s)
{
	struct diag d;
	void *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	uintptr_t at = (uintptr_t)p;
	unsigned char last = 0;

	cr_assert_neq(p, MAP_FAILED);
	madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	s->at = at;
	s->pid = child_start(touch, &at);
	cr_assert_eq(target_open(s->pid, &s->t, &d), 0, "%s", d.text);
	/* the last page that it writes */
	while (mem_read(s->pid, s->at + 200 * PAGE - 1, &last, 1) == 0 && last != 200)
		usleep(1000);
	child_reach(s->pid, s->pid, 'S');
	cr_assert_eq(pages_open(&s->t, &s->pages), 0);
}

static void end_scene(struct scene *s)
{
	pages_close(&s->pages);
	child_end(s->pid);
	target_close(&s->t);
	munmap((void *)(uintptr_t)s->at, PAGES * PAGE);
}

static uint64_t resident_kb(void)
{
	char line[256];
	uint64_t kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %" SCNu64, &kb) == 1)
			break;
	fclose(f);
	return kb;
}

/* A kernel may give out a page of its own for each that is only read (pvm_no_zero_page of some
 * guests): the RSS tells, which does not count the page of zeros (proc(5)). */
static bool kernel_has_zero_page(void)
{
	size_t n = 1024;
	unsigned char *p =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned char sink = 0;
	uint64_t before, after;

	cr_assert_neq(p, MAP_FAILED);
	madvise(p, n * PAGE, MADV_NOHUGEPAGE);
	before = resident_kb();
	for (size_t i = 0; i < n; i++)
		sink = (unsigned char)(sink + p[i * PAGE]);
	after = resident_kb();
	munmap(p, n * PAGE);
	cr_assert_eq(sink, 0);
	return after < before + n * PAGE / 1024 / 2;
}

static void check_flags(const struct scene *s)
{
	unsigned char flags[PAGES];

	cr_assert_eq(pages_flags(&s->pages, s->at, PAGES, flags), 0);
	for (size_t i = 0; i < 199; i++)
		cr_expect_eq(flags[i] & (PAGE_PRESENT | PAGE_SWAPPED | PAGE_FILE),
			     i < 10 || i >= 100 ? PAGE_PRESENT : 0, "page %zu: %d", i, flags[i]);
	for (size_t i = 201; i < PAGES; i++)
		cr_expect_eq(flags[i], 0, "page %zu: %d", i, flags[i]);
	/* few at once */
	cr_assert_eq(pages_flags(&s->pages, s->at + 9 * PAGE, 2, flags), 0);
	cr_expect(flags[0] & PAGE_PRESENT);
	cr_expect_eq(flags[1], 0);
}

Test(pages, both_ways_of_asking_agree)
{
	unsigned char flags[2];
	struct scene s;
	bool scan;

	setup_scene(&s);
	scan = s.pages.scan;
	check_flags(&s);
	pages_use_pagemap(&s.pages);
	check_flags(&s);
	s.pages.own = true;
	check_flags(&s);
	cr_assert_eq(pages_flags(&s.pages, s.at + 199 * PAGE, 2, flags), 0);
	cr_expect_eq(flags[0], PAGE_PRESENT);
	cr_expect_eq(flags[1], kernel_has_zero_page() ? PAGE_PRESENT | PAGE_ZERO : PAGE_PRESENT);
	if (!scan)
		cr_skip_test("this kernel has no PAGEMAP_SCAN");
	end_scene(&s);
}

/* The words are as they were written, zeros where nothing was, and reading has left it at that. */
Test(pages, what_was_never_touched_stays_so)
{
	static unsigned char got[PAGES * PAGE];
	const struct pages none = { .fd = -1 };
	struct scene s;

	setup_scene(&s);
	cr_assert_eq(touched_read(&s.pages, s.pid, s.at + 8, got, sizeof(got) - 16), 0);
	for (size_t i = 0; i < PAGES; i++) {
		unsigned char want = i < 10 || (i >= 100 && i < 200) ? (unsigned char)(i + 1) : 0;

		cr_expect_eq(got[i * PAGE], want, "page %zu", i);
		cr_expect_eq(got[i * PAGE + PAGE - 17], want, "page %zu", i);
	}
	check_flags(&s);
	cr_expect_eq(touched_read(&s.pages, s.pid, UINT64_MAX - 8, got, 16), -EFAULT);
	cr_expect_eq(touched_read(&none, s.pid, s.at, got, 8), 0);
	cr_expect_eq(got[0], 1);
	cr_expect_eq(touched_read(NULL, s.pid, s.at + 5 * PAGE, got, 8), 0);
	cr_expect_eq(got[0], 6);
	end_scene(&s);
}

Test(pages, runs)
{
	struct scene s;
	struct page_runs r = { 0 };
	uint64_t present = 0;

	setup_scene(&s);
	cr_assert_eq(pages_runs(&s.pages, s.at, s.at + PAGES * PAGE, &r), 0);
	cr_assert_geq(r.n, 2);
	cr_expect_eq(r.v[0].start, s.at);
	cr_expect_eq(r.v[0].end, s.at + 10 * PAGE);
	cr_expect_eq(r.v[1].start, s.at + 100 * PAGE);
	for (size_t i = 0; i < r.n; i++) {
		if (r.v[i].flags & PAGE_ZERO) {
			cr_expect_eq(r.v[i].start, s.at + 200 * PAGE);
			cr_expect_eq(r.v[i].end, s.at + 201 * PAGE);
			continue;
		}
		present += r.v[i].end - r.v[i].start;
	}
	cr_expect_leq(present, 111 * PAGE);
	cr_expect_geq(present, 110 * PAGE);
	pages_free_runs(&r);
	end_scene(&s);
}

Test(pages, wild_ranges)
{
	struct scene s;
	struct page_runs r = { 0 };
	unsigned char flags[4];

	setup_scene(&s);
	cr_expect_eq(pages_flags(&s.pages, UINT64_MAX - 4095, 1, flags), -EINVAL);
	cr_expect_eq(pages_runs(&s.pages, 0x1001, 0x3000, &r), -EINVAL);
	cr_expect_eq(pages_runs(&s.pages, 0x3000, 0x1000, &r), -EINVAL);
	cr_expect_eq(pages_flags(&s.pages, 0x1000, 4, flags), 0);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(flags[i], 0);
	pages_free_runs(&r);
	end_scene(&s);
}

/* ---- reading without a trace */

static size_t resident(const struct scene *s)
{
	unsigned char flags[PAGES];
	size_t n = 0;

	cr_assert_eq(pages_flags(&s->pages, s->at, PAGES, flags), 0);
	for (size_t i = 0; i < PAGES; i++)
		n += flags[i] != 0;
	return n;
}

static struct peek *look(const struct scene *s)
{
	struct maps maps;
	struct peek *p;
	struct diag d;

	cr_assert_eq(maps_read(&s->t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(peek_open(&s->t, &maps, &p, &d), 0, "%s", d.text);
	maps_free(&maps);
	return p;
}

Test(peek, leaves_untouched_pages_untouched)
{
	static unsigned char buf[PAGES * PAGE];
	struct scene s;
	struct peek *p;
	const struct reader *r;
	size_t before;

	setup_scene(&s);
	before = resident(&s);
	p = look(&s);
	r = peek_reader(p);
	cr_assert_eq(r->read(r->ctx, s.at, buf, sizeof(buf)), 0);
	for (size_t i = 0; i < PAGES; i++) {
		unsigned char want = (unsigned char)(i < 10 || (i >= 100 && i < 200) ? i + 1 : 0);

		cr_expect_eq(buf[i * PAGE], want, "page %zu", i);
		cr_expect_eq(buf[i * PAGE + PAGE - 1], want, "page %zu", i);
	}
	/* downwards, as a list of blocks freed in order is walked */
	r->refresh(r->ctx);
	for (size_t i = PAGES; i-- > 0;) {
		unsigned char piece[48];

		cr_assert_eq(r->read(r->ctx, s.at + i * PAGE, piece, sizeof(piece)), 0);
		cr_assert_eq(memcmp(piece, buf + i * PAGE, sizeof(piece)), 0, "page %zu", i);
	}
	/* pieces, in any order, more than are kept */
	for (size_t i = 0; i < 3000; i++) {
		size_t at = i * 104729 % (PAGES * PAGE - 48);
		unsigned char piece[48];

		cr_assert_eq(r->read(r->ctx, s.at + at, piece, sizeof(piece)), 0);
		cr_assert_eq(memcmp(piece, buf + at, sizeof(piece)), 0, "at %zu", at);
	}
	cr_expect_eq(resident(&s), before, "a look has brought pages in");
	peek_close(p);
	end_scene(&s);
}

Test(peek, sees_what_is_new_after_a_refresh)
{
	struct scene s;
	struct peek *p;
	const struct reader *r;
	uint64_t v = 0, fresh = 0x1122334455667788;

	setup_scene(&s);
	p = look(&s);
	r = peek_reader(p);
	cr_assert_eq(r->read(r->ctx, s.at + 50 * PAGE, &v, 8), 0);
	cr_assert_eq(v, 0);
	cr_assert_eq(mem_write(s.pid, s.at + 50 * PAGE, &fresh, 8), 0);
	cr_assert_eq(r->read(r->ctx, s.at + 50 * PAGE, &v, 8), 0);
	cr_expect_eq(v, 0, "what was read is kept");
	r->refresh(r->ctx);
	cr_assert_eq(r->read(r->ctx, s.at + 50 * PAGE, &v, 8), 0);
	cr_expect_eq(v, fresh);
	peek_close(p);
	end_scene(&s);
}

Test(peek, only_writable_private_memory)
{
	struct scene s;
	struct peek *p;
	const struct reader *r;
	char c;

	setup_scene(&s);
	p = look(&s);
	r = peek_reader(p);
	cr_expect_eq(r->read(r->ctx, 0x1000, &c, 1), -EFAULT);
	cr_expect_eq(r->read(r->ctx, UINT64_MAX, &c, 1), -EFAULT);
	cr_expect_eq(r->read(r->ctx, (uint64_t)(uintptr_t)setup_scene, &c, 1), -EFAULT, "code");
	peek_close(p);
	end_scene(&s);
}

Test(peek, a_process_that_is_gone)
{
	struct scene s;
	struct peek *p;
	const struct reader *r;
	struct page_runs runs = { 0 };
	char c;

	setup_scene(&s);
	p = look(&s);
	r = peek_reader(p);
	child_end(s.pid);
	cr_expect_eq(r->read(r->ctx, s.at, &c, 1), -ESRCH);
	r->refresh(r->ctx);
	cr_expect_eq(r->read(r->ctx, s.at, &c, 1), -ESRCH);
	cr_expect_eq(pages_runs(&s.pages, s.at, s.at + PAGES * PAGE, &runs), -ESRCH);
	pages_free_runs(&runs);
	peek_close(p);
	pages_close(&s.pages);
	target_close(&s.t);
}
