// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/threads.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "child.h"

/* Kinds of threads, one of each in the child. */
enum kind { FUTEX, EPOLL, ALTSTACK, SPIN, BIG_WRITE, TIGHT, MALLOC, KINDS };

struct shared {
	uint32_t tid[KINDS];
	uint32_t ready;
};

static struct shared *shared; /* of the child */

static void wait_futex(void)
{
	static uint32_t word;

	for (;;)
		syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

static void on_foreign_stack(void)
{
	static ucontext_t here, there;
	size_t len = (size_t)256 * 1024;

	getcontext(&there);
	there.uc_stack.ss_sp =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	there.uc_stack.ss_size = len;
	there.uc_link = &here;
	makecontext(&there, wait_futex, 0);
	swapcontext(&here, &there);
}

static void write_too_much(void)
{
	static char block[1 << 20];
	int fd[2];

	if (pipe(fd) || write(fd[1], block, sizeof(block)) < 0)
		_exit(1);
}

/* glibc's own, also where a sanitizer has put its allocator in front. */
void *__libc_malloc(size_t n);

static void *run(void *arg)
{
	unsigned kind = (unsigned)(uintptr_t)arg;
	void *volatile keep = NULL;
	struct epoll_event e;
	char name[16] = "kind ?";

	name[5] = (char)('0' + kind);
	prctl(PR_SET_NAME, name);
	__atomic_store_n(&shared->tid[kind], (uint32_t)gettid(), __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	switch (kind) {
	case EPOLL:
		epoll_wait(epoll_create1(0), &e, 1, -1);
		break;
	case ALTSTACK:
		on_foreign_stack();
		break;
	case SPIN:
		for (;;)
			__asm__ volatile("");
	case BIG_WRITE:
		write_too_much();
		break;
	case MALLOC:
		keep = __libc_malloc(100);
		break;
	default:
		break;
	}
	(void)keep;
	wait_futex();
	return NULL;
}

static void all_kinds(void *arg)
{
	void *volatile keep = __libc_malloc(100);

	(void)keep;
	shared = arg;
	for (unsigned k = 0; k < KINDS; k++) {
		pthread_attr_t attr;
		pthread_t th;
		size_t size = k == TIGHT ? (size_t)20 * 1024 : (size_t)512 * 1024;

		pthread_attr_init(&attr);
		/* with static TLS a tight stack may not be had: then it is a bit larger */
		while (pthread_attr_setstacksize(&attr, size) ||
		       pthread_create(&th, &attr, run, (void *)(uintptr_t)k))
			size += 4096;
	}
	wait_futex();
}

static const struct thread *by_tid(const struct threads *l, uint32_t tid)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].tid == (pid_t)tid)
			return &l->v[i];
	}
	return NULL;
}

struct scene {
	struct shared *s;
	pid_t pid;
	struct target t;
	struct maps maps;
	struct threads list;
};

static void setup_scene(struct scene *s)
{
	struct diag d;

	s->s = child_shared(sizeof(*s->s));
	s->pid = child_start(all_kinds, s->s);
	cr_assert(child_reach_value(&s->s->ready, KINDS));
	cr_assert(child_reach_call(s->pid, s->pid, SYS_futex));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[FUTEX], SYS_futex));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[EPOLL], SYS_epoll_wait));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[ALTSTACK], SYS_futex));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[BIG_WRITE], SYS_write));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[TIGHT], SYS_futex));
	cr_assert(child_reach_call(s->pid, (pid_t)s->s->tid[MALLOC], SYS_futex));
	cr_assert_eq(target_open(s->pid, &s->t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&s->t, &s->maps, &d), 0, "%s", d.text);
	cr_assert_eq(threads_read(&s->t, &s->list, &d), 0, "%s", d.text);
}

static void end_scene(struct scene *s)
{
	threads_free(&s->list);
	maps_free(&s->maps);
	target_close(&s->t);
	child_end(s->pid);
}

Test(threads, are_read)
{
	const struct thread *th;
	struct scene s;

	setup_scene(&s);
	cr_assert_eq(s.list.n, KINDS + 1);
	th = by_tid(&s.list, s.s->tid[FUTEX]);
	cr_assert_not_null(th);
	cr_assert_str_eq(th->name, "kind 0");
	cr_assert_eq(th->state, 'S');
	cr_assert(th->in_syscall);
	cr_assert_eq(th->nr, SYS_futex);
	cr_assert_eq(th->arg[1], 0);
	cr_assert(th->sp && th->pc);
	th = by_tid(&s.list, s.s->tid[EPOLL]);
	cr_assert_eq(th->nr, SYS_epoll_wait);
	cr_assert_eq(th->arg[2], 1);
	th = by_tid(&s.list, s.s->tid[SPIN]);
	cr_assert_eq(th->state, 'R');
	cr_assert(!th->in_syscall);
	cr_assert_eq(th->nr, -1);
	end_scene(&s);
}

Test(threads, are_ranked_by_call_and_stack)
{
	const struct thread *th;
	struct scene s;

	setup_scene(&s);
	cr_assert_eq(threads_rank(&s.t, &s.maps, NULL, &s.list), 0);
	for (size_t i = 1; i < s.list.n; i++)
		cr_assert_leq(s.list.v[i - 1].rank, s.list.v[i].rank);
	for (size_t i = 0; i < s.list.n; i++)
		cr_assert_not_null(s.list.v[i].reason);
	th = by_tid(&s.list, (uint32_t)s.pid);
	cr_assert(th->usable, "the main thread: %s", th->reason);
	cr_assert_str_eq(th->reason, "futex");
	th = by_tid(&s.list, s.s->tid[FUTEX]);
	cr_assert(th->usable, "%s", th->reason);
	cr_assert_gt(th->tcb, th->sp);
	cr_assert(th->stack_lo < th->sp && th->tcb < th->stack_hi);
	th = by_tid(&s.list, s.s->tid[EPOLL]);
	cr_assert(th->usable, "%s", th->reason);
	cr_assert_str_eq(th->reason, "epoll_wait");
	cr_assert_gt(th->rank, by_tid(&s.list, s.s->tid[FUTEX])->rank);
	th = by_tid(&s.list, s.s->tid[SPIN]);
	cr_assert(th->usable, "%s", th->reason);
	cr_assert_gt(th->rank, by_tid(&s.list, s.s->tid[EPOLL])->rank);
	th = by_tid(&s.list, s.s->tid[ALTSTACK]);
	cr_assert(!th->usable);
	cr_assert_eq(th->tcb, 0);
	cr_assert_not_null(strstr(th->reason, "fiber"), "%s", th->reason);
	th = by_tid(&s.list, s.s->tid[BIG_WRITE]);
	cr_assert(!th->usable);
	cr_assert_not_null(strstr(th->reason, "interrupted"), "%s", th->reason);
	end_scene(&s);
}

Test(threads, that_own_an_arena_come_first)
{
	const struct thread *main_thread, *user, *none;
	struct modules mods;
	struct scene s;
	struct diag d;

	setup_scene(&s);
	cr_assert_eq(modules_load(&s.t, &s.maps, &mods, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&s.t, &s.maps, &mods, &s.list), 0);
	main_thread = by_tid(&s.list, (uint32_t)s.pid);
	user = by_tid(&s.list, s.s->tid[MALLOC]);
	none = by_tid(&s.list, s.s->tid[FUTEX]);
	cr_expect(main_thread->has_arena);
	cr_expect(user->has_arena);
	cr_expect(!none->has_arena);
	cr_expect_lt(user->rank, none->rank);
	cr_expect(user->usable && s.list.v[0].has_arena && s.list.v[0].usable);
	/* these two, unless one of them could not be borrowed at that moment */
	cr_expect_eq(threads_at_no_cost(&s.list),
		     (size_t)main_thread->usable + (size_t)user->usable);
	modules_free(&mods);
	end_scene(&s);
}

/* What costs an arena, or makes a timeout begin anew, is not among them; nobody may be. */
Test(threads, at_no_cost)
{
	struct thread v[] = {
		{ .usable = true, .rank = 0 },	  { .usable = true, .rank = 7 },
		{ .usable = true, .rank = 10 },	  { .usable = true, .rank = 32 },
		{ .usable = false, .rank = 100 },
	};
	struct threads list = { .v = v, .n = sizeof(v) / sizeof(v[0]) };

	cr_expect_eq(threads_at_no_cost(&list), 2);
	list.v += 2;
	list.n -= 2;
	cr_expect_eq(threads_at_no_cost(&list), 0);
	list.v += 2;
	list.n -= 2;
	cr_expect_eq(threads_at_no_cost(&list), 0);
	list.n = 0;
	cr_expect_eq(threads_at_no_cost(&list), 0);
}

/* Also of a thread that runs, of which no stack pointer is known. */
Test(threads, are_located)
{
	const struct thread *spin, *sleeper;
	struct modules mods;
	struct scene s;
	struct diag d;
	uint64_t tp;

	setup_scene(&s);
	cr_assert_eq(modules_load(&s.t, &s.maps, &mods, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&s.t, &s.maps, &mods, &s.list), 0);
	sleeper = by_tid(&s.list, s.s->tid[FUTEX]);
	tp = sleeper->tp;
	cr_expect_neq(tp, 0);
	cr_expect_eq(tp, sleeper->tcb);
	cr_assert_eq(threads_locate(&s.t, &mods, &s.list), 0);
	spin = by_tid(&s.list, s.s->tid[SPIN]);
	cr_expect_neq(spin->tp, 0);
	cr_expect_eq(sleeper->tp, tp);
	for (size_t i = 0; i < s.list.n; i++)
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(s.list.v[i].tp, s.list.v[k].tp);
	modules_free(&mods);
	end_scene(&s);
}

Test(threads, a_tight_stack_is_left_alone)
{
	const struct thread *th;
	struct scene s;

	setup_scene(&s);
	cr_assert_eq(threads_rank(&s.t, &s.maps, NULL, &s.list), 0);
	th = by_tid(&s.list, s.s->tid[TIGHT]);
	cr_assert_neq(th->tcb, 0);
	if (th->sp - th->stack_lo < 4 * 1024)
		cr_expect(!th->usable && strstr(th->reason, "4 KiB"), "%s", th->reason);
	else
		cr_expect(th->usable, "%s", th->reason);
	end_scene(&s);
}

Test(threads, stopped_and_dead_ones_are_not_usable)
{
	struct scene s;
	struct diag d;

	setup_scene(&s);
	threads_free(&s.list);
	kill(s.pid, SIGSTOP);
	cr_assert(child_reach(s.pid, s.pid, 'T'));
	cr_assert(child_reach(s.pid, (pid_t)s.s->tid[FUTEX], 'T'));
	cr_assert_eq(threads_read(&s.t, &s.list, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&s.t, &s.maps, NULL, &s.list), 0);
	for (size_t i = 0; i < s.list.n; i++) {
		if (s.list.v[i].state == 'T')
			cr_expect(!s.list.v[i].usable);
	}
	cr_expect(!by_tid(&s.list, (uint32_t)s.pid)->usable);
	threads_free(&s.list);
	child_end(s.pid);
	cr_assert_eq(threads_read(&s.t, &s.list, &d), -ESRCH);
	cr_assert_eq(d.exit, HM_GONE);
	maps_free(&s.maps);
	target_close(&s.t);
}

static void *wait_thread(void *unused)
{
	(void)unused;
	wait_futex();
	return NULL;
}

static void thousand(void *arg)
{
	pthread_attr_t attr;
	uint32_t *n = arg;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)128 * 1024);
	for (unsigned i = 0; i < 1000; i++) {
		pthread_t th;

		if (pthread_create(&th, &attr, wait_thread, NULL))
			break;
		__atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_add_fetch(n, 10000, __ATOMIC_SEQ_CST);
	wait_futex();
}

Test(threads, a_thousand)
{
	uint32_t *n = child_shared(sizeof(*n));
	pid_t pid = child_start(thousand, n);
	struct threads list;
	struct target t;
	struct maps maps;
	struct diag d;
	size_t usable = 0;

	cr_assert(child_reach_value(n, 10000));
	cr_assert(child_reach_call(pid, pid, SYS_futex));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(threads_read(&t, &list, &d), 0, "%s", d.text);
	cr_assert_eq(list.n, *n - 10000 + 1);
	/* the last ones may still be on their way into their call */
	for (size_t i = 0; i < list.n; i++)
		cr_assert(child_reach_call(pid, list.v[i].tid, SYS_futex));
	threads_free(&list);
	cr_assert_eq(threads_read(&t, &list, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&t, &maps, NULL, &list), 0);
	for (size_t i = 0; i < list.n; i++)
		usable += list.v[i].usable;
	cr_assert_eq(usable, list.n);
	threads_free(&list);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
}

struct nested {
	uint32_t inner_tid, outer_pid;
};

static void *inner_thread(void *arg)
{
	struct nested *n = arg;

	__atomic_store_n(&n->inner_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	wait_futex();
	return NULL;
}

/* Makes a pid namespace and a process with a thread in it. */
static void in_namespace(void *arg)
{
	struct nested *n = arg;
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (pid == 0) {
		pthread_t th;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&th, NULL, inner_thread, n))
			_exit(1);
		wait_futex();
	}
	__atomic_store_n(&n->outer_pid, (uint32_t)pid, __ATOMIC_SEQ_CST);
	waitpid(pid, NULL, 0);
}

Test(threads, in_another_pid_namespace)
{
	struct nested *n = child_shared(sizeof(*n));
	pid_t pid;
	struct threads list;
	struct target t;
	struct maps maps;
	struct diag d;

	if (geteuid() != 0)
		cr_skip_test("needs root to make a pid namespace");
	pid = child_start(in_namespace, n);
	if (!child_reach_value(&n->outer_pid, 1) || !child_reach_value(&n->inner_tid, 1))
		cr_skip_test("a pid namespace cannot be made here");
	cr_assert(child_reach_call((pid_t)n->outer_pid, (pid_t)n->outer_pid, SYS_futex));
	cr_assert_eq(target_open((pid_t)n->outer_pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(threads_read(&t, &list, &d), 0, "%s", d.text);
	cr_assert_eq(list.n, 2);
	for (size_t i = 0; i < list.n; i++) {
		if (list.v[i].tid != t.pid)
			cr_assert(child_reach_call(t.pid, list.v[i].tid, SYS_futex));
	}
	threads_free(&list);
	cr_assert_eq(threads_read(&t, &list, &d), 0, "%s", d.text);
	cr_assert_eq(threads_rank(&t, &maps, NULL, &list), 0);
	for (size_t i = 0; i < list.n; i++) {
		cr_expect(list.v[i].usable, "%s", list.v[i].reason);
		cr_expect_eq(list.v[i].tcb != 0, list.v[i].tid != t.pid);
	}
	threads_free(&list);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
}
