// SPDX-License-Identifier: GPL-3.0-or-later
#include "glibc_info.h"

#include <errno.h>
#include <stdlib.h>

int glibc_info_add(struct glibc_info *i, const struct info_arena *a)
{
	/* Grown where the count is a power of two. */
	if (i->arenas >= GLIBC_INFO_ARENAS)
		return -E2BIG;
	if ((i->arenas & (i->arenas - 1)) == 0) {
		size_t room = i->arenas ? i->arenas * 2 : 1;
		struct info_arena *v = reallocarray(i->arena, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		i->arena = v;
	}
	i->arena[i->arenas++] = *a;
	return 0;
}

void glibc_info_free(struct glibc_info *i)
{
	free(i->arena);
	*i = (struct glibc_info){ 0 };
}

void info_arena_add(struct info_arena *t, const struct info_arena *a)
{
	t->system = info_add(t->system, a->system);
	t->max = info_add(t->max, a->max);
	t->in_use = info_add(t->in_use, a->in_use);
	t->free = info_add(t->free, a->free);
	t->fast = info_add(t->fast, a->fast);
	t->aspace = info_add(t->aspace, a->aspace);
	t->mprotect = info_add(t->mprotect, a->mprotect);
	t->free_count = info_add(t->free_count, a->free_count);
	t->fast_count = info_add(t->fast_count, a->fast_count);
	t->subheaps += a->subheaps;
}

void glibc_info_sum(struct glibc_info *i)
{
	unsigned flags = i->total.flags;

	i->total = (struct info_arena){ .flags = flags };
	for (size_t k = 0; k < i->arenas; k++)
		info_arena_add(&i->total, &i->arena[k]);
}

const char *info_flag_name(unsigned bit)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {
		{ INFO_FREE_OVER_SYSTEM, "free-over-system" }, { INFO_WRAPPED, "wrapped" },
		{ INFO_TOTAL_DIFFERS, "total-differs" },       { INFO_CUT, "cut" },
		{ INFO_TOP_IN_USE, "top-counted-in-use" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].bit == bit)
			return names[i].name;
	return "";
}
