// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../inject/leftover.h"
#include "../../inject/region.h"
#include "child.h"

/* Ourselves; nothing is held or changed to look for regions. */
static void self(struct target *t)
{
	*t = (struct target){ .pid = getpid(), .pidfd = -1 };
	t->procfd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert(t->procfd >= 0);
}

/* A target may name as many mappings like ours as it can make: they are watched all at once. A wait
 * for each would take minutes here. */
Test(leftover, very_many_regions, .timeout = 60)
{
	enum { N = 30000 };
	struct hm_range range[HM_MAX_REAP];
	char *text = malloc(N * 80), *w = text;
	struct leftovers left;
	struct target t;
	struct maps maps;
	size_t n;

	cr_assert(text);
	for (unsigned long i = 0; i < N; i++)
		w += sprintf(w, "%lx-%lx rw-p 00000000 00:00 0 [anon:heapmedic]\n",
			     0x100000000000 + (i << 23), 0x100000001000 + (i << 23));
	cr_assert_eq(maps_parse(text, (size_t)(w - text), &maps), 0);
	self(&t);
	cr_expect_eq(leftover_find(&t, &maps, range, HM_MAX_REAP, &n, &left), 0);
	cr_expect_eq(left.regions + left.busy, N);
	cr_expect(left.busy == 0 || left.busy == N, "%u of %u", left.busy, (unsigned)N);
	cr_expect_eq(n, left.busy ? 0 : HM_MAX_REAP);
	maps_free(&maps);
	close(t.procfd);
	free(text);
}

/* Mappings of one region that touch are one range. */
Test(leftover, pieces_of_one_region_are_one)
{
	static const char text[] =
		"600200000000-600200001000 r-xp 00000000 00:00 0 [anon:heapmedic]\n"
		"600200001000-600200080000 rw-p 00000000 00:00 0 [anon:heapmedic]\n"
		"600200090000-600200091000 rw-p 00000000 00:00 0 [anon:heapmedic]\n"
		"600a00000000-600a00001000 rw-p 00000000 00:00 0 [anon:other]\n";
	struct hm_range range[4];
	struct leftovers left;
	struct target t;
	struct maps maps;
	size_t n;

	cr_assert_eq(maps_parse(text, sizeof(text) - 1, &maps), 0);
	self(&t);
	cr_expect_eq(leftover_find(&t, &maps, range, 4, &n, &left), 0);
	if (left.busy)
		cr_skip_test("this process is traced");
	cr_expect_eq(left.regions, 1);
	cr_assert_eq(n, 2);
	cr_expect(range[0].addr == 0x600200000000 && range[0].len == 0x80000);
	cr_expect(range[1].addr == 0x600200090000 && range[1].len == 0x1000);
	maps_free(&maps);
	close(t.procfd);
}

/* ---- the thread that was borrowed */

Test(leftover, a_thread_that_gets_no_cpu_may_be_inside)
{
	const uint64_t us = 1000;
	struct lent l = { .tid = 7 };

	/* asleep, stopped, ended: it is where its stack pointer is, and that is seen */
	cr_expect_not(leftover_may_be_inside(&l, 'S', 0));
	cr_expect_not(leftover_may_be_inside(&l, 'D', 0));
	cr_expect_not(leftover_may_be_inside(&l, 'T', 0));
	cr_expect_not(leftover_may_be_inside(&l, 'Z', 0));
	cr_expect(leftover_may_be_inside(&l, 'R', 5000 * us), "first seen");
	cr_expect(leftover_may_be_inside(&l, 'R', 5000 * us), "and it has not run since");
	cr_expect(leftover_may_be_inside(&l, 'R', 5020 * us), "the way out is longer");
	cr_expect_not(leftover_may_be_inside(&l, 'R', 6000 * us));
	/* its time cannot be read */
	l.ran = 0;
	for (int i = 0; i < 3; i++)
		cr_expect(leftover_may_be_inside(&l, 'R', 0));
}

/* A region as a killed run leaves it, in a child that says it was borrowed for it. */
struct left_behind {
	struct region r;
	bool spins;
};

static void lent_child(void *arg)
{
	const struct left_behind *b = arg;
	struct hm_block *block = (struct hm_block *)(uintptr_t)b->r.block;

	block->magic = HM_BLOCK_MAGIC;
	block->base = b->r.base;
	block->boot_state = HM_BOOT_DONE;
	block->lent_tid = getpid();
	while (b->spins)
		;
	child_sleep(NULL);
}

static void find_of_lent(bool spins)
{
	struct left_behind b = { .spins = spins };
	struct hm_range range[4];
	struct leftovers left = { 0 };
	struct target t;
	struct diag d = { 0 };
	struct maps maps;
	uint64_t base;
	size_t n = 0;
	pid_t pid;

	self(&t);
	cr_assert_eq(maps_read(&t, &maps, &d), 0);
	region_layout(&b.r, 0, HM_MODE_PROXY, 1, SESSION_SCRATCH, 0);
	base = region_choose(&maps, b.r.size);
	cr_assert_neq(base, 0);
	region_layout(&b.r, base, HM_MODE_PROXY, 1, SESSION_SCRATCH, 0);
	cr_assert_eq((uint64_t)(uintptr_t)mmap((void *)(uintptr_t)base, b.r.size,
					       PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     base);
	maps_free(&maps);
	close(t.procfd);
	pid = child_start(lent_child, &b);
	cr_assert(child_reach(pid, pid, spins ? 'R' : 'S'));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &maps, &d), 0);
	/* one that runs is believed once it has had a fifth of a millisecond of a CPU */
	for (int i = 0; i < 1000 && !left.regions; i++) {
		cr_assert_eq(leftover_find(&t, &maps, range, 4, &n, &left), 0);
		cr_assert_eq(left.regions + left.busy, 1);
		cr_assert(spins || left.regions, "asleep, and called busy");
	}
	cr_expect_eq(left.regions, 1);
	cr_assert_eq(n, 1);
	cr_expect_eq(range[0].addr, base);
	cr_expect_eq(range[0].len, b.r.size);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
	munmap((void *)(uintptr_t)base, b.r.size);
}

Test(leftover, a_thread_that_was_lent_and_sleeps)
{
	find_of_lent(false);
}

Test(leftover, a_thread_that_was_lent_and_runs)
{
	find_of_lent(true);
}
