// SPDX-License-Identifier: GPL-3.0-or-later
/* What is read from outside, against what this machine's glibc says of itself. */
#include "../../agent/glibc_live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../agent/glibc_info_xml.h"
#include "../../agent/glibc_picture.h"
#include "../../agent/glibc_predict.h"
#include "../../agent/guard.h"
#include "child.h"

#define THREADS 3
#define TEXT	((size_t)256 * 1024)

/* Shared with the child: its own malloc_info, once it has been written. */
struct shared {
	volatile uint32_t ready;
	size_t len;
	char text[TEXT];
};

static pthread_barrier_t made;
static void *kept[16];

static void churn(unsigned seed)
{
	void *block[400];
	unsigned r = seed;

	for (size_t i = 0; i < 400; i++) {
		r = r * 1103515245U + 12345U;
		block[i] = malloc(1 + (r >> 12) % 9000);
		if (!block[i])
			abort();
		memset(block[i], (int)r, 1);
	}
	for (size_t i = 0; i < 400; i++)
		if (i % 3)
			free(block[i]);
	/* one that is mapped by itself */
	block[0] = malloc((size_t)3 << 20);
	if (!block[0])
		abort();
	kept[seed % 16] = block[0];
}

static void *run(void *arg)
{
	churn((unsigned)(uintptr_t)arg);
	pthread_barrier_wait(&made);
	for (;;)
		pause();
	return NULL;
}

static void child(void *arg)
{
	struct shared *s = arg;
	static char buf[TEXT];
	FILE *f = fmemopen(s->text, TEXT, "w");
	pthread_t t;

	pthread_barrier_init(&made, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t, NULL, run, (void *)(i + 7)))
			abort();
	churn(1);
	pthread_barrier_wait(&made);
	setvbuf(f, buf, _IOFBF, sizeof(buf));
	/* nothing is allocated from here on */
	if (malloc_info(0, f) || fflush(f))
		abort();
	s->len = strlen(s->text);
	s->ready = 1;
	child_sleep(NULL);
}

struct scene {
	struct shared *s;
	pid_t pid;
	struct process *p;
	struct glibc_live live;
};

static void setup_scene(struct scene *x)
{
	const struct session_opts o = { 0 };
	const struct allocator *a;
	struct diag d = { 0 };

	x->s = child_shared(sizeof(*x->s));
	x->pid = child_start(child, x->s);
	cr_assert(child_reach_value(&x->s->ready, 1));
	cr_assert(child_reach(x->pid, x->pid, 'S'));
	cr_assert_eq(process_open(x->pid, &o, &x->p, &d), 0, "%s", d.text);
	a = process_allocator(x->p, "glibc");
	if (!a)
		cr_skip_test("another malloc is in front of glibc's (a sanitizer's)");
	cr_assert_eq(glibc_live_open(x->p, a, &x->live, &d), 0, "%s", d.text);
}

static void end_scene(struct scene *x)
{
	struct diag d = { 0 };

	glibc_live_close(&x->live);
	cr_expect_eq(process_close(x->p, &d, NULL, 0), 0);
	child_end(x->pid);
	munmap(x->s, sizeof(*x->s));
}

struct binned {
	uint64_t fast; /* bytes */
	unsigned chunks;
};

static void count(void *arg, const struct glibc_visit *c)
{
	struct binned *b = arg;

	if (c->place == PLACE_FASTBIN)
		b->fast += c->size;
	else
		b->chunks++;
}

static void agree(const struct glibc_view *v, const struct glibc_arena_plan *got,
		  const struct info_arena *want)
{
	struct glibc_budget all = { .chunks = UINT64_MAX };
	struct glibc_arena a = { 0 };
	struct binned b = { 0 };
	struct glibc_fault f;
	unsigned i = got->index;

	cr_expect_eq(got->fault.kind, FAULT_NONE);
	cr_expect_not(got->moving);
	cr_expect_eq(got->system_mem, want->system, "arena %u", i);
	cr_expect_eq(got->free, want->free, "arena %u: %llu, not %llu", i,
		     (unsigned long long)got->free, (unsigned long long)want->free);
	cr_expect_eq(got->in_use, want->in_use, "arena %u", i);
	cr_assert_eq(glibc_arena_read(v, got->at, i, &a), 0);
	cr_assert_eq(glibc_arena_heaps(v, &a, &f), 0);
	cr_assert_eq(glibc_walk_lists(v, &a, &all, count, &b, &f), 0);
	cr_expect_eq(a.max_system_mem, want->max, "arena %u", i);
	cr_expect_eq(i ? a.heaps : 0, want->subheaps, "arena %u", i);
	cr_expect_eq(b.fast, want->fast, "arena %u", i);
	cr_expect_gt(b.chunks, 50);
	glibc_arena_free(&a);
}

Test(glibc_live, agrees_with_malloc_info)
{
	struct scene x;
	struct glibc_picture *pic;
	struct glibc_info info;
	struct diag d = { 0 };

	setup_scene(&x);
	cr_assert_eq(glibc_info_parse(x.s->text, x.s->len, &info, &d), 0, "%s", d.text);
	cr_assert_eq(glibc_picture_take(x.p, process_allocator(x.p, "glibc"), 0, &pic, &d), 0);
	cr_assert_eq(pic->plan.arenas, info.arenas);
	cr_assert_eq(pic->plan.arenas, THREADS + 1);
	for (size_t i = 0; i < pic->plan.arenas; i++)
		agree(&pic->live.view, &pic->plan.arena[i], &info.arena[i]);
	cr_expect_neq(pic->plan.par.at, 0, "mp_ was not found");
	cr_expect_eq(pic->plan.par.mmapped_mem, info.mmapped);
	cr_expect_eq((uint64_t)pic->plan.par.n_mmaps, info.mmapped_count);
	glibc_picture_free(pic);
	glibc_info_free(&info);
	end_scene(&x);
}

/* ---- one look for two questions */

struct counter {
	const struct reader *real;
	unsigned reads;
};

static int read_counted(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct counter *c = ctx;

	c->reads++;
	return c->real->read(c->real->ctx, addr, buf, len);
}

static void refresh_counted(void *ctx)
{
	struct counter *c = ctx;

	c->real->refresh(c->real->ctx);
}

/* Is the heap whole, and what would a trim return: the lists are walked for both at once. */
Test(glibc_live, lists_are_read_once)
{
	struct counter c = { 0 };
	const struct reader counted = { read_counted, refresh_counted, &c };
	struct prediction once, anew;
	struct diag d = { 0 };
	struct scene x;

	setup_scene(&x);
	cr_assert_eq(glibc_picture_keep(x.p, 0, &d), 0, "%s", d.text);
	cr_assert_not_null(x.p->picture);
	cr_assert_gt(x.p->picture->plan.total.chunks, 200);
	c.real = x.p->picture->live.view.r;
	x.p->picture->live.view.r = &counted;
	cr_assert_eq(guard_run(x.p, &d), 0, "%s", d.text);
	cr_assert_eq(glibc_predict(x.p, process_allocator(x.p, "glibc"), 0, &once, &d), 0);
	/* the ring, and the headers of arenas; each chunk would be two reads at least */
	cr_expect_leq(c.reads, 8 * (THREADS + 1), "%u", c.reads);
	glibc_picture_drop(x.p);
	cr_assert_eq(glibc_predict(x.p, process_allocator(x.p, "glibc"), 0, &anew, &d), 0);
	cr_expect(once.known && anew.known);
	cr_expect_eq(once.bytes, anew.bytes);
	cr_expect_eq(once.ranges, anew.ranges);
	end_scene(&x);
}

/* Without the version, and with a wrong one, the same is found. */
Test(glibc_live, needs_no_version)
{
	struct scene x;
	struct glibc_view v;

	setup_scene(&x);
	for (int version = 0; version <= GLIBC_LAST; version += GLIBC_LAST) {
		const struct span data = { x.live.view.main_arena - 0x1c60 - 0x1000,
					   x.live.view.main_arena + 0x2000 };
		struct span page = { data.start & ~(uint64_t)4095, data.end & ~(uint64_t)4095 };

		cr_assert_eq(glibc_find(x.live.view.r, &page, 1, version, 0, &v), 0);
		cr_expect_eq(v.main_arena, x.live.view.main_arena);
		cr_expect_eq(v.state, x.live.view.state);
		cr_expect_eq(v.heap_info_size, x.live.view.heap_info_size);
		cr_expect_eq(v.par.at, x.live.view.par.at);
	}
	end_scene(&x);
}

Test(glibc_live, is_whole_and_is_left_as_it_is)
{
	struct scene x;
	struct usage before, after;
	struct diag d = { 0 };
	struct guard g;

	setup_scene(&x);
	cr_assert_eq(usage_read(&x.p->t, &before, &d), 0);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(guard_look(x.p, i % 2, &g, &d), 0, "%s", d.text);
		cr_assert_eq(g.state, GUARD_LOOKED);
		cr_expect_eq(g.check.fault.kind, FAULT_NONE, "%s at %#llx",
			     glibc_fault_name(g.check.fault.kind),
			     (unsigned long long)g.check.fault.at);
		cr_expect(g.check.complete);
		cr_expect_eq(g.check.arenas, THREADS + 1);
		cr_expect_gt(g.check.chunks, 200);
	}
	cr_assert_eq(usage_read(&x.p->t, &after, &d), 0);
	cr_expect_eq(after.anon, before.anon, "a look has made it grow");
	end_scene(&x);
}

/* An address space that is gone is not a process that is gone: it may have executed a program. */
static void changes(void *arg)
{
	volatile uint32_t *step = arg;

	free(malloc(100));
	step[0] = 1;
	while (step[1] == 0)
		usleep(1000);
	execlp("sleep", "sleep", "1000", (char *)NULL);
	abort();
}

Test(glibc_live, a_process_that_executes_another_program)
{
	volatile uint32_t *step = child_shared(2 * sizeof(*step));
	const struct session_opts o = { 0 };
	const struct allocator *a;
	struct glibc_live live;
	struct glibc_view v;
	struct process *p;
	struct diag d = { 0 };
	pid_t pid = child_start(changes, (void *)(uintptr_t)step);

	cr_assert(child_reach_value(&step[0], 1));
	cr_assert_eq(process_open(pid, &o, &p, &d), 0, "%s", d.text);
	a = process_allocator(p, "glibc");
	if (!a)
		cr_skip_test("another malloc is in front of glibc's (a sanitizer's)");
	cr_assert_eq(glibc_live_open(p, a, &live, &d), 0, "%s", d.text);
	v = live.view;
	step[1] = 1;
	while (!process_changed(p))
		usleep(1000);
	v.r->refresh(v.r->ctx);
	cr_expect_eq(v.r->read(v.r->ctx, v.main_arena, &v, 1), -ESRCH);
	cr_expect_eq(glibc_live_lost(p, &d), -ESTALE);
	cr_expect_eq(d.exit, HM_UNSAFE);
	glibc_live_close(&live);
	child_end(pid);
	cr_expect_eq(glibc_live_lost(p, &d), -ESRCH);
	cr_expect_eq(d.exit, HM_GONE);
	(void)!process_close(p, &d, NULL, 0);
}
