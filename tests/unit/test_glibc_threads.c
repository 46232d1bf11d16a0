// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_threads.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../agent/glibc_tcache.h"
#include "fake_heap.h"

#define WORDS  18U
#define BLOCK  0x90U
#define BELOW  0xb0U /* of the thread pointer, where the block begins */
#define SLOT   5U
#define OFFSET (BELOW - SLOT * 8)

static const struct tls_layout layout = { .block_off = BELOW, .block_len = BLOCK };

struct scene {
	struct fake m;
	struct glibc_view v;
	uint64_t blocks[3 * WORDS]; /* of three threads */
};

static void setup_scene(struct scene *s, int version)
{
	memset(s, 0, sizeof(*s));
	fake_build(&s->m, version, 2);
	fake_find(&s->m, version, &s->v);
	for (unsigned i = 0; i < 3; i++) {
		s->blocks[i * WORDS + SLOT] = s->m.arena[i].tcache;
		/* other pointers, as there are */
		s->blocks[i * WORDS + SLOT + 1] = s->m.arena[i].at;
		s->blocks[i * WORDS + SLOT + 2] = s->m.arena[i].used + 16;
		s->blocks[i * WORDS + SLOT + 3] = s->m.data;
		s->blocks[i * WORDS + SLOT + 4] = UINT64_MAX;
		s->blocks[i * WORDS + SLOT + 5] = s->m.arena[i].tcache + 8;
	}
}

Test(glibc_threads, the_pointer_to_the_cache_is_found)
{
	for (int version = 26; version <= GLIBC_LAST; version++) {
		struct scene s;
		uint64_t off = 0;

		setup_scene(&s, version);
		cr_assert_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), 0, "2.%d",
			     version);
		cr_expect_eq(off, OFFSET);
		/* one thread is enough, and one that has none does not matter */
		cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 1, &off), 0);
		s.blocks[SLOT] = 0;
		cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), 0);
		cr_expect_eq(off, OFFSET);
		fake_free(&s.m);
	}
}

Test(glibc_threads, nothing_is_guessed)
{
	struct scene s;
	uint64_t off = 0;

	setup_scene(&s, 36);
	cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 0, &off), -ENOENT);
	/* two words that could be it */
	for (unsigned i = 0; i < 3; i++)
		s.blocks[i * WORDS + SLOT + 7] = s.m.arena[i].tcache;
	cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), -ENOENT);
	/* in fewer threads: the other one is a copy that somebody keeps */
	s.blocks[SLOT + 7] = 0;
	cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), 0);
	cr_expect_eq(off, OFFSET);
	for (unsigned i = 0; i < 3; i++)
		s.blocks[i * WORDS + SLOT] = s.blocks[i * WORDS + SLOT + 7] = 0;
	cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), -ENOENT);
	fake_free(&s.m);
	/* before 2.26 there is no cache */
	setup_scene(&s, 25);
	cr_expect_eq(glibc_tcache_offset(&s.v, &layout, s.blocks, 3, &off), -ENOENT);
	fake_free(&s.m);
}

/* As in a static program: which cache it is, and how its links are stored, is seen. */
Test(glibc_threads, without_a_version)
{
	struct tls_layout in_program = layout;

	in_program.in_program = true;
	for (int version = 26; version <= GLIBC_LAST; version++) {
		struct scene s;
		struct glibc_tcache t;
		uint64_t off = 0, left = 100;

		setup_scene(&s, version);
		fake_find(&s.m, 0, &s.v);
		/* zeros of the program's own, as large as a cache: an empty one, as it seems */
		for (unsigned i = 0; i < 3; i++)
			s.blocks[i * WORDS] = s.m.arena[2].tcache;
		for (uint64_t at = 0; at + 8 <= s.m.tcache->size; at += 8)
			fake_put(&s.m, s.m.arena[2].tcache + at, 0);
		s.blocks[2 * WORDS + SLOT] = 0;
		cr_assert(glibc_tcache_is(&s.v, s.m.arena[2].tcache, false));
		cr_assert_eq(glibc_tcache_offset(&s.v, &in_program, s.blocks, 3, &off), 0, "2.%d",
			     version);
		cr_expect_eq(off, OFFSET);
		for (unsigned i = 0; i < 2; i++) {
			cr_assert_eq(glibc_tcache_of(&s.v, s.m.arena[i].tcache, &left, &t), 0,
				     "2.%d", version);
			cr_expect_eq(t.blocks, 4);
			cr_expect_eq(t.bytes, 0x30 + 0x40 + 0x60 + 0x30);
			/* where nothing is in use, nothing is guessed */
			s.blocks[i * WORDS + SLOT] = 0;
		}
		cr_expect_eq(glibc_tcache_offset(&s.v, &in_program, s.blocks, 3, &off), -ENOENT);
		fake_free(&s.m);
	}
}

static void put_counter(struct scene *s, uint64_t cache, unsigned i, uint16_t n)
{
	uint64_t at = cache + (uint64_t)2 * i, word = fake_get(&s->m, at & ~(uint64_t)7);

	memcpy((char *)&word + at % 8, &n, sizeof(n));
	fake_put(&s->m, at & ~(uint64_t)7, word);
}

/* Where slots are counted, a list that is full has none. */
Test(glibc_threads, a_full_cache)
{
	static const unsigned used[] = { 1, 2, 4 };

	for (int version = 42; version <= GLIBC_LAST; version++) {
		struct scene s;
		uint64_t at;

		setup_scene(&s, version);
		fake_find(&s.m, version, &s.v);
		at = s.m.arena[1].tcache;
		for (unsigned i = 0; i < 3; i++)
			put_counter(&s, at, used[i], 0);
		cr_expect(glibc_tcache_is(&s.v, at, true), "2.%d", version);
		/* no slot anywhere: pointers behind zeros */
		for (unsigned i = 0; i < s.m.tcache->bins; i++)
			put_counter(&s, at, i, 0);
		cr_expect_not(glibc_tcache_is(&s.v, at, true), "2.%d", version);
		fake_free(&s.m);
	}
}

Test(glibc_threads, what_a_cache_holds)
{
	for (int version = 26; version <= GLIBC_LAST; version++) {
		struct glibc_tcache t;
		struct scene s;
		uint64_t at, left = 100;

		setup_scene(&s, version);
		at = s.m.arena[1].tcache;
		cr_assert_eq(glibc_tcache_of(&s.v, at, &left, &t), 0, "2.%d", version);
		cr_expect_eq(t.blocks, 4);
		cr_expect_eq(t.bytes, 0x30 + 0x40 + 0x60 + 0x30);
		cr_expect_eq(left, 96);
		left = 3;
		cr_expect_eq(glibc_tcache_of(&s.v, at, &left, &t), -E2BIG);
		left = 100;
		cr_expect_eq(glibc_tcache_of(&s.v, s.m.arena[1].used + 16, &left, &t), -ENOENT);
		cr_expect_eq(glibc_tcache_of(&s.v, at + 16, &left, &t), -ENOENT);
		cr_expect_eq(glibc_tcache_of(&s.v, 16, &left, &t), -ENOENT);
		/* an entry that leads nowhere */
		fake_put(&s.m, at + s.m.tcache->entries + 8, 0x4141414141414140);
		cr_expect_eq(glibc_tcache_of(&s.v, at, &left, &t), -EBADMSG);
		/* an empty one, as where thread caches are off */
		for (unsigned i = 0; i < s.m.tcache->entries / 8U; i++)
			fake_put(&s.m, at + (uint64_t)8 * i, 0);
		for (unsigned i = 0; i < s.m.tcache->bins; i++)
			fake_put(&s.m, at + s.m.tcache->entries + (uint64_t)8 * i, 0);
		cr_expect(glibc_tcache_is(&s.v, at, false));
		cr_expect_not(glibc_tcache_is(&s.v, at, true));
		cr_expect_eq(glibc_tcache_of(&s.v, at, &left, &t), 0);
		cr_expect_eq(t.blocks, 0);
		cr_expect_eq(t.bytes, 0);
		fake_free(&s.m);
	}
}
