// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/glibc_arenas.h"

#include <criterion/criterion.h>
#include <sys/types.h>

#include "fake_heap.h"

Test(glibc_arenas, limit)
{
	struct glibc_par par = { .at = 1, .arena_test = 8 };

	cr_expect_eq(glibc_arena_limit(&par, 1, 4, 4), 32);
	cr_expect_eq(glibc_arena_limit(&par, 32, 4, 4), 32);
	cr_expect_eq(glibc_arena_limit(&par, 33, 4, 4), 0, "there are more");
	cr_expect_eq(glibc_arena_limit(&par, 1, 4, 2), 0, "which of the two was counted?");
	cr_expect_eq(glibc_arena_limit(&par, 1, 0, 0), 0);
	par.arena_max = 3;
	cr_expect_eq(glibc_arena_limit(&par, 3, 4, 2), 3);
	cr_expect_eq(glibc_arena_limit(&par, 4, 4, 4), 0, "set too late");
	par.at = 0;
	cr_expect_eq(glibc_arena_limit(&par, 1, 4, 4), 0, "mp_ was not found");
}

/* ---- what becomes of suspicions */

#define ARENAS 4

struct suspicions {
	struct glibc_arena_plan arena[ARENAS];
	struct glibc_plan plan;
};

static void suspect(struct suspicions *s, unsigned mask)
{
	*s = (struct suspicions){ .plan = { .arena = s->arena, .arenas = ARENAS } };
	for (unsigned i = 0; i < ARENAS; i++) {
		s->arena[i].index = i;
		s->arena[i].at = 0x1000 * (i + 1);
		if (mask & 1u << i)
			s->arena[i].fault = (struct glibc_fault){ .kind = FAULT_SIZE,
								  .place = PLACE_BIN,
								  .arena = i,
								  .arena_at = s->arena[i].at };
	}
}

Test(glibc_arenas, a_suspicion_that_is_gone_was_a_change)
{
	const struct glibc_check fine = { .complete = true, .arenas = ARENAS };
	struct suspicions s;

	suspect(&s, 4);
	glibc_arenas_judge(&s.plan, &fine);
	for (unsigned i = 0; i < ARENAS; i++) {
		cr_expect_eq(s.arena[i].fault.kind, FAULT_NONE);
		cr_expect_eq(s.arena[i].moving, i == 2);
		cr_expect_eq(s.arena[i].cut, i == 2, "its reading ended early");
	}
	cr_expect(s.plan.total.moving);
	cr_expect(s.plan.total.cut);
}

Test(glibc_arenas, damage_is_what_was_confirmed)
{
	struct glibc_check check = { .arenas = 1 };
	struct suspicions s;

	/* in arena 1; the look ended there, so that of 3 nobody knows */
	suspect(&s, 1 | 2 | 8);
	check.fault = (struct glibc_fault){
		.kind = FAULT_LIST, .place = PLACE_BIN, .arena = 1, .arena_at = s.arena[1].at
	};
	glibc_arenas_judge(&s.plan, &check);
	cr_expect(s.arena[0].moving && s.arena[0].cut);
	cr_expect_eq(s.arena[1].fault.kind, FAULT_LIST);
	cr_expect(!s.arena[1].moving && !s.arena[1].cut);
	cr_expect_eq(s.arena[2].fault.kind, FAULT_NONE);
	cr_expect(!s.arena[2].moving && !s.arena[2].cut);
	cr_expect_eq(s.arena[3].fault.kind, FAULT_NONE);
	cr_expect(s.arena[3].cut && !s.arena[3].moving);
	cr_expect(s.plan.total.cut);
}

Test(glibc_arenas, a_ring_that_ends)
{
	struct glibc_check check = { .arenas = ARENAS };
	struct suspicions s;

	suspect(&s, 0);
	s.plan.ring_fault = (struct glibc_fault){ .kind = FAULT_RING };
	glibc_arenas_judge(&s.plan, &check);
	cr_expect_eq(s.plan.ring_fault.kind, FAULT_NONE);
	cr_expect(s.plan.total.cut && s.plan.total.moving);
	suspect(&s, 2);
	check.fault = s.plan.ring_fault =
		(struct glibc_fault){ .kind = FAULT_RING, .place = PLACE_RING };
	glibc_arenas_judge(&s.plan, &check);
	cr_expect_eq(s.plan.ring_fault.kind, FAULT_RING);
	cr_expect(s.arena[1].cut && s.plan.total.cut);
}

/* ---- readings of an arena that changes */

static void wait_counted(void *ctx, uint64_t ns)
{
	unsigned *waits = ctx;

	(void)ns;
	(*waits)++;
}

/* Returns how often the plan waited before it read again. */
static unsigned read_fake(struct fake *m, void (*on_refresh)(struct fake *m),
			  struct glibc_plan *plan)
{
	unsigned waits = 0;
	const struct glibc_plan_opts o = { .wait = wait_counted, .ctx = &waits };
	struct glibc_view v;

	fake_find(m, 36, &v);
	m->refreshed = 0;
	m->on_refresh = on_refresh;
	fake_plan(&v, &o, NULL, plan);
	return waits;
}

static void link_back(struct fake *m, bool right)
{
	fake_put(m, m->arena[0].unsorted + 24,
		 right ? m->arena[0].at + m->state->bins - 16 : 0x4242424242424242);
}

static void is_current(struct fake *m)
{
	link_back(m, true);
}

Test(glibc_arenas, a_plan_begins_with_a_fresh_header)
{
	struct glibc_plan plan;
	struct fake m;

	fake_build(&m, 36, 0);
	link_back(&m, false); /* as it was when the heap was looked for */
	cr_expect_eq(read_fake(&m, is_current, &plan), 0, "the old state was read");
	cr_expect_not(plan.arena[0].moving);
	cr_expect_eq(plan.arena[0].free, m.arena[0].free_bytes);
	glibc_plan_free(&plan);
	fake_free(&m);
}

/* A reading begins and ends with a refresh. The header changes each time, and in all readings but
 * the third a list is in the middle of a change. */
static void in_the_middle(struct fake *m)
{
	link_back(m, m->refreshed == 5);
	fake_put(m, m->arena[0].at + m->state->system_mem + 8U, m->refreshed);
}

Test(glibc_arenas, of_a_moving_arena_the_reading_counts_that_saw_all)
{
	struct glibc_plan plan;
	struct fake m;

	fake_build(&m, 36, 0);
	cr_expect_gt(read_fake(&m, in_the_middle, &plan), 0);
	cr_expect(plan.arena[0].moving);
	cr_expect_eq(plan.arena[0].fault.kind, FAULT_NONE);
	cr_expect_eq(plan.arena[0].free, m.arena[0].free_bytes);
	glibc_plan_free(&plan);
	fake_free(&m);
}
