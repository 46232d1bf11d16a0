// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_layout.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct glibc_state_row states[] = {
	/* releases  fastbins    top  last  bins   next  next_free  attached    system  size */
	{ 27, 42,         16,    96,  104,  112,   2160, 2168,      2176,       2184,   2200 },
	{ 23, 26,          8,    88,   96,  104,   2152, 2160,      2168,       2176,   2192 },
	{ 17, 22,          8,    88,   96,  104,   2152, 2160,      GLIBC_NONE, 2168,   2184 },
	{ 43, 43, GLIBC_NONE,     8,   16,   24,   2072, 2080,      2088,       2096,   2112 },
};

static const struct glibc_par_row pars[] = {
	/* releases  thp_page    n_mmaps  mmapped_mem  sbrk_base  tcache_bins  size */
	{ 35, 42,    40,         60,      80,           96,       104,         136 },
	{ 43, 43,    48,         68,      88,          104,       112,         144 },
	{ 26, 34,    GLIBC_NONE, 40,      56,           72,        80,         112 },
	{ 24, 25,    GLIBC_NONE, 40,      56,           72, GLIBC_NONE,         80 },
	{ 17, 23,    GLIBC_NONE, 40,      56,           80, GLIBC_NONE,         88 },
};

static const struct glibc_tcache_row tcaches[] = {
	/* releases  counter  bins  small  entries  size */
	{ 30, 41,    2,       64,   64,    128,     640 },
	{ 26, 29,    1,       64,   64,     64,     576 },
	{ 42, 43,    2,       76,   64,    152,     760 },
};
/* clang-format on */

size_t glibc_state_rows(const struct glibc_state_row **out)
{
	*out = states;
	return sizeof(states) / sizeof(states[0]);
}

size_t glibc_par_rows(const struct glibc_par_row **out)
{
	*out = pars;
	return sizeof(pars) / sizeof(pars[0]);
}

size_t glibc_tcache_rows(const struct glibc_tcache_row **out)
{
	*out = tcaches;
	return sizeof(tcaches) / sizeof(tcaches[0]);
}

unsigned glibc_heap_info_size(int version)
{
	return version >= 35 ? 48 : 32;
}

int glibc_version_minor(const char *text)
{
	long v;

	if (strncmp(text, "2.", 2) != 0)
		return 0;
	v = strtol(text + 2, NULL, 10);
	return v > 0 && v < 1000 ? (int)v : 0;
}

/* bin_index of malloc.c for 64-bit machines: spacing grows eightfold from group to group. */
unsigned glibc_bin_index(uint64_t size)
{
	static const struct {
		unsigned shift, last, base;
	} groups[] = {
		{ 6, 48, 48 }, { 9, 20, 91 }, { 12, 10, 110 }, { 15, 4, 119 }, { 18, 2, 124 }
	};

	if (size < (uint64_t)GLIBC_SMALL * 16)
		return (unsigned)(size >> 4);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (size >> groups[i].shift <= groups[i].last)
			return groups[i].base + (unsigned)(size >> groups[i].shift);
	return 126;
}

uint64_t glibc_fastbin_size(unsigned i)
{
	return GLIBC_MINSIZE + (uint64_t)16 * i;
}
