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

Test(glibc_layout, bins_of_sizes)
{
	static const struct {
		uint64_t size;
		unsigned bin;
	} known[] = {
		{ 32, 2 },	{ 1008, 63 },	   { 1024, 64 },    { 1072, 64 },
		{ 1088, 65 },	{ 3072 + 48, 96 }, { 3136, 97 },    { 4096, 99 },
		{ 65536, 121 }, { 131072, 123 },   { 524288, 126 }, { (uint64_t)1 << 40, 126 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		cr_expect_eq(glibc_bin_index(known[i].size), known[i].bin, "%llu is in %u",
			     (unsigned long long)known[i].size, glibc_bin_index(known[i].size));
	for (uint64_t size = 32; size < (uint64_t)2 << 20; size += 16)
		cr_assert_leq(glibc_bin_index(size), glibc_bin_index(size + 16));
}

Test(glibc_layout, versions)
{
	cr_expect_eq(glibc_version_minor("2.36"), 36);
	cr_expect_eq(glibc_version_minor("2.36-9+deb12u4"), 36);
	cr_expect_eq(glibc_version_minor("1.2.3"), 0);
	cr_expect_eq(glibc_version_minor("2.x"), 0);
	cr_expect_eq(glibc_version_minor(""), 0);
	cr_expect_eq(glibc_heap_info_size(34), 32);
	cr_expect_eq(glibc_heap_info_size(35), 48);
}
