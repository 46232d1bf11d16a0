// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../inject/leftover.h"

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
