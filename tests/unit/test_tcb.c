// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/tcb.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"

#define BASE 0x7f0000001000ULL

static void put_word(char *buf, size_t off, uint64_t v)
{
	memcpy(buf + off, &v, sizeof(v));
}

static void put_tcb(char *buf, size_t off, int32_t tid)
{
	put_word(buf, off, BASE + off);
	put_word(buf, off + 16, BASE + off);
	memcpy(buf + off + TCB_TID_OFFSET, &tid, sizeof(tid));
}

Test(tcb, scan)
{
	size_t len = 8192;
	char *buf = calloc(1, len);

	cr_assert_not_null(buf);
	cr_assert_eq(tcb_scan(buf, len, BASE, TCB_TID_OFFSET, 7), 0);
	put_tcb(buf, 0x440, 7);
	put_tcb(buf, 0x1440, 8);
	cr_assert_eq(tcb_scan(buf, len, BASE, TCB_TID_OFFSET, 7), BASE + 0x440);
	cr_assert_eq(tcb_scan(buf, len, BASE, TCB_TID_OFFSET, 8), BASE + 0x1440);
	cr_assert_eq(tcb_scan(buf, len, BASE, TCB_TID_OFFSET, 9), 0);
	/* the nearest to the end wins: an older one of the same number may lie below */
	put_tcb(buf, 0x1800, 7);
	cr_assert_eq(tcb_scan(buf, len, BASE, TCB_TID_OFFSET, 7), BASE + 0x1800);
	free(buf);
}

Test(tcb, scan_at_the_edges)
{
	size_t need = TCB_TID_OFFSET + 4;
	char *buf = calloc(1, need);

	cr_assert_not_null(buf);
	put_tcb(buf, 0, 7);
	cr_assert_eq(tcb_scan(buf, need, BASE, TCB_TID_OFFSET, 7), BASE);
	cr_assert_eq(tcb_scan(buf, need - 1, BASE, TCB_TID_OFFSET, 7), 0, "tid is cut off");
	cr_assert_eq(tcb_scan(buf, need, BASE, 0, BASE & 0x7fffffff), BASE);
	cr_assert_eq(tcb_scan(buf, need, BASE + 8, TCB_TID_OFFSET, 7), 0);
	cr_assert_eq(tcb_scan(buf, need, UINT64_MAX - 15, TCB_TID_OFFSET, 7), 0);
	cr_assert_eq(tcb_scan(buf, need, 0, TCB_TID_OFFSET, 7), 0);
	cr_assert_eq(tcb_scan(buf, 0, BASE, TCB_TID_OFFSET, 7), 0);
	free(buf);
}

Test(tcb, half_of_one_is_none)
{
	char buf[1024] = { 0 };

	put_tcb(buf, 64, 7);
	put_word(buf, 64 + 16, BASE);
	cr_assert_eq(tcb_scan(buf, sizeof(buf), BASE, TCB_TID_OFFSET, 7), 0);
	put_tcb(buf, 64, 7);
	put_word(buf, 64, 0);
	cr_assert_eq(tcb_scan(buf, sizeof(buf), BASE, TCB_TID_OFFSET, 7), 0);
}

struct shared {
	uint32_t main_ready, tid;
	uint64_t tp, sp, big_tp, big_sp;
	uint32_t big_tid;
};

static void *report(void *arg)
{
	struct shared *s = arg;

	s->tp = (uint64_t)pthread_self();
	s->sp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	__atomic_store_n(&s->tid, (uint32_t)gettid(), __ATOMIC_SEQ_CST);
	child_sleep(NULL);
	return NULL;
}

static __thread char large_tls[700 * 1024];

/* Uses a stack with a deep frame and large thread-local storage between it and its end. */
static void *report_big(void *arg)
{
	struct shared *s = arg;
	volatile char deep[300 * 1024];

	deep[0] = large_tls[5] = 1;
	s->big_tp = (uint64_t)pthread_self();
	s->big_sp = (uint64_t)(uintptr_t)&deep[0];
	__atomic_store_n(&s->big_tid, (uint32_t)gettid(), __ATOMIC_SEQ_CST);
	child_sleep(NULL);
	return NULL;
}

static void two_threads(void *arg)
{
	struct shared *s = arg;
	pthread_t a, b;

	if (pthread_create(&a, NULL, report, arg) || pthread_create(&b, NULL, report_big, arg))
		_exit(1);
	__atomic_store_n(&s->main_ready, 1, __ATOMIC_SEQ_CST);
	child_sleep(NULL);
}

Test(tcb, of_the_threads_of_a_child)
{
	struct shared *s = child_shared(sizeof(*s));
	pid_t pid = child_start(two_threads, s);
	struct tcb_finder f;
	struct target t;
	struct maps maps;
	struct diag d;
	const struct map *m;

	cr_assert(child_reach_value(&s->main_ready, 1) && child_reach_value(&s->tid, 1) &&
		  child_reach_value(&s->big_tid, 1));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(tcb_finder_init(&f, &t, TCB_TID_OFFSET), 0);

	m = maps_find(&maps, s->sp);
	cr_assert_not_null(m);
	cr_assert_eq(tcb_find(&f, s->sp, m->end, (pid_t)s->tid), s->tp);
	cr_assert_eq(tcb_find(&f, s->sp, m->end, (pid_t)s->tid + 1), 0, "another thread's");
	cr_assert_eq(tcb_find(&f, s->tp + 64, m->end, (pid_t)s->tid), 0, "it lies below");
	m = maps_find(&maps, s->big_sp);
	cr_assert_not_null(m);
	cr_assert_eq(tcb_find(&f, s->big_sp, m->end, (pid_t)s->big_tid), s->big_tp);
	/* far from the end of a merged mapping: found from the stack pointer on */
	f.budget = (size_t)64 << 20;
	cr_assert_eq(tcb_find(&f, s->big_sp, s->big_sp + ((uint64_t)1 << 30), (pid_t)s->big_tid),
		     s->big_tp);
	f.budget = 0;
	cr_assert_eq(tcb_find(&f, s->big_sp, s->big_sp + ((uint64_t)1 << 30), (pid_t)s->big_tid), 0,
		     "no budget, no long search");
	tcb_finder_free(&f);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
}
