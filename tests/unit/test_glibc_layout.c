// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The rows of offsets, against the order and the sizes of the fields in each release: a compiler
 * for 64-bit machines puts each field at the next multiple of its own size.
 */
#include "../../agent/glibc_layout.h"

#include <criterion/criterion.h>
#include <string.h>

struct field {
	const char *name;
	unsigned size, count;
	int first, last; /* releases that have it */
};
#define ALL	       GLIBC_FIRST, GLIBC_LAST
#define UNTIL	       GLIBC_FIRST,
#define SINCE(version) (version), GLIBC_LAST

static const struct field state_fields[] = {
	{ "mutex", 4, 1, ALL },
	{ "flags", 4, 1, ALL },
	{ "have_fastchunks", 4, 1, 27, 42 },
	{ "fastbins", 8, GLIBC_FASTBINS, UNTIL 42 },
	{ "top", 8, 1, ALL },
	{ "last_remainder", 8, 1, ALL },
	{ "bins", 8, GLIBC_BIN_WORDS, ALL },
	{ "binmap", 4, 4, ALL },
	{ "next", 8, 1, ALL },
	{ "next_free", 8, 1, ALL },
	{ "attached", 8, 1, SINCE(23) },
	{ "system_mem", 8, 1, ALL },
	{ "max_system_mem", 8, 1, ALL },
	{ .name = NULL },
};

static const struct field par_fields[] = {
	{ "trim_threshold", 8, 1, ALL },
	{ "top_pad", 8, 1, ALL },
	{ "mmap_threshold", 8, 1, ALL },
	{ "arena_test", 8, 1, ALL },
	{ "arena_max", 8, 1, ALL },
	{ "thp_mode", 4, 1, SINCE(43) },
	{ "thp_pagesize", 8, 1, SINCE(35) },
	{ "hp_pagesize", 8, 1, SINCE(35) },
	{ "hp_flags", 4, 1, SINCE(35) },
	{ "n_mmaps", 4, 1, ALL },
	{ "n_mmaps_max", 4, 1, ALL },
	{ "max_n_mmaps", 4, 1, ALL },
	{ "no_dyn_threshold", 4, 1, ALL },
	{ "mmapped_mem", 8, 1, ALL },
	{ "max_mmapped_mem", 8, 1, ALL },
	{ "max_total_mem", 8, 1, UNTIL 23 },
	{ "sbrk_base", 8, 1, ALL },
	{ "tcache_bins", 8, 1, SINCE(26) },
	{ "tcache_max_bytes", 8, 1, SINCE(26) },
	{ "tcache_count", 8, 1, SINCE(26) },
	{ "tcache_unsorted_limit", 8, 1, SINCE(26) },
	{ .name = NULL },
};

static const struct field tcache_fields[] = {
	{ "counts of bytes", 1, 64, 26, 29 },	   { "counts", 2, 64, 30, 41 },
	{ "free slots", 2, 76, SINCE(42) },	   { "entries", 8, 64, 26, 41 },
	{ "large entries too", 8, 76, SINCE(42) }, { .name = NULL },
};

static const struct field heap_info_fields[] = {
	{ "arena", 8, 1, ALL },
	{ "prev", 8, 1, ALL },
	{ "size", 8, 1, ALL },
	{ "mprotect_size", 8, 1, ALL },
	{ "pagesize", 8, 1, SINCE(35) },
	{ "pad", 8, 1, SINCE(35) },
	{ .name = NULL },
};

/* Where the field of that name begins; NULL: how long all of it is. GLIBC_NONE if there is none. */
static unsigned place(const struct field *f, int version, const char *name)
{
	unsigned at = 0;

	for (; f->name; f++) {
		if (version < f->first || version > f->last)
			continue;
		at = (at + f->size - 1) / f->size * f->size;
		if (name && !strcmp(f->name, name))
			return at;
		at += f->size * f->count;
	}
	return name ? GLIBC_NONE : (at + 7) / 8 * 8;
}

Test(glibc_layout, arenas_of_every_release)
{
	const struct glibc_state_row *rows;
	size_t n = glibc_state_rows(&rows);

	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		unsigned found = 0;

		for (size_t i = 0; i < n; i++) {
			const struct glibc_state_row *r = &rows[i];

			if (version < r->first || version > r->last)
				continue;
			found++;
			cr_expect_eq(r->fastbins, place(state_fields, version, "fastbins"));
			cr_expect_eq(r->top, place(state_fields, version, "top"));
			cr_expect_eq(r->last_remainder,
				     place(state_fields, version, "last_remainder"));
			cr_expect_eq(r->bins, place(state_fields, version, "bins"));
			cr_expect_eq(r->next, place(state_fields, version, "next"), "2.%d",
				     version);
			cr_expect_eq(r->next, r->bins + GLIBC_NEXT);
			cr_expect_eq(r->next_free, place(state_fields, version, "next_free"));
			cr_expect_eq(r->attached, place(state_fields, version, "attached"));
			cr_expect_eq(r->system_mem, place(state_fields, version, "system_mem"));
			cr_expect_eq(r->system_mem + 8U,
				     place(state_fields, version, "max_system_mem"));
			cr_expect_eq(r->size, place(state_fields, version, NULL), "2.%d", version);
			cr_expect_leq(r->size, GLIBC_STATE_MAX);
		}
		cr_expect_eq(found, 1, "2.%d has %u rows", version, found);
	}
}

static void check_par(const struct glibc_par_row *r, int version)
{
	const unsigned counts = place(par_fields, version, "n_mmaps");

	cr_expect_eq(r->thp_pagesize, place(par_fields, version, "thp_pagesize"));
	cr_expect_eq(r->n_mmaps, counts, "2.%d", version);
	cr_expect_eq(counts + 4, place(par_fields, version, "n_mmaps_max"));
	cr_expect_eq(counts + 8, place(par_fields, version, "max_n_mmaps"));
	cr_expect_eq(counts + 12, place(par_fields, version, "no_dyn_threshold"));
	cr_expect_eq(r->mmapped_mem, place(par_fields, version, "mmapped_mem"));
	cr_expect_eq(r->mmapped_mem + 8U, place(par_fields, version, "max_mmapped_mem"));
	cr_expect_eq(r->sbrk_base, place(par_fields, version, "sbrk_base"), "2.%d", version);
	cr_expect_eq(r->tcache_bins, place(par_fields, version, "tcache_bins"));
	cr_expect_eq(r->size, place(par_fields, version, NULL), "2.%d", version);
}

Test(glibc_layout, parameters_of_every_release)
{
	const struct glibc_par_row *rows;
	size_t n = glibc_par_rows(&rows);

	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		unsigned found = 0;

		for (size_t i = 0; i < n; i++)
			if (version >= rows[i].first && version <= rows[i].last) {
				found++;
				check_par(&rows[i], version);
			}
		cr_expect_eq(found, 1, "2.%d has %u rows", version, found);
	}
}

Test(glibc_layout, thread_caches_of_every_release)
{
	const struct glibc_tcache_row *rows;
	size_t n = glibc_tcache_rows(&rows);

	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		unsigned found = 0;

		for (size_t i = 0; i < n; i++) {
			const struct glibc_tcache_row *r = &rows[i];

			if (version < r->first || version > r->last)
				continue;
			found++;
			cr_expect_eq(r->size, place(tcache_fields, version, NULL), "2.%d", version);
			cr_expect_eq(r->entries + 8U * r->bins, r->size);
			cr_expect_eq(r->entries, r->bins * r->count_size);
			cr_expect_leq(r->small, r->bins);
		}
		cr_expect_eq(found, version >= 26, "2.%d has %u rows", version, found);
	}
}

/* The first chunk of a heap is aligned to 16 behind it. */
Test(glibc_layout, heaps_of_every_release)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
		cr_expect_eq(glibc_heap_info_size(version), place(heap_info_fields, version, NULL));
		cr_expect_eq(glibc_heap_info_size(version) % GLIBC_ALIGN, 0);
	}
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
