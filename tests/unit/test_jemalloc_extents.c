// SPDX-License-Identifier: GPL-3.0-or-later
/* jemalloc's tree of extents, as it may be in a process, and as it cannot be. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/jemalloc_extents.h"

#define ROOT 0x600000000000ull
#define LEAF 0x7f0000000000ull
#define ADDR 0x7f1240a00000ull /* an extent begins there */

/* Two words that are there, all else is zeros; and one place that is not to be had. */
static uint64_t child = LEAF, absent;

static int read_fake(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const uint64_t root = ROOT + (ADDR >> 30) * 8, leaf = LEAF + (ADDR >> 12 & 0x3ffff) * 8;
	uint64_t v = addr == root ? child : addr == leaf ? 0x1234 : 0;

	(void)ctx;
	cr_assert_eq(len, sizeof(v));
	if (absent && addr == absent)
		return -ENODATA;
	memcpy(buf, &v, sizeof(v));
	return 0;
}

static const struct reader fake = { .read = read_fake };
static const struct jemalloc_extents tree = { .r = &fake, .root = ROOT };

Test(jemalloc_extents, of_a_page)
{
	cr_assert(jemalloc_extents_has(&tree, ADDR));
	cr_assert(jemalloc_extents_has(&tree, ADDR + 4095));
	cr_assert_not(jemalloc_extents_has(&tree, ADDR + 4096));
	cr_assert_not(jemalloc_extents_has(&tree, ADDR - 1));
	cr_assert_not(jemalloc_extents_has(&tree, ADDR + (1ull << 30)), "another leaf");
	cr_assert_eq(jemalloc_extents_entry(&tree, ADDR), LEAF + (ADDR >> 12 & 0x3ffff) * 8);
	cr_assert_eq(jemalloc_extents_entry(&tree, ADDR + (1ull << 30)), 0);
}

Test(jemalloc_extents, what_cannot_be)
{
	/* no address of a process with 48 bits */
	cr_assert_not(jemalloc_extents_has(&tree, ADDR | 1ull << 48));
	cr_assert_not(jemalloc_extents_has(&tree, UINT64_MAX));
	/* no address of a table */
	child = LEAF + 1;
	cr_assert_not(jemalloc_extents_has(&tree, ADDR));
	child = LEAF;
	absent = LEAF + (ADDR >> 12 & 0x3ffff) * 8;
	cr_assert_not(jemalloc_extents_has(&tree, ADDR), "swapped out");
	absent = ROOT + (ADDR >> 30) * 8;
	cr_assert_not(jemalloc_extents_has(&tree, ADDR));
}
