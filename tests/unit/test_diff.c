// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../agent/diff.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "made_up.h"

#define MIB ((uint64_t)1 << 20)

/* A process with one row, one arena and one thread, of which the tests change something. */
static void simple(struct snapshot *s)
{
	made_up(s);
	s->look.memory.owners.n = 1;
	s->look.memory.owners.v[0].owner = OWNER_GLIBC_MAIN;
	s->look.memory.owners.v[0].kind = "";
	s->look.memory.owners.v[0].a = (struct amounts){ .resident = 100 * MIB };
	owners_sum(&s->look.memory.owners);
	s->look.memory.usage.rss = 100 * MIB;
	s->look.makeup = (struct makeup){ .rss = 100 * MIB, .live = 100 * MIB };
	s->look.facts = (struct facts){ 0 };
	s->look.arenas.plan.arenas = 1;
	s->look.arenas.plan.arena[0] = (struct glibc_arena_plan){ .at = 0x1000, .system_mem = MIB };
	s->look.arenas.plan.total = s->look.arenas.plan.arena[0];
	s->threads.n = 1;
	s->threads.v[0].t.tid = 7;
	s->threads.v[0].g.bytes = 0;
}

struct pair {
	struct snapshot a, b;
	struct diff f;
};

static void begin(struct pair *p)
{
	simple(&p->a);
	simple(&p->b);
	p->b.time.tv_sec += 60;
}

static void compare(struct pair *p)
{
	cr_assert_eq(diff_make(&p->a, &p->b, &p->f), 0);
}

static void end(struct pair *p)
{
	diff_free(&p->f);
	made_up_free(&p->a);
	made_up_free(&p->b);
}

Test(diff, of_the_same_is_nothing)
{
	struct pair p;

	begin(&p);
	compare(&p);
	cr_expect(p.f.same);
	cr_expect_eq(p.f.seconds, 60);
	cr_expect_eq(p.f.rows, 1);
	cr_expect_eq(p.f.row[0].delta, 0);
	cr_expect_eq(p.f.total.delta, 0);
	cr_expect_eq(p.f.arenas, 1);
	cr_expect_eq(p.f.arena[0].system, 0);
	cr_expect(p.f.arena[0].before && p.f.arena[0].after);
	cr_expect_eq(p.f.threads, 0);
	cr_expect_eq(p.f.growth, GROWTH_NONE);
	end(&p);
}

static void set_row(struct snapshot *s, size_t i, enum owner owner, const char *kind,
		    uint64_t resident, uint64_t swap)
{
	struct owners *o = &s->look.memory.owners;

	if (o->n <= i)
		o->n = i + 1;
	o->v[i].owner = owner;
	o->v[i].kind = kind;
	o->v[i].a = (struct amounts){ .resident = resident, .swap = swap };
	owners_sum(o);
	s->look.memory.usage.rss = o->total.resident;
}

/* By owner and kind, wherever they stand; what is new or gone counts as a whole. */
Test(diff, owners_largest_growth_first)
{
	struct pair p;

	begin(&p);
	set_row(&p.a, 0, OWNER_GLIBC_MAIN, "", 10 * MIB, 0);
	set_row(&p.a, 1, OWNER_JVM, "java heap", 20 * MIB, 0);
	set_row(&p.a, 2, OWNER_SHM, "", 5 * MIB, 0);
	set_row(&p.b, 0, OWNER_JVM, "code cache", 1 * MIB, 0);
	set_row(&p.b, 1, OWNER_JVM, "java heap", 12 * MIB, 9 * MIB);
	set_row(&p.b, 2, OWNER_GLIBC_MAIN, "", 13 * MIB, 0);
	compare(&p);
	cr_assert_eq(p.f.rows, 4);
	cr_expect_eq(p.f.row[0].owner, OWNER_GLIBC_MAIN);
	cr_expect_eq(p.f.row[0].delta, (int64_t)(3 * MIB));
	cr_expect_eq(p.f.row[1].delta, (int64_t)MIB);
	cr_expect_str_eq(p.f.row[1].kind, "java heap", "what went to swap is there all the same");
	cr_expect_eq(p.f.row[2].delta, (int64_t)MIB);
	cr_expect_str_eq(p.f.row[2].kind, "code cache");
	cr_expect_eq(p.f.row[2].before, 0);
	cr_expect_eq(p.f.row[3].owner, OWNER_SHM);
	cr_expect_eq(p.f.row[3].delta, -(int64_t)(5 * MIB));
	cr_expect_eq(p.f.row[3].after, 0);
	cr_expect_not_null(p.f.row[3].row);
	cr_expect_eq(p.f.total.delta, 0, "35 and 35");
	end(&p);
}

/* A new arena stands behind the main one in the ring: the numbers of the others change. */
Test(diff, arenas_by_their_address)
{
	struct glibc_arena_plan *a, *b;
	struct pair p;

	begin(&p);
	a = p.a.look.arenas.plan.arena;
	b = p.b.look.arenas.plan.arena;
	p.a.look.arenas.plan.arenas = 2;
	p.b.look.arenas.plan.arenas = 3;
	a[0] = (struct glibc_arena_plan){ .index = 0, .at = 0x3000, .system_mem = MIB };
	a[1] = (struct glibc_arena_plan){ .index = 1, .at = 0x2000, .system_mem = 2 * MIB };
	b[0] = (struct glibc_arena_plan){ .index = 2, .at = 0x2000, .system_mem = 3 * MIB };
	b[1] = (struct glibc_arena_plan){ .index = 1, .at = 0x9000, .free = 9 * MIB };
	b[2] = (struct glibc_arena_plan){ .index = 0, .at = 0x3000, .system_mem = MIB };
	compare(&p);
	cr_assert_eq(p.f.arenas, 3);
	cr_expect_eq(p.f.arena[0].after->at, 0x9000);
	cr_expect_null(p.f.arena[0].before);
	cr_expect_eq(p.f.arena[0].free, (int64_t)(9 * MIB));
	cr_expect_eq(p.f.arena[1].after->at, 0x2000);
	cr_expect_eq(p.f.arena[1].before->index, 1);
	cr_expect_eq(p.f.arena[1].system, (int64_t)MIB);
	cr_expect_eq(p.f.arena[2].system, 0);
	diff_free(&p.f);
	p.b.look.glibc = false;
	compare(&p);
	cr_expect(!p.f.glibc);
	cr_expect_eq(p.f.arenas, 0);
	p.b.look.glibc = true;
	end(&p);
}

Test(diff, threads)
{
	struct pair p;

	begin(&p);
	p.a.threads.n = 2;
	p.a.threads.v[0].t.tid = 9;
	p.a.threads.v[1].t.tid = 7;
	p.b.threads.n = 3;
	p.b.threads.v[0].t.tid = 11;
	p.b.threads.v[1].t.tid = 8;
	p.b.threads.v[2].t.tid = 9;
	p.b.threads.v[2].g.bytes = 500;
	compare(&p);
	cr_expect_eq(p.f.fresh, 2);
	cr_expect_eq(p.f.gone, 1);
	cr_assert_eq(p.f.threads, 3);
	cr_expect_eq(p.f.thread[0].row->t.tid, 8);
	cr_expect_eq(p.f.thread[1].row->t.tid, 11);
	cr_expect(!p.f.thread[1].gone);
	cr_expect_eq(p.f.thread[2].row->t.tid, 7);
	cr_expect(p.f.thread[2].gone);
	cr_expect(p.f.caches);
	diff_free(&p.f);
	p.b.threads.v[1].g.cache = false;
	compare(&p);
	cr_expect(!p.f.caches, "one of them is not known");
	end(&p);
}

Test(diff, growth_and_order)
{
	struct pair p;

	begin(&p);
	set_row(&p.b, 0, OWNER_GLIBC_MAIN, "", 160 * MIB, 0);
	p.b.look.makeup =
		(struct makeup){ .rss = 160 * MIB, .live = 100 * MIB, .retained = 60 * MIB };
	compare(&p);
	cr_expect_eq(p.f.growth, GROWTH_RETAINED, "%s", p.f.text);
	cr_expect(strstr(p.f.text, "60.0 MiB"), "%s", p.f.text);
	diff_free(&p.f);
	p.b.time.tv_sec -= 100;
	p.b.start_time++;
	compare(&p);
	cr_expect_eq(p.f.seconds, -40);
	cr_expect(!p.f.same);
	end(&p);
}
