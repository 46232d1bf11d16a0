// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "fake_heap.h"

static void found(int version, unsigned threads, int hint)
{
	struct fake m;
	struct glibc_view v;

	fake_build(&m, version, threads);
	fake_find(&m, hint, &v);
	cr_expect_eq(v.main_arena, m.arena[0].at, "2.%d, %u threads, hint %d", version, threads,
		     hint);
	cr_expect_eq(v.state->bins, m.state->bins, "2.%d hint %d", version, hint);
	cr_expect_eq(v.state->system_mem, m.state->system_mem, "2.%d hint %d", version, hint);
	if (threads) {
		cr_expect_eq(v.heap_max, FAKE_HEAP_MAX);
		cr_expect_eq(v.heap_info_size, m.info_size, "2.%d hint %d", version, hint);
	}
	cr_expect_eq(v.par.at, m.mp, "2.%d hint %d: mp_ at %#llx", version, hint,
		     (unsigned long long)v.par.at);
	cr_expect_eq(v.par.sbrk_base, m.arena[0].heap, "2.%d hint %d", version, hint);
	cr_expect_eq(v.par.thp_pagesize, version >= 35 ? 0x200000 : 0, "2.%d", version);
	cr_expect_eq(v.par.n_mmaps, 1);
	cr_expect_eq(v.par.mmapped_mem, 0x301000);
	cr_expect_eq(v.par.trim_threshold, 128U * 1024);
	fake_free(&m);
}

Test(glibc_find, every_layout)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++)
		for (unsigned threads = 0; threads < FAKE_ARENAS; threads++)
			found(version, threads, version);
}

/* A branch tip has another layout than its release: the data decides. */
Test(glibc_find, does_not_need_the_version)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++)
		for (unsigned threads = 0; threads < FAKE_ARENAS; threads++) {
			found(version, threads, 0);
			found(version, threads, 30);
		}
}

/* What a distribution has from the branch of a release: its name, and the layout of the next one.
 */
Test(glibc_find, branch_tips)
{
	static const struct {
		int name, layout;
	} tips[] = { { 22, 23 }, { 26, 27 }, { 28, 30 }, { 29, 30 } };

	for (size_t i = 0; i < sizeof(tips) / sizeof(tips[0]); i++) {
		for (unsigned threads = 0; threads < FAKE_ARENAS; threads++)
			found(tips[i].layout, threads, tips[i].name);
	}
}

/* In a static program: what depends on the version follows from what was found. */
Test(glibc_find, a_version_that_no_file_tells)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++)
		for (unsigned threads = 0; threads < FAKE_ARENAS; threads++) {
			const bool safe = version >= GLIBC_SAFE_LINKING;
			struct fake m;
			struct glibc_view v;

			fake_build(&m, version, threads);
			fake_find(&m, 0, &v);
			cr_expect(v.version >= GLIBC_FIRST && v.version <= version,
				  "2.%d is taken for 2.%d", version, v.version);
			cr_expect_eq(v.version >= 26, version >= 26);
			cr_expect_eq(v.version >= 43, version >= 43);
			cr_expect_neq(v.links, safe ? LINKS_PLAIN : LINKS_SAFE, "2.%d", version);
			/* 2.27 to 2.34 have the same layout */
			cr_expect_eq(v.links == LINKS_UNKNOWN, version >= 27 && version <= 34,
				     "2.%d", version);
			if (version >= 35)
				cr_expect_eq(v.heap_info_size, m.info_size, "2.%d", version);
			fake_free(&m);
		}
}

/* Since 2.43 the bytes of mmapped chunks grow by 16 each time that one is moved, for good. */
Test(glibc_find, parameters_after_mmapped_chunks_were_moved)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;

		fake_build(&m, version, 0);
		fake_put(&m, m.mp + m.par->mmapped_mem, 0x301000 + 5 * 16);
		fake_find(&m, version, &v);
		cr_expect_eq(v.par.at == m.mp, version >= 43, "2.%d", version);
		/* none is left */
		fake_put(&m, m.mp + m.par->mmapped_mem, 5 * 16);
		fake_put(&m, m.mp + m.par->n_mmaps, (uint64_t)65536 << 32);
		fake_find(&m, version, &v);
		cr_expect_eq(v.par.at == m.mp, version >= 43, "2.%d", version);
		fake_free(&m);
	}
}

/* Of a main heap in pieces the first may lie above all that came later (glibc.malloc.hugetlb=2). */
Test(glibc_find, parameters_of_a_heap_in_pieces)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;

		fake_build(&m, version, 0);
		fake_put(&m, m.arena[0].at, (uint64_t)GLIBC_NONCONTIGUOUS << 32);
		fake_put(&m, m.mp + m.par->sbrk_base, m.arena[0].end + 0x10000000);
		fake_find(&m, version, &v);
		cr_expect_eq(v.par.at, m.mp, "2.%d", version);
		cr_expect_eq(v.par.mmapped_mem, 0x301000);
		fake_free(&m);
	}
}

/* Where the ring is damaged the version says what the shape of the lists leaves open. */
Test(glibc_find, a_damaged_ring)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;

		fake_build(&m, version, 2);
		fake_put(&m, m.arena[0].at + m.state->next, 0x4141414141414141);
		fake_find(&m, version, &v);
		cr_expect_eq(v.main_arena, m.arena[0].at, "2.%d", version);
		fake_free(&m);
	}
}

Test(glibc_find, heads_in_flux)
{
	struct fake m;
	struct glibc_view v;

	fake_build(&m, 36, 1);
	/* half of a change: one pointer of an empty list leads elsewhere */
	for (unsigned bin = 3; bin < 9; bin++)
		fake_put(&m, m.arena[0].at + m.state->bins + (uint64_t)16 * (bin - 1),
			 m.arena[0].small);
	fake_find(&m, 36, &v);
	cr_assert_eq(v.main_arena, m.arena[0].at);
	fake_free(&m);
}

/* A head that is in use points to chunks, which are aligned to 16; the head itself need not be. */
Test(glibc_find, most_lists_in_use)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;

		fake_build(&m, version, 0);
		for (unsigned bin = 1; bin < 120; bin++)
			for (unsigned k = 0; k < 2; k++)
				fake_put(&m,
					 m.arena[0].at + m.state->bins + (uint64_t)16 * (bin - 1) +
						 (uint64_t)8 * k,
					 m.arena[0].small);
		fake_find(&m, version, &v);
		cr_expect_eq(v.main_arena, m.arena[0].at, "2.%d", version);
		fake_find(&m, 0, &v);
		cr_expect_eq(v.main_arena, m.arena[0].at, "2.%d", version);
		fake_free(&m);
	}
}

/* A static program's heap begins in the middle of a page: its first thread's data are below. */
Test(glibc_find, a_heap_that_is_no_multiple_of_pages)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		struct fake m;
		struct glibc_view v;

		fake_build(&m, version, 1);
		for (unsigned k = 0; k < 2; k++)
			fake_put(&m, m.arena[0].at + m.state->system_mem + (uint64_t)8 * k,
				 m.arena[0].system_mem - 0xc40);
		fake_find(&m, 0, &v);
		cr_expect_eq(v.main_arena, m.arena[0].at, "2.%d", version);
		cr_expect_eq(v.state->system_mem, m.state->system_mem, "2.%d", version);
		fake_free(&m);
	}
}

Test(glibc_find, nothing_to_find)
{
	struct fake m;
	struct glibc_view v;
	const struct span data = { 0x7f5500200000ULL, 0x7f5500202000ULL };
	const struct span hole = { 0x1000, 0x9000 };

	fake_build(&m, 36, 1);
	/* only the part without the arena; no memory at all; nothing */
	cr_assert_eq(glibc_find(&m.reader, &data, 1, 36, 0, &v), -ENOENT);
	cr_assert_eq(glibc_find(&m.reader, &hole, 1, 36, 0, &v), -ENOENT);
	cr_assert_eq(glibc_find(&m.reader, NULL, 0, 36, 0, &v), -ENOENT);
	fake_free(&m);
}

/* Before the first allocation main_arena is in its ring, and all of its lists are zero. */
Test(glibc_find, an_arena_that_nobody_has_used)
{
	struct fake m;
	struct glibc_view v;
	const struct span data = { 0x7f5500200000ULL, 0x7f5500205000ULL };

	fake_build(&m, 36, 0);
	for (uint64_t off = 0; off < m.state->next; off += 8)
		fake_put(&m, m.arena[0].at + off, 0);
	fake_put(&m, m.arena[0].at + m.state->system_mem, 0);
	fake_put(&m, m.arena[0].at + m.state->system_mem + 8U, 0);
	cr_assert_eq(glibc_find(&m.reader, &data, 1, 36, 0, &v), -ENODATA);
	fake_free(&m);
}

Test(glibc_find, par_is_read_again)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_par p;

	fake_build(&m, 36, 0);
	fake_find(&m, 36, &v);
	fake_put(&m, m.mp, UINT64_MAX);
	cr_assert_eq(glibc_par_read(&v, &p), 0);
	cr_assert_eq(p.trim_threshold, UINT64_MAX);
	cr_assert_eq(p.mmap_threshold, 256U * 1024);
	cr_assert_eq(p.tcache_count, 7);
	fake_free(&m);
}
