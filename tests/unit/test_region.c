// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "../../inject/region.h"

static struct maps no_maps;

static struct map map_at(uint64_t start, uint64_t len, const char *name)
{
	return (struct map){ .start = start, .end = start + len, .prot = PROT_READ, .name = name };
}

Test(region, parts_follow_each_other_without_gap)
{
	struct region r;

	region_layout(&r, 0x100000, HM_MODE_PROXY, 2500, 65536, 70000);
	cr_expect_eq(r.stack, r.base + r.text_len);
	cr_expect_eq(r.block, r.stack + r.stack_len);
	cr_expect_geq(r.scratch, r.block + sizeof(struct hm_block));
	cr_expect_eq(r.out, r.scratch + r.scratch_len);
	cr_expect_eq(r.guard, r.out + r.out_len);
	cr_expect_eq(r.pstack, r.guard + 4096);
	cr_expect_eq(r.base + r.size, r.pstack + r.pstack_len);
	cr_expect_geq(r.pstack_len, 70000 + 65536);
	region_layout(&r, 0x100000, HM_MODE_DIRECT, 2500, 65536, 70000);
	cr_expect_eq(r.guard, 0);
	cr_expect_eq(r.base + r.size, r.out + r.out_len);
}

Test(region, every_chosen_address_is_recognised_without_a_name)
{
	for (int i = 0; i < 500; i++) {
		uint64_t base = region_choose(&no_maps, 2 << 20);
		struct map m = map_at(base, 2 << 20, "");
		struct map part = map_at(base + (1 << 20), 1 << 20, "");
		uint64_t got;

		cr_assert_neq(base, 0);
		cr_assert(region_owns(&m, &got));
		cr_assert_eq(got, base);
		cr_assert(region_owns(&part, &got), "what is left of a region belongs to it");
		cr_assert_eq(got, base);
	}
}

Test(region, other_mappings_are_not_ours)
{
	uint64_t base = region_choose(&no_maps, 4096), got;
	struct map shared = map_at(base, 4096, "");
	struct map file = map_at(base, 4096, "/x");
	struct map named = map_at(0x7f0000000000, 4096, "[anon:heapmedic]");
	struct map wrong = map_at(base ^ ((uint64_t)1 << 22), 4096, "");
	struct map heap = map_at(0x7f0000000000, 4096, "[heap]");

	shared.shared = true;
	file.inode = 5;
	cr_expect_not(region_owns(&shared, &got));
	cr_expect_not(region_owns(&file, &got));
	cr_expect(region_owns(&named, &got));
	cr_expect_not(region_owns(&wrong, &got), "the address check fails");
	cr_expect_not(region_owns(&heap, &got));
}

Test(region, a_taken_address_is_not_chosen)
{
	uint64_t first = region_choose(&no_maps, 4096);
	struct map v[1] = { map_at(0x600000000000, 0x7f8000000000 - 0x600000000000, "") };
	struct maps all = { .v = v, .n = 1 };

	cr_expect_neq(first, 0);
	cr_expect_eq(region_choose(&all, 4096), 0);
	cr_expect_eq(region_choose(&no_maps, (uint64_t)64 << 20), 0, "too large for one slot");
}
