// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_check.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_heap.h"

/* One damage to arena i; at is where the check has to say that it is. */
struct damage {
	const char *what;
	void (*make)(struct fake *m, unsigned i);
	enum glibc_fault_kind kind;
	uint64_t (*at)(const struct fake *m, unsigned i);
	int first, last; /* versions, 0: all */
	bool threads_only;
	bool every_chunk; /* only a look at every chunk sees it */
};

static uint64_t bin_field(const struct fake *m, unsigned i, unsigned bin)
{
	return m->arena[i].at + m->state->bins + (uint64_t)16 * (bin - 1);
}

static void put_size(struct fake *m, uint64_t chunk, uint64_t size)
{
	fake_put(m, chunk + 8, size);
}

#define PLACE(name, expr)                                                                          \
	static uint64_t name(const struct fake *m, unsigned i)                                     \
	{                                                                                          \
		return expr;                                                                       \
	}
#define MAKE(name, ...)                                                                            \
	static void name(struct fake *m, unsigned i)                                               \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}

PLACE(at_arena, m->arena[i].at)
PLACE(at_heap, m->arena[i].heap)
PLACE(at_top, m->arena[i].top)
PLACE(at_unsorted, m->arena[i].unsorted)
PLACE(behind_unsorted, m->arena[i].unsorted + FAKE_UNSORTED)
PLACE(at_small, m->arena[i].small)
PLACE(at_large, m->arena[i].large[0])
PLACE(at_fast, m->arena[i].fast[0])
PLACE(behind_fast, m->arena[i].fast[1] + FAKE_FAST)
PLACE(at_used, m->arena[i].used)
PLACE(at_unsorted_head, bin_field(m, i, 1) - 16)
PLACE(at_before, m->arena[i ? i - 1 : m->arenas - 1].at)
PLACE(at_tcache, m->arena[i].tcache)

MAKE(overrun, put_size(m, m->arena[i].unsorted, 0x4141414141414141))
MAKE(overrun_zero, put_size(m, m->arena[i].small, 0))
MAKE(overrun_plausible, put_size(m, m->arena[i].unsorted, 0x121))
MAKE(overrun_bin, put_size(m, m->arena[i].small, 0xa1))
MAKE(overrun_used, put_size(m, m->arena[i].used, 0x4141414141414141))
MAKE(fd_wild, fake_put(m, m->arena[i].unsorted + 16, 0x4141414141414140))
MAKE(fd_odd, fake_put(m, m->arena[i].small + 16, m->arena[i].unsorted + 8))
MAKE(fd_other, fake_put(m, m->arena[i].unsorted + 16, m->arena[i].small))
MAKE(bk_wild, fake_put(m, m->arena[i].large[0] + 24, 0x4242424242424240))
MAKE(head_fd, fake_put(m, bin_field(m, i, 1), 0x4141414141414140))
MAKE(head_bk, fake_put(m, bin_field(m, i, 1) + 8, m->arena[i].small))
MAKE(prev_size, fake_put(m, m->arena[i].unsorted + FAKE_UNSORTED, 0x40))
MAKE(prev_inuse, put_size(m, m->arena[i].unsorted + FAKE_UNSORTED, 0x51))
MAKE(top_size, put_size(m, m->arena[i].top, UINT64_MAX))
MAKE(top_small, put_size(m, m->arena[i].top, 0x1001))
MAKE(top_wild, fake_put(m, m->arena[i].at + m->state->top, 0x4141414141414140))
MAKE(nextsize, fake_put(m, m->arena[i].large[1] + 40, m->arena[i].small))
MAKE(fast_size, put_size(m, m->arena[i].fast[1], 0x51))
MAKE(fast_link, fake_put(m, m->arena[i].fast[0] + 16, 0x4141414141414141))
MAKE(fast_loop, fake_put(m, m->arena[i].fast[1] + 16,
			 m->version >= 32 ? ((m->arena[i].fast[1] + 16) >> 12) ^ m->arena[i].fast[0]
					  : m->arena[i].fast[0]))
MAKE(fast_behind, put_size(m, m->arena[i].fast[1] + FAKE_FAST, 1))
MAKE(info_owner, fake_put(m, m->arena[i].heap, 0x4343434343434343))
MAKE(info_prev, fake_put(m, m->arena[i].heap + 8, m->arena[i].heap + 4096))
MAKE(info_size, fake_put(m, m->arena[i].heap + 16, 0x7777))
MAKE(ring, fake_put(m, m->arena[i ? i - 1 : m->arenas - 1].at + m->state->next, 0x1234567890))
MAKE(cache_link, fake_put(m, m->arena[i].cached[2] + 0x60, 0x4141414141414141))
MAKE(cache_head, fake_put(m, m->arena[i].tcache + m->tcache->entries + 8, 0x4141414141414148))

PLACE(at_cached, m->arena[i].cached[2] + 0x60)

static const struct damage damages[] = {
	{ "overrun into a free chunk's size", overrun, FAULT_SIZE, at_unsorted, 0, 0, false,
	  false },
	{ "size zero", overrun_zero, FAULT_SIZE, at_small, 0, 0, false, false },
	{ "another possible size", overrun_plausible, FAULT_PREV_SIZE, NULL, 0, 0, false, false },
	{ "another bin's size", overrun_bin, FAULT_BIN, at_small, 0, 0, false, false },
	{ "overrun into a used chunk's size", overrun_used, FAULT_SIZE, at_used, 0, 0, false,
	  true },
	{ "fd leads out", fd_wild, FAULT_LINK, at_unsorted, 0, 0, false, false },
	{ "fd misaligned", fd_odd, FAULT_LINK, at_small, 0, 0, false, false },
	{ "fd to another list's chunk", fd_other, FAULT_LIST, at_small, 0, 0, false, false },
	{ "bk overwritten", bk_wild, FAULT_LIST, at_large, 0, 0, false, false },
	{ "the list's fd", head_fd, FAULT_LINK, at_unsorted_head, 0, 0, false, false },
	{ "the list's bk", head_bk, FAULT_LIST, at_unsorted_head, 0, 0, false, false },
	{ "prev_size", prev_size, FAULT_PREV_SIZE, behind_unsorted, 0, 0, false, false },
	{ "prev_inuse", prev_inuse, FAULT_PREV_SIZE, behind_unsorted, 0, 0, false, false },
	{ "top's size", top_size, FAULT_TOP_SIZE, at_top, 0, 0, false, false },
	{ "top's size too small", top_small, FAULT_TOP_SIZE, at_top, 0, 0, false, false },
	{ "top leads out", top_wild, FAULT_TOP, at_arena, 0, 0, false, false },
	{ "ring of sizes", nextsize, FAULT_NEXTSIZE, at_large, 0, 0, false, false },
	{ "fastbin chunk's size", fast_size, FAULT_FASTBIN, at_fast, 17, 42, false, false },
	{ "fastbin link", fast_link, FAULT_FASTBIN, at_fast, 17, 42, false, false },
	{ "fastbin loop", fast_loop, FAULT_LOOP, NULL, 17, 42, false, false },
	{ "behind a fastbin chunk", fast_behind, FAULT_SIZE, behind_fast, 17, 42, false, false },
	{ "heap_info's arena", info_owner, FAULT_HEAP, at_heap, 0, 0, true, false },
	{ "heap_info's prev", info_prev, FAULT_HEAP, at_heap, 0, 0, true, false },
	{ "heap_info's size", info_size, FAULT_HEAP, at_heap, 0, 0, true, false },
	{ "ring of arenas", ring, FAULT_RING, at_before, 0, 0, true, false },
	{ "thread cache link", cache_link, FAULT_TCACHE, at_cached, 26, 0, false, true },
	{ "thread cache list", cache_head, FAULT_TCACHE, at_tcache, 26, 0, false, true },
};

static struct glibc_check check(struct fake *m, const struct glibc_check_opts *o)
{
	struct glibc_view v;
	struct glibc_check c;

	fake_find(m, m->version, &v);
	cr_assert_eq(glibc_check_run(&v, o, &c), 0);
	return c;
}

static const struct glibc_check_opts plain = { 0 };
static const struct glibc_check_opts deep = { .every_chunk = true };

Test(glibc_check, a_healthy_heap_of_every_layout)
{
	for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++)
		for (unsigned threads = 0; threads < FAKE_ARENAS; threads++) {
			struct fake m;
			struct glibc_check c;

			fake_build(&m, version, threads);
			c = check(&m, &deep);
			cr_expect_eq(c.fault.kind, FAULT_NONE, "2.%d: %s at %#llx", version,
				     glibc_fault_name(c.fault.kind),
				     (unsigned long long)c.fault.at);
			cr_expect(c.complete);
			cr_expect_eq(c.arenas, threads + 1);
			cr_expect_eq(c.readings_again, 0);
			fake_free(&m);
		}
}

static void expect_damage(const struct damage *d, int version, unsigned i)
{
	struct fake m;
	struct glibc_check c;

	fake_build(&m, version, 2);
	d->make(&m, i);
	c = check(&m, d->every_chunk ? &deep : &plain);
	cr_expect_eq(c.fault.kind, d->kind, "2.%d, arena %u, %s: found %s at %#llx", version, i,
		     d->what, glibc_fault_name(c.fault.kind), (unsigned long long)c.fault.at);
	if (d->at)
		cr_expect_eq(c.fault.at, d->at(&m, i), "2.%d, arena %u, %s: at %#llx", version, i,
			     d->what, (unsigned long long)c.fault.at);
	if (d->kind != FAULT_RING)
		cr_expect_eq(c.fault.arena, i, "2.%d, arena %u, %s: arena %u", version, i, d->what,
			     c.fault.arena);
	if (d->every_chunk)
		cr_expect_eq(check(&m, &plain).fault.kind, FAULT_NONE);
	fake_free(&m);
}

Test(glibc_check, every_damage_in_every_layout)
{
	for (size_t k = 0; k < sizeof(damages) / sizeof(damages[0]); k++)
		for (int version = GLIBC_FIRST; version <= GLIBC_LAST; version++) {
			const struct damage *d = &damages[k];

			if (version < d->first || (d->last && version > d->last))
				continue;
			for (unsigned i = d->threads_only ? 1 : 0; i < 3; i++)
				expect_damage(d, version, i);
		}
}

Test(glibc_check, words_for_all_of_them)
{
	for (int k = FAULT_RING; k <= FAULT_TCACHE; k++) {
		struct glibc_fault f = { .kind = (enum glibc_fault_kind)k,
					 .place = PLACE_BIN,
					 .index = 35,
					 .arena = 2,
					 .at = 0x7f0000001230 };
		char where[128], text[160];

		cr_expect(strstr(glibc_fault_where(&f, where, sizeof(where)), "0x7f0000001230"));
		cr_expect(strstr(where, "arena 2, bin 35"), "%s", where);
		cr_expect_gt(strlen(glibc_fault_text(&f, text, sizeof(text))), 10);
		cr_expect_gt(strlen(glibc_fault_name(f.kind)), 2);
	}
}

/* ---- suspicions that are none */

static void heal(struct fake *m)
{
	if (m->refreshed == 3)
		fake_put(m, m->arena[1].unsorted + FAKE_UNSORTED, FAKE_UNSORTED);
}

Test(glibc_check, what_is_well_again_was_no_damage)
{
	struct fake m;
	struct glibc_check c;

	fake_build(&m, 36, 1);
	prev_size(&m, 1);
	m.on_refresh = heal;
	c = check(&m, &plain);
	cr_expect_eq(c.fault.kind, FAULT_NONE);
	cr_expect(c.complete);
	cr_expect_gt(c.readings_again, 0);
	fake_free(&m);
}

Test(glibc_check, a_held_lock_is_waited_for)
{
	struct fake m;
	struct glibc_check c;

	fake_build(&m, 36, 1);
	prev_size(&m, 1);
	fake_put(&m, m.arena[1].at, 1);
	c = check(&m, &plain);
	cr_expect_eq(c.fault.kind, FAULT_NONE);
	cr_expect_not(c.complete);
	cr_expect_eq(c.moving, 1);
	fake_free(&m);
}

static void other_each_time(struct fake *m)
{
	fake_put(m, m->arena[1].unsorted + FAKE_UNSORTED, 0x1000 + (uint64_t)16 * m->refreshed);
}

Test(glibc_check, what_differs_each_time_is_no_damage)
{
	struct fake m;
	struct glibc_check c;

	fake_build(&m, 36, 1);
	prev_size(&m, 1);
	m.on_refresh = other_each_time;
	c = check(&m, &plain);
	cr_expect_eq(c.fault.kind, FAULT_NONE);
	cr_expect_eq(c.moving, 1);
	fake_free(&m);
}

static bool never_at_rest(void *ctx, bool begin)
{
	(void)ctx;
	return begin;
}

static void count_wait(void *ctx, uint64_t ns)
{
	cr_assert_gt(ns, 0);
	++*(unsigned *)ctx;
}

Test(glibc_check, a_thread_that_does_not_get_on_is_waited_for)
{
	unsigned waits = 0;
	const struct glibc_check_opts o = { .at_rest = never_at_rest,
					    .wait = count_wait,
					    .ctx = &waits };
	struct fake m;
	struct glibc_check c;

	fake_build(&m, 36, 0);
	overrun(&m, 0);
	c = check(&m, &o);
	cr_expect_eq(c.fault.kind, FAULT_NONE);
	cr_expect_eq(c.moving, 1);
	cr_expect_gt(waits, 50);
	fake_free(&m);
}

Test(glibc_check, a_limit_is_told)
{
	const struct glibc_check_opts o = { .max_chunks = 3 };
	struct fake m;
	struct glibc_check c;

	fake_build(&m, 36, 2);
	c = check(&m, &o);
	cr_expect_eq(c.fault.kind, FAULT_NONE);
	cr_expect_not(c.complete);
	cr_expect(c.limited);
	fake_free(&m);
}

/* ---- whatever the memory holds */

static void fuzz_once(int version)
{
	struct fake m;
	struct glibc_view v;
	struct glibc_check c;
	struct glibc_plan p;
	const struct span data = { 0x7f5500200000ULL, 0x7f5500205000ULL };
	const struct glibc_check_opts o = { .every_chunk = true, .max_chunks = 100000 };
	const struct glibc_budget b = { .chunks = 100000 };

	fake_build(&m, version, 2);
	for (unsigned k = 0; k < 12; k++) {
		const struct fake_region *g = &m.region[(size_t)rand() % m.regions];
		size_t word = (size_t)rand() % (g->len / 8);
		uint64_t value = (uint64_t)rand() << (rand() % 40);

		/* near the chunks, where it hurts */
		if (rand() % 2)
			word %= 1024;
		if (rand() % 3 == 0)
			value = m.arena[rand() % 3].heap + (uint64_t)(rand() % 512) * 8;
		fake_put(&m, g->at + word * 8, value);
	}
	if (glibc_find(&m.reader, &data, 1, rand() % 2 ? version : 0, 0, &v) == 0) {
		cr_assert_eq(glibc_check_run(&v, &o, &c), 0);
		fake_plan(&v, &(struct glibc_plan_opts){ 0 }, &b, &p);
		glibc_plan_free(&p);
	}
	fake_free(&m);
}

Test(glibc_check, no_memory_is_too_strange, .timeout = 300)
{
	srand(20260131);
	for (int i = 0; i < 4000; i++)
		fuzz_once(GLIBC_FIRST + i % (GLIBC_LAST - GLIBC_FIRST + 1));
}
