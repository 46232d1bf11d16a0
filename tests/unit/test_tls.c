// SPDX-License-Identifier: GPL-3.0-or-later
#include "../../inject/tls.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../inject/mem.h"
#include "../../inject/tcb.h"
#include "child.h"

/* ---- pure: an address space of a few words */

struct word {
	uint64_t addr, value;
};

static const struct word space[] = {
	{ 0x7f0000000000, 0x7f0000000030 },	   /* heap_info of 48 bytes, 64 MiB aligned */
	{ 0x7f0004000000, 0x7f0000000030 },	   /* a later heap: its arena lies elsewhere */
	{ 0x7f0000800000, 0x7f0000800020 },	   /* 8 MiB aligned only, heap_info of 32 bytes */
	{ 0x7fff00001000 + 2160, 0x7fff00001000 }, /* main_arena, alone */
	{ 0x7fff00003000 + 2152, 0x7f0000000030 }, /* an older one, with a thread arena */
	{ 0x7fff00005000 + 2160, 0x123456 },	   /* no arena */
};

static int read_space(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	for (size_t i = 0; i < sizeof(space) / sizeof(space[0]); i++) {
		if (space[i].addr == addr && len == sizeof(uint64_t)) {
			memcpy(buf, &space[i].value, len);
			return 0;
		}
	}
	return -EFAULT;
}

static bool arena(uint64_t v)
{
	return tls_is_arena(v, 0x7fff00000000, 0x7fff00010000, read_space, NULL);
}

Test(tls, shape_of_an_arena)
{
	cr_expect(arena(0x7f0000000030));
	cr_expect(arena(0x7f0000800020));
	cr_expect(arena(0x7fff00001000));
	cr_expect(arena(0x7fff00003000));
	cr_expect(!arena(0));
	cr_expect(!arena(0x30));
	cr_expect(!arena(UINT64_MAX));
	cr_expect(!arena(0x7f0000000020), "the heap points elsewhere");
	cr_expect(!arena(0x7f0000000038), "not aligned");
	cr_expect(!arena(0x7f0004000030), "a heap that is not the first of its arena");
	cr_expect(!arena(0x7f00000008d0), "a chunk");
	cr_expect(!arena(0x7fff00005000));
	cr_expect(!arena(0x7fff00001004));
	cr_expect(!arena(0x7fff00020000 + 0x1000), "outside of libc");
}

/* ---- a child on the very libc of the test, asked through what that libc exports */

static int find_libc_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct tls_layout *l = arg;
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	if (!name || strcmp(name, "/libc.so.6") != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_TLS)
			l->block_len = p->p_memsz & ~(size_t)7;
		if (p->p_type == PT_LOAD && !l->rw_lo)
			l->rw_lo = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD)
			l->rw_hi = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 1;
}

static bool own_layout(struct tls_layout *l)
{
	const uint32_t *desc = dlsym(RTLD_DEFAULT, "_thread_db_link_map_l_tls_offset");
	const char *map = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	memset(l, 0, sizeof(*l));
	if (!desc || !map || !dl_iterate_phdr(find_libc_tls, l))
		return false;
	memcpy(&l->block_off, map + desc[2], sizeof(l->block_off));
	return true;
}

/* glibc's own, also where a sanitizer has put its allocator in front. */
void *__libc_malloc(size_t n);

#define THREADS 6

struct shared {
	uint64_t tp[THREADS + 1];
	uint32_t ready;
};

struct start {
	struct shared *s;
	unsigned i;
};

static void *run(void *arg)
{
	struct start *st = arg;
	void *volatile keep = NULL;

	st->s->tp[st->i] = (uint64_t)pthread_self();
	/* the first half uses the allocator, the others never */
	if (st->i <= THREADS / 2)
		keep = __libc_malloc(100);
	(void)keep;
	__atomic_add_fetch(&st->s->ready, 1, __ATOMIC_SEQ_CST);
	child_sleep(NULL);
	return NULL;
}

static void with_threads(void *arg)
{
	static struct start st[THREADS + 1];
	void *volatile keep = __libc_malloc(100);
	struct shared *s = arg;

	(void)keep;
	s->tp[0] = (uint64_t)pthread_self();
	for (unsigned i = 1; i <= THREADS; i++) {
		pthread_t th;

		st[i] = (struct start){ s, i };
		if (pthread_create(&th, NULL, run, &st[i]))
			_exit(1);
	}
	child_sleep(NULL);
}

static int read_child(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return mem_read(*(const pid_t *)ctx, addr, buf, len);
}

Test(tls, thread_arena_of_a_child)
{
	struct shared *s = child_shared(sizeof(*s));
	struct tls_layout l;
	uint64_t off = 0, none[2] = { 0, 0 };
	pid_t pid;

	if (!own_layout(&l))
		cr_skip_test("this libc does not export _thread_db_link_map_l_tls_offset");
	pid = child_start(with_threads, s);
	cr_assert(child_reach_value(&s->ready, THREADS));
	cr_assert_eq(tls_arena_offset(&l, s->tp, THREADS + 1, read_child, &pid, &off), 0);
	cr_assert(off > 0 && off <= l.block_off);
	for (unsigned i = 0; i <= THREADS; i++) {
		uint64_t v = 1;

		cr_assert_eq(mem_read(pid, s->tp[i] - off, &v, sizeof(v)), 0);
		cr_assert_eq(v != 0, i <= THREADS / 2, "thread %u: %lx", i, (unsigned long)v);
	}
	/* only threads that have none: nothing to go by, and no guess */
	cr_assert_eq(tls_arena_offset(&l, s->tp + THREADS - 1, 2, read_child, &pid, &off), -ENOENT);
	cr_assert_eq(tls_arena_offset(&l, none, 2, read_child, &pid, &off), -ENOENT);
	l.block_off = 0;
	cr_assert_eq(tls_arena_offset(&l, s->tp, THREADS + 1, read_child, &pid, &off), -ENOENT);
	child_end(pid);
}

Test(tls, main_thread_of_a_child)
{
	const uint32_t *user = dlsym(RTLD_DEFAULT, "_thread_db_rtld_global__dl_stack_user");
	const uint32_t *list = dlsym(RTLD_DEFAULT, "_thread_db_pthread_list");
	const char *global = dlsym(RTLD_DEFAULT, "_rtld_global");
	struct shared *s = child_shared(sizeof(*s));
	pid_t pid = child_start(with_threads, s);
	struct tcb_finder f;
	struct target t;
	struct maps maps;
	struct diag d;

	cr_assert(child_reach_value(&s->ready, THREADS));
	cr_assert_eq(target_open(pid, &t, &d), 0, "%s", d.text);
	cr_assert_eq(maps_read(&t, &maps, &d), 0, "%s", d.text);
	cr_assert_eq(tcb_finder_init(&f, &t, TCB_TID_OFFSET), 0);
	cr_expect_eq(tcb_find_main(&f, &maps, pid), s->tp[0], "by looking for it");
	cr_expect_eq(tcb_find_main(&f, &maps, 1), 0);
	if (user && list && global) { /* glibc 2.34 */
		uint64_t head = (uint64_t)(uintptr_t)global + user[2];

		cr_expect_eq(tcb_find_listed(&f, head, list[2], pid), s->tp[0], "by the list");
		cr_expect_eq(tcb_find_listed(&f, head, list[2], 1), 0);
		cr_expect_eq(tcb_find_listed(&f, s->tp[0], list[2], pid), 0, "no list");
		cr_expect_eq(tcb_find_listed(&f, 1, list[2], pid), 0, "no memory");
	}
	tcb_finder_free(&f);
	maps_free(&maps);
	target_close(&t);
	child_end(pid);
}
