// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../agent/ctl_path.h"

static const struct {
	const char *name;
	int rc;
	unsigned n, depth;
	unsigned at[2];
	enum ctl_range range[2];
	bool all[2];
	uint64_t value[2];
} paths[] = {
	{ "version", 0, 0, 1, { 0, 0 }, { 0, 0 }, { false, false }, { 0, 0 } },
	{ "stats.allocated", 0, 0, 2, { 0, 0 }, { 0, 0 }, { false, false }, { 0, 0 } },
	{ "arena.7.purge", 0, 1, 3, { 1, 0 }, { RANGE_ARENAS, 0 }, { false, false }, { 7, 0 } },
	{ "arena.all.purge", 0, 1, 3, { 1, 0 }, { RANGE_ARENAS, 0 }, { true, false }, { 0, 0 } },
	{ "arenas.bin.3.size", 0, 1, 4, { 2, 0 }, { RANGE_BINS, 0 }, { false, false }, { 3, 0 } },
	{ "arenas.lextent.all.size",
	  0,
	  1,
	  4,
	  { 2, 0 },
	  { RANGE_LARGE, 0 },
	  { true, false },
	  { 0, 0 } },
	{ "stats.arenas.1.bins.12.curregs",
	  0,
	  2,
	  6,
	  { 2, 4 },
	  { RANGE_ARENAS, RANGE_BINS },
	  { false, false },
	  { 1, 12 } },
	{ "stats.arenas.all.lextents.all.nmalloc",
	  0,
	  2,
	  6,
	  { 2, 4 },
	  { RANGE_ARENAS, RANGE_LARGE },
	  { true, true },
	  { 0, 0 } },
	{ "stats.arenas.0.extents.5.ndirty",
	  0,
	  2,
	  6,
	  { 2, 4 },
	  { RANGE_ARENAS, RANGE_UNKNOWN },
	  { false, false },
	  { 0, 5 } },
	{ "stats.arenas.0.hpa_shard.nonfull_slabs.2.ndirty_huge",
	  0,
	  2,
	  7,
	  { 2, 5 },
	  { RANGE_ARENAS, RANGE_UNKNOWN },
	  { false, false },
	  { 0, 2 } },
	{ "stats.arenas.0.bins.2.mutex.num_ops",
	  0,
	  2,
	  7,
	  { 2, 4 },
	  { RANGE_ARENAS, RANGE_BINS },
	  { false, false },
	  { 0, 2 } },
	/* too large for any: never one that is there */
	{ "arena.99999999999999999999.purge",
	  0,
	  1,
	  3,
	  { 1, 0 },
	  { RANGE_ARENAS, 0 },
	  { false, false },
	  { UINT32_MAX, 0 } },
	{ "arena.4294967296.purge",
	  0,
	  1,
	  3,
	  { 1, 0 },
	  { RANGE_ARENAS, 0 },
	  { false, false },
	  { UINT32_MAX, 0 } },
	{ "arena.<i>.purge", -EINVAL, 0, 0, { 0, 0 }, { 0, 0 }, { false, false }, { 0, 0 } },
	{ "stats.arenas.0.bins.<j>.curregs",
	  -EINVAL,
	  0,
	  0,
	  { 0, 0 },
	  { 0, 0 },
	  { false, false },
	  { 0, 0 } },
};

Test(ctl_path, names)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct ctl_name *row = ctl_find(paths[i].name);
		struct ctl_path p;

		if (paths[i].rc && !row)
			continue;
		cr_assert(row, "%s", paths[i].name);
		cr_expect_eq(ctl_path_parse(row, paths[i].name, &p), paths[i].rc, "%s",
			     paths[i].name);
		if (paths[i].rc)
			continue;
		cr_expect_eq(p.n, paths[i].n, "%s: %u", paths[i].name, p.n);
		cr_expect_eq(p.depth, paths[i].depth, "%s: %u", paths[i].name, p.depth);
		for (unsigned k = 0; k < p.n; k++) {
			cr_expect_eq(p.index[k].at, paths[i].at[k], "%s", paths[i].name);
			cr_expect_eq(p.index[k].range, paths[i].range[k], "%s", paths[i].name);
			cr_expect_eq(p.index[k].all, paths[i].all[k], "%s", paths[i].name);
			cr_expect_eq(p.index[k].value, paths[i].value[k], "%s", paths[i].name);
		}
	}
}

/* Every row of the table comes back from its parts with other numbers. */
Test(ctl_path, each_name_is_put_together_again)
{
	size_t n;
	const struct ctl_name *t = ctl_table(&n);
	const uint64_t index[CTL_INDICES] = { 4094, 73 };

	for (size_t i = 0; i < n; i++) {
		char name[128], again[128];
		struct ctl_path p;
		size_t o = 0;

		for (const char *s = t[i].name; *s; s += *s == '<' ? 3 : 1)
			o += (size_t)sprintf(name + o, "%c", *s == '<' ? '5' : *s);
		cr_assert_eq(ctl_path_parse(&t[i], name, &p), 0, "%s", name);
		cr_expect_not(ctl_path_sweeps(&p));
		cr_assert_eq(ctl_path_name(&p, index, again, sizeof(again)), 0);
		cr_expect_eq(ctl_find(again), &t[i], "%s", again);
		if (p.n) {
			cr_expect(strstr(again, "4094"), "%s", again);
			cr_expect_eq(ctl_path_name(&p, index, again, 12), -ENAMETOOLONG);
		}
	}
}

Test(ctl_path, numbers_that_are_not_there)
{
	static const struct {
		const char *name;
		unsigned index;
		uint64_t have;
		int rc;
		const char *words[2];
	} cases[] = {
		{ "arena.8.purge", 0, 9, 0, { "", "" } },
		/* jemalloc takes this one for all of them */
		{ "arena.9.purge", 0, 9, -ENOENT, { "9 is too large", "arenas.narenas is 9" } },
		{ "arena.10.dirty_decay_ms",
		  0,
		  9,
		  -ENOENT,
		  { "10 is too large", "arenas.narenas" } },
		{ "arena.4096.purge", 0, 9, 0, { "", "" } },
		{ "stats.arenas.4097.pdirty", 0, 9, 0, { "", "" } },
		{ "stats.arenas.4098.pdirty",
		  0,
		  9,
		  -ENOENT,
		  { "4098 is too large", "arenas.narenas" } },
		{ "arena.all.purge", 0, 9, 0, { "", "" } },
		{ "arena.10.purge", 0, 0, 0, { "", "" } },
		{ "arenas.bin.36.size",
		  0,
		  36,
		  -ENOENT,
		  { "36 is too large", "arenas.nbins is 36" } },
		{ "stats.arenas.0.bins.35.curregs", 1, 36, 0, { "", "" } },
		{ "stats.arenas.0.bins.4097.curregs", 1, 36, -ENOENT, { "4097", "arenas.nbins" } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diag d = { 0 };
		struct ctl_path p;

		cr_assert_eq(ctl_path_parse(ctl_find(cases[i].name), cases[i].name, &p), 0);
		cr_expect_eq(ctl_path_check(&p, cases[i].index, cases[i].name, cases[i].have, &d),
			     cases[i].rc, "%s", cases[i].name);
		if (!cases[i].rc)
			continue;
		cr_expect_eq(d.exit, HM_CALL_FAILED);
		cr_expect_str_eq(d.code, "mallctl-no-index");
		cr_expect(strstr(d.text, cases[i].words[0]) && strstr(d.text, cases[i].words[1]),
			  "%s", d.text);
		cr_expect(*d.hint);
	}
}

Test(ctl_path, begins)
{
	static const struct {
		const char *name, *prefix;
		bool yes;
	} cases[] = {
		{ "version", "", true },
		{ "version", "ver", true },
		{ "version", "versions", false },
		{ "arena.<i>.dirty_decay_ms", "arena.", true },
		{ "arena.<i>.dirty_decay_ms", "arena.<", true },
		{ "arena.<i>.dirty_decay_ms", "arena.<i>.d", true },
		{ "arena.<i>.dirty_decay_ms", "arena.12", true },
		{ "arena.<i>.dirty_decay_ms", "arena.12.d", true },
		{ "arena.<i>.dirty_decay_ms", "arena.all.dirty_decay_ms", true },
		{ "arena.<i>.dirty_decay_ms", "arena.x", false },
		{ "arena.<i>.dirty_decay_ms", "arena.1x", false },
		{ "arena.<i>.dirty_decay_ms", "arena.1.purge", false },
		{ "stats.arenas.<i>.bins.<j>.curregs", "stats.arenas.0.bins.7.c", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(ctl_begins(ctl_find(cases[i].name), cases[i].prefix), cases[i].yes,
			     "%s", cases[i].prefix);
}
