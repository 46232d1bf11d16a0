// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/stacks.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../inject/modules.h"
#include "child.h"

#define TCB 0x7f00007ff6c0ULL

static bool bounds(size_t at, uint64_t a, uint64_t size)
{
	uint64_t buf[288] = { TCB, 0, TCB }, lo = 0, hi = 0;
	bool found;

	buf[at] = a;
	buf[at + 1] = size;
	found = stack_bounds(buf, sizeof(buf), TCB, &lo, &hi);
	cr_assert(!found || (lo == a && hi == a + size));
	return found;
}

Test(stacks, bounds)
{
	const uint64_t block = 0x7f0000000000, size = 0x800000;

	cr_assert(bounds(210, block, size));
	cr_assert(bounds(3, block, size));
	cr_assert(bounds(286, block, size));
	cr_assert_not(bounds(210, 0, TCB + 100));	       /* the main thread has none */
	cr_assert_not(bounds(210, block, size - 0x1000));      /* ends below the struct */
	cr_assert_not(bounds(210, block, size + 0x10000));     /* ends far above it */
	cr_assert_not(bounds(210, TCB, 0x4000));	       /* begins at it */
	cr_assert_not(bounds(210, block, UINT64_MAX - block)); /* wraps */
	cr_assert_not(bounds(210, TCB - 0x3000, 0x3900));      /* smaller than any stack */
}

/* ---- what glibc says of this child's own threads */

struct truth {
	uint32_t ready;
	struct {
		pid_t tid;
		uint64_t lo, hi;
	} thread[3];
};

static struct truth *truth;

static void *run(void *arg)
{
	size_t i = (size_t)arg;
	pthread_attr_t attr;
	size_t size, guard;
	void *addr;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &addr, &size);
	pthread_attr_getguardsize(&attr, &guard);
	truth->thread[i].tid = (pid_t)syscall(SYS_gettid);
	/* the block has the guard below what the attributes call the stack */
	truth->thread[i].lo = (uint64_t)(uintptr_t)addr - guard;
	truth->thread[i].hi = (uint64_t)(uintptr_t)addr + size;
	__atomic_add_fetch(&truth->ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void threads_child(void *unused)
{
	pthread_attr_t attr;
	pthread_t t;
	size_t own = 256 * 1024;
	void *mem = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	/* three at once, so that none gets the stack of another; the last is kept for later */
	pthread_attr_init(&attr);
	pthread_attr_setguardsize(&attr, 64 * 1024);
	pthread_create(&t, &attr, run, (void *)0);
	pthread_create(&t, NULL, run, (void *)1);
	pthread_attr_setstack(&attr, mem, own);
	pthread_attr_setguardsize(&attr, 0);
	pthread_create(&t, &attr, run, (void *)2);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1024 * 1024);
	pthread_create(&t, &attr, end_at_once, NULL);
	pthread_join(t, NULL);
	__atomic_add_fetch(&truth->ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static const struct stack *stack_of(const struct stacks *s, pid_t tid)
{
	const struct stack *found = NULL;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].tid != tid)
			continue;
		cr_assert_null(found, "two stacks of one thread");
		found = &s->v[i];
	}
	cr_assert_not_null(found, "no stack of %d among %zu", (int)tid, s->n);
	return found;
}

static void check(const struct stacks *s)
{
	const struct stack *kept = stack_of(s, 0);

	for (size_t i = 0; i < 3; i++) {
		const struct stack *k = stack_of(s, truth->thread[i].tid);

		cr_assert(k->exact);
		cr_assert_eq(k->hi, truth->thread[i].hi);
		/* on a stack of its own there is no guard, whatever the attributes say */
		cr_assert_eq(k->lo, truth->thread[i].lo, "thread %zu: %llx, not %llx", i,
			     (unsigned long long)k->lo, (unsigned long long)truth->thread[i].lo);
	}
	cr_assert_neq(s->main_tcb, 0);
	/* glibc adds the guard to the size since 2.27 */
	cr_assert_geq(kept->hi - kept->lo, 1024 * 1024);
	cr_assert_leq(kept->hi - kept->lo, 1024 * 1024 + 64 * 1024);
	cr_assert_eq(s->n, 4);
}

Test(stacks, of_a_process)
{
	struct target t;
	struct maps maps;
	struct modules mods;
	struct stacks s;
	struct diag d = { 0 };
	pid_t pid;

	truth = child_shared(sizeof(*truth));
	pid = child_start(threads_child, NULL);
	cr_assert(child_reach_value(&truth->ready, 4));
	for (size_t i = 0; i < 3; i++)
		cr_assert(child_reach_call(pid, truth->thread[i].tid, SYS_pause));
	cr_assert_eq(target_open(pid, &t, &d), 0);
	cr_assert_eq(maps_read(&t, &maps, &d), 0);
	cr_assert_eq(modules_load(&t, &maps, &mods, &d), 0);
	cr_assert_eq(stacks_read(&t, &maps, &mods, &s, &d), 0, "%s", d.text);
	check(&s);
	stacks_free(&s);
	/* as where glibc has no lists: by shape, and by the stack pointer where there is no guard
	 */
	cr_assert_eq(stacks_read(&t, &maps, NULL, &s, &d), 0, "%s", d.text);
	check(&s);
	stacks_free(&s);
	modules_free(&mods);
	maps_free(&maps);
	child_end(pid);
	target_close(&t);
}
