// SPDX-License-Identifier: GPL-3.0-or-later
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "../../inject/liveness.h"

struct code {
	const uint8_t *bytes;
	size_t len;
};

/* Behind the end is what no compiler makes: hlt. */
static int read_code(void *context, uint64_t addr, void *buf, size_t len)
{
	const struct code *c = context;

	memset(buf, 0xf4, len);
	if (addr < c->len)
		memcpy(buf, c->bytes + addr, len < c->len - addr ? len : c->len - addr);
	return addr < c->len ? 0 : -1;
}

static struct liveness look(const uint8_t *bytes, size_t len, unsigned arg)
{
	struct code c = { bytes, len };
	struct liveness l;

	liveness_look(read_code, &c, 0, arg, &l);
	return l;
}

static bool unread(const uint8_t *bytes, size_t len, unsigned arg)
{
	return look(bytes, len, arg).arg_unread;
}
#define UNREAD(arg, ...)                                                                           \
	unread((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), arg)

enum { RDI, RSI, RDX, R10, R8, R9 };

Test(liveness, a_return_ends_it)
{
	for (unsigned arg = 0; arg < 6; arg++)
		cr_expect(UNREAD(arg, 0xc3));
	cr_expect_not(UNREAD(6, 0xc3));
}

Test(liveness, what_is_read)
{
	cr_expect_not(UNREAD(R8, 0x44, 0x89, 0xc7, 0xc3), "mov %%r8d,%%edi");
	cr_expect(UNREAD(R10, 0x44, 0x89, 0xc7, 0xc3));
	cr_expect(UNREAD(RDI, 0x44, 0x89, 0xc7, 0xc3), "overwritten");
	cr_expect_not(UNREAD(RDX, 0x48, 0x89, 0xd3, 0xc3), "mov %%rdx,%%rbx");
	cr_expect_not(UNREAD(R10, 0x49, 0x8b, 0x02, 0xc3), "mov (%%r10),%%rax");
	cr_expect_not(UNREAD(R9, 0x4a, 0x8b, 0x04, 0xc8, 0xc3), "mov (%%rax,%%r9,8),%%rax");
	cr_expect_not(UNREAD(R10, 0x41, 0x52, 0xc3), "push %%r10");
	cr_expect_not(UNREAD(R10, 0x0f, 0x05, 0xc3), "another system call");
	cr_expect_not(UNREAD(R10, 0x45, 0x88, 0xd0, 0xc3), "mov %%r10b,%%r8b");
	cr_expect_not(UNREAD(R8, 0x45, 0x88, 0xd0, 0x4c, 0x89, 0xc0, 0xc3),
		      "a part of it is written, then all of it read");
}

Test(liveness, both_ways_of_a_branch)
{
	/* ja to mov %r10,%rax */
	cr_expect_not(UNREAD(R10, 0x77, 1, 0xc3, 0x4c, 0x89, 0xd0, 0xc3));
	cr_expect(UNREAD(R8, 0x77, 1, 0xc3, 0x4c, 0x89, 0xd0, 0xc3));
	/* a loop that never reads it */
	cr_expect(UNREAD(R8, 0x85, 0xc0, 0x75, 0xfc, 0xc3));
	/* into a function that does: call, ret; test %r8,%r8, ret */
	cr_expect_not(UNREAD(R8, 0xe8, 1, 0, 0, 0, 0xc3, 0x4d, 0x85, 0xc0, 0xc3));
	cr_expect(UNREAD(R10, 0xe8, 1, 0, 0, 0, 0xc3, 0x4d, 0x85, 0xc0, 0xc3));
}

/* A compiler that sees both functions knows which registers the one called leaves alone. */
Test(liveness, behind_a_call)
{
	/* call 1f; mov (%r10),%rcx; ret; 1: add $1,%rax; ret */
	const uint8_t kept[] = {
		0xe8, 4, 0, 0, 0, 0x49, 0x8b, 0x0a, 0xc3, 0x48, 0x83, 0xc0, 1, 0xc3
	};
	/* the same with xor %r10d,%r10d in front of the read */
	const uint8_t lost[] = { 0xe8, 7,    0,	   0,	 0,    0x45, 0x31, 0xd2, 0x49,
				 0x8b, 0x0a, 0xc3, 0x48, 0x83, 0xc0, 1,	   0xc3 };
	/* call 1f; mov -8(%rsp),%eax; ret; 1: ret */
	const uint8_t zone[] = { 0xe8, 5, 0, 0, 0, 0x8b, 0x44, 0x24, 0xf8, 0xc3, 0xc3 };

	cr_expect_not(unread(kept, sizeof(kept), R10));
	cr_expect(unread(kept, sizeof(kept), R8));
	cr_expect(unread(lost, sizeof(lost), R10));
	cr_expect(look(zone, sizeof(zone), R10).zone_unread, "the call has written there");
}

Test(liveness, where_it_returns_to)
{
	/* push %rbx; sub $0x20,%rsp; add $0x38,%rsp; pop %rbx; ret */
	const uint8_t plain[] = {
		0x53, 0x48, 0x83, 0xec, 0x20, 0x48, 0x83, 0xc4, 0x38, 0x5b, 0xc3
	};
	const uint8_t frame[] = { 0xc9, 0xc3 }; /* leave; ret */
	const uint8_t lea[] = {
		0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3
	};						  /* lea -8(%rbp),%rsp; pop; pop; ret */
	const uint8_t over[] = { 0x31, 0xd2, 0xc3 };	  /* xor %edx,%edx; ret */
	const uint8_t differ[] = { 0x74, 1, 0x58, 0xc3 }; /* je 1f; pop; 1: ret */
	const uint8_t odd[] = { 0x48, 0x83, 0xe4, 0xf0, 0xc3 }; /* and $-16,%rsp; ret */
	struct liveness l = look(plain, sizeof(plain), R10);

	cr_expect(l.arg_unread && l.returns && !l.from_frame && l.return_at == 0x18);
	l = look(frame, sizeof(frame), R10);
	cr_expect(l.arg_unread && l.returns && l.from_frame && l.return_at == 8);
	l = look(lea, sizeof(lea), R10);
	cr_expect(l.arg_unread && l.returns && l.from_frame && l.return_at == 8);
	l = look(over, sizeof(over), RDX);
	cr_expect(l.arg_unread && !l.returns);
	cr_expect_not(unread(differ, sizeof(differ), R10));
	cr_expect_not(unread(odd, sizeof(odd), R10));
}

Test(liveness, what_its_caller_may_know)
{
	/* call 5; then what is called there */
	const uint8_t direct[] = { 0xe8, 0, 0, 0, 0, 0xc3, 0, 0, 0, 0, 0, 0, 0 };
	const uint8_t plt[] = { 0xe8, 0, 0, 0, 0, 0xff, 0x25, 1, 2, 3, 4, 0, 0 };
	const uint8_t ibt[] = { 0xe8, 0, 0, 0, 0, 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1 };
	const uint8_t pointer[] = { 0x90, 0x90, 0x90, 0xff, 0xd0, 0xc3 }; /* call *%rax */
	struct code c = { direct, sizeof(direct) };

	cr_expect(liveness_caller_knows(read_code, &c, 5));
	cr_expect(liveness_caller_knows(read_code, &c, 100), "nothing is there");
	c.bytes = plt;
	cr_expect_not(liveness_caller_knows(read_code, &c, 5));
	c.bytes = ibt;
	cr_expect_not(liveness_caller_knows(read_code, &c, 5));
	c = (struct code){ pointer, sizeof(pointer) };
	cr_expect_not(liveness_caller_knows(read_code, &c, 5));
}

Test(liveness, nothing_is_read_by_this)
{
	/* endbr64; xor %edx,%edx; ret */
	cr_expect(UNREAD(RDX, 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xd2, 0xc3));
	/* cmp $-4096,%rax; add $0x28,%rsp; neg %eax; mov %eax,%fs:(%rdx); ret */
	const uint8_t tail[] = { 0x48, 0x3d, 0,	   0xf0, 0xff, 0xff, 0x48, 0x83,
				 0xc4, 0x28, 0xf7, 0xd8, 0x64, 0x89, 0x02, 0xc3 };

	cr_expect(unread(tail, sizeof(tail), R10));
	cr_expect_not(unread(tail, sizeof(tail), RDX));
}

Test(liveness, the_unknown_is_no)
{
	cr_expect_not(UNREAD(R10, 0xf4), "hlt");
	cr_expect_not(UNREAD(R8, 0x49, 0x90, 0xc3), "xchg %%rax,%%r8");
	cr_expect(UNREAD(R8, 0x90, 0xf3, 0x90, 0xc3), "nop; pause");
	cr_expect_not(UNREAD(R10, 0xff, 0xe0), "jmp *%%rax");
	cr_expect_not(UNREAD(R10, 0xc5, 0xf8, 0x77, 0xc3), "vzeroupper");
	cr_expect_not(UNREAD(R10, 0x90, 0x90), "the end of what can be read");
	cr_expect_not(UNREAD(RDX, 0xf7, 0xe1, 0xc3), "mul %%ecx");
}

static int read_self(void *unused, uint64_t addr, void *buf, size_t len)
{
	(void)unused;
	memcpy(buf, (const void *)(uintptr_t)addr, len);
	return 0;
}

/* All system calls within the first bytes of a function of this machine's glibc. */
static unsigned ask_wrapper(const void *fn, unsigned arg, bool *all)
{
	const uint8_t *code = fn;
	unsigned n = 0;

	cr_assert_not_null(fn);
	*all = true;
	for (size_t i = 0; i < 160; i++) {
		struct liveness l;

		if (code[i] != 0x0f || code[i + 1] != 0x05)
			continue;
		liveness_look(read_self, NULL, (uint64_t)(uintptr_t)code + i + 2, arg, &l);
		*all = *all && l.arg_unread && l.zone_unread;
		n++;
	}
	return n;
}

Test(liveness, the_red_zone)
{
	const uint8_t above[] = { 0x8b, 0x44, 0x24, 0x0c, 0xc3 };     /* mov 12(%rsp),%eax */
	const uint8_t below[] = { 0x8b, 0x44, 0x24, 0xf8, 0xc3 };     /* mov -8(%rsp),%eax */
	const uint8_t lea[] = { 0x48, 0x8d, 0x44, 0x24, 0xc0, 0xc3 }; /* lea -64(%rsp),%rax */
	const uint8_t indexed[] = { 0x8b, 0x04, 0xc4, 0xc3 };	      /* mov (%rsp,%rax,8),%eax */
	const uint8_t frame[] = { 0x8b, 0x45, 0xec, 0xc9, 0xc3 };     /* mov -20(%rbp),%eax */
	/* sub $24,%rsp; mov D(%rsp),%eax; add $24,%rsp; ret */
	const uint8_t lower[] = { 0x48, 0x83, 0xec, 0x18, 0x8b, 0x44, 0x24,
				  0x10, 0x48, 0x83, 0xc4, 0x18, 0xc3 };
	const uint8_t own[] = { 0x48, 0x83, 0xec, 0x18, 0x8b, 0x44, 0x24,
				0x18, 0x48, 0x83, 0xc4, 0x18, 0xc3 };
	/* mov %rbp,%rsp; sub $16,%rsp; mov 4(%rsp),%eax; leave; ret */
	const uint8_t by_frame[] = { 0x48, 0x89, 0xec, 0x48, 0x83, 0xec, 0x10,
				     0x8b, 0x44, 0x24, 0x04, 0xc9, 0xc3 };
	const uint8_t late[] = { 0x31, 0xd2, 0x8b, 0x45, 0xe0, 0x5d, 0xc3 };

	cr_expect(look(above, sizeof(above), R10).zone_unread);
	cr_expect_not(look(below, sizeof(below), R10).zone_unread);
	cr_expect_not(look(lea, sizeof(lea), R10).zone_unread);
	cr_expect_not(look(indexed, sizeof(indexed), R10).zone_unread);
	cr_expect_not(look(lower, sizeof(lower), R10).zone_unread, "room made of the zone");
	cr_expect(look(own, sizeof(own), R10).zone_unread, "above it");
	cr_expect_eq(look(by_frame, sizeof(by_frame), R10).lowest, -12);
	cr_expect_eq(look(frame, sizeof(frame), R10).lowest, -20);
	cr_expect_eq(look(late, sizeof(late), RDX).lowest, -32,
		     "the register is overwritten, the zone is still looked for");
	cr_expect_eq(look(above, sizeof(above), R10).lowest, 0);
}

Test(liveness, wrappers_of_glibc)
{
	static const struct {
		const char *name;
		unsigned arg;
	} wrappers[] = {
		{ "epoll_wait", R10 }, { "epoll_pwait", R10 }, { "sigtimedwait", RDX },
		{ "semtimedop", R10 }, { "syscall", R8 },      { "syscall", R10 },
	};
	/* not what a sanitizer has put in front */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	cr_assert_not_null(libc);
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		bool all;
		unsigned n = ask_wrapper(dlsym(libc, wrappers[i].name), wrappers[i].arg, &all);

		cr_expect_gt(n, 0, "%s: no system call found", wrappers[i].name);
		cr_expect(all, "%s", wrappers[i].name);
	}
}
