// SPDX-License-Identifier: GPL-3.0-or-later
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

/* Younger than the headers of the oldest system that we build on. */
#define NR_CLONE3      435
#define NR_CLOSE_RANGE 436

/* A thread may have many filters; the kernel bounds their total length (MAX_INSNS_PER_PATH). */
#define FILTERS_MAX    4096
#define PATH_MAX_INSNS 32768

/* clone(2) as pthread_create(3) calls it: flags that filters look at */
#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define SOME	0x600000000000 /* an address, and a length: only their kind matters */
#define SET_VMA 0x53564d41     /* PR_SET_VMA */

enum {
	PROXY_ONLY = 1,
	/*
	 * An error is as bad as a kill: without rt_sigreturn(2) the borrowed thread never gets its
	 * registers back; glibc aborts where rseq(2) fails for a thread that did not fail for the
	 * first (sysdeps/nptl, start_thread); it calls exit(2) in a loop, and so a futex(2) that it
	 * cannot wait in; a proxy that cannot close its ends of the pipes, or sees no time pass,
	 * never leaves.
	 */
	MUST_WORK = 2,
	/* Called only where the one before it in the table answers with an error. */
	INSTEAD = 4,
	/* Only where a call writes a file, in either mode. */
	FILE_ONLY = 8,
};

/*
 * What the payload calls, and glibc around it: pthread_create(3), the end of a thread, and what
 * gives memory back.
 */
static const struct payload_call {
	const char *name;
	long nr;
	unsigned flags;
	uint64_t arg[6];
} calls[] = {
	{ "mmap", SYS_mmap, 0, { SOME, 4096, PROT_READ | PROT_EXEC, ANON, UINT64_MAX } },
	{ "mmap", SYS_mmap, 0, { 0, 4096, PROT_NONE, ANON, UINT64_MAX } },
	{ "mprotect", SYS_mprotect, 0, { SOME, 4096, PROT_READ | PROT_WRITE } },
	{ "munmap", SYS_munmap, 0, { SOME, 4096 } },
	{ "madvise", SYS_madvise, 0, { SOME, 4096, MADV_DONTNEED } },
	{ "brk", SYS_brk, 0, { SOME } },
	{ "futex", SYS_futex, MUST_WORK, { SOME, FUTEX_WAIT_PRIVATE } },
	{ "futex", SYS_futex, MUST_WORK, { SOME, FUTEX_WAKE_PRIVATE, 1 } },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, 0, { SIG_UNBLOCK, SOME, 0, 8 } },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, 0, { SIG_SETMASK, SOME, 0, 8 } },
	{ "rt_sigreturn", SYS_rt_sigreturn, MUST_WORK, { 0 } },
	{ "prctl", SYS_prctl, 0, { SET_VMA, 0, SOME, 4096, SOME } },
	{ "getpid", SYS_getpid, 0, { 0 } },
	{ "gettid", SYS_gettid, 0, { 0 } },
	{ "tgkill", SYS_tgkill, 0, { 1, 1, SIGURG } },
	{ "clock_gettime", SYS_clock_gettime, MUST_WORK, { CLOCK_MONOTONIC, SOME } },
	{ "clone3", NR_CLONE3, PROXY_ONLY, { SOME, 88 } },
	{ "clone", SYS_clone, PROXY_ONLY, { THREAD_FLAGS, SOME, SOME, SOME, SOME } },
	{ "prctl", SYS_prctl, PROXY_ONLY, { PR_SET_NAME, SOME } },
	{ "close_range", NR_CLOSE_RANGE, PROXY_ONLY, { 0, UINT32_MAX, 2 } },
	{ "unshare", SYS_unshare, PROXY_ONLY | INSTEAD, { CLONE_FILES } },
	{ "memfd_create", SYS_memfd_create, PROXY_ONLY, { SOME, 1 } },
	{ "fcntl", SYS_fcntl, PROXY_ONLY, { 0, F_SETFL, O_APPEND } },
	{ "dup3", SYS_dup3, PROXY_ONLY, { 0, 1, O_CLOEXEC } },
	{ "pipe2", SYS_pipe2, PROXY_ONLY, { SOME, O_CLOEXEC } },
	{ "close", SYS_close, PROXY_ONLY | MUST_WORK, { 4 } },
	{ "poll", SYS_poll, PROXY_ONLY, { SOME, 1, UINT64_MAX } },
	{ "read", SYS_read, PROXY_ONLY, { 3, SOME, 1 } },
	{ "write", SYS_write, PROXY_ONLY, { 1, SOME, 1 } },
	{ "rseq", SYS_rseq, PROXY_ONLY | MUST_WORK, { SOME, 32, 0, 0x53053053 } },
	{ "set_robust_list", SYS_set_robust_list, PROXY_ONLY, { SOME, 24 } },
	{ "restart_syscall", SYS_restart_syscall, PROXY_ONLY, { 0 } },
	{ "exit", SYS_exit, PROXY_ONLY | MUST_WORK, { 0 } },
	/* jemalloc's dump (src/prof_sys.c): its file, then the mappings as /proc has them */
	{ "creat", SYS_creat, FILE_ONLY, { SOME, 0644 } },
	{ "memfd_create", SYS_memfd_create, FILE_ONLY, { SOME, 1 } },
	{ "openat", SYS_openat, FILE_ONLY, { (uint32_t)AT_FDCWD, SOME, O_RDONLY | O_CLOEXEC } },
	{ "read", SYS_read, FILE_ONLY, { 5, SOME, 4096 } },
	{ "write", SYS_write, FILE_ONLY, { 5, SOME, 4096 } },
	{ "close", SYS_close, FILE_ONLY, { 5 } },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait, FILE_ONLY, { SOME, 0, SOME, 8 } },
};

struct machine {
	uint32_t a, x, mem[BPF_MEMWORDS];
	const uint8_t *data; /* struct seccomp_data */
};

static int load(struct machine *m, const struct sock_filter *i)
{
	uint32_t *to = BPF_CLASS(i->code) == BPF_LDX ? &m->x : &m->a;

	switch (BPF_MODE(i->code)) {
	case BPF_IMM:
		*to = i->k;
		return 0;
	case BPF_LEN:
		*to = sizeof(struct seccomp_data);
		return 0;
	case BPF_MEM:
		if (i->k >= BPF_MEMWORDS)
			return -EINVAL;
		*to = m->mem[i->k];
		return 0;
	case BPF_ABS:
		if (i->k % 4 || i->k > sizeof(struct seccomp_data) - 4 || to != &m->a)
			return -EINVAL;
		memcpy(to, m->data + i->k, sizeof(*to));
		return 0;
	default:
		return -EINVAL;
	}
}

static int compute(struct machine *m, const struct sock_filter *i)
{
	uint32_t v = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		m->a += v;
		return 0;
	case BPF_SUB:
		m->a -= v;
		return 0;
	case BPF_MUL:
		m->a *= v;
		return 0;
	case BPF_DIV:
		/* a division by 0 ends the program with 0, which is KILL */
		if (!v)
			return -EDOM;
		m->a /= v;
		return 0;
	case BPF_OR:
		m->a |= v;
		return 0;
	case BPF_AND:
		m->a &= v;
		return 0;
	case BPF_XOR:
		m->a ^= v;
		return 0;
	case BPF_LSH:
		m->a = v < 32 ? m->a << v : 0;
		return 0;
	case BPF_RSH:
		m->a = v < 32 ? m->a >> v : 0;
		return 0;
	case BPF_NEG:
		m->a = 0U - m->a;
		return 0;
	default:
		return -EINVAL;
	}
}

/* How far to jump beyond the next instruction; negative for an unknown one. */
static int64_t jump(const struct machine *m, const struct sock_filter *i)
{
	uint32_t v = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return m->a == v ? i->jt : i->jf;
	case BPF_JGT:
		return m->a > v ? i->jt : i->jf;
	case BPF_JGE:
		return m->a >= v ? i->jt : i->jf;
	case BPF_JSET:
		return m->a & v ? i->jt : i->jf;
	default:
		return -1;
	}
}

static int store(struct machine *m, const struct sock_filter *i)
{
	if (i->k >= BPF_MEMWORDS)
		return -EINVAL;
	m->mem[i->k] = BPF_CLASS(i->code) == BPF_ST ? m->a : m->x;
	return 0;
}

/* One instruction; *pc moves on. 1: the program has returned *action. */
static int step(struct machine *m, const struct sock_filter *i, size_t *pc, uint32_t *action)
{
	int64_t by;

	(*pc)++;
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
	case BPF_LDX:
		return load(m, i);
	case BPF_ST:
	case BPF_STX:
		return store(m, i);
	case BPF_ALU:
		return compute(m, i);
	case BPF_JMP:
		by = jump(m, i);
		*pc += by > 0 ? (size_t)by : 0;
		return by < 0 ? -EINVAL : 0;
	case BPF_RET:
		*action = BPF_RVAL(i->code) == BPF_A ? m->a : i->k;
		return 1;
	default:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return 0;
	}
}

int seccomp_run(const struct sock_filter *f, size_t n, const struct seccomp_data *data,
		uint32_t *action)
{
	struct machine m = { .data = (const uint8_t *)data };
	size_t pc = 0;

	/* jumps only go forward: it ends after n steps at most */
	while (pc < n) {
		int rc = step(&m, &f[pc], &pc, action);

		if (rc == -EDOM) {
			*action = SECCOMP_RET_KILL_THREAD;
			return 0;
		}
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return -EINVAL;
}

static bool fails(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRACE;
}

/*
 * What a call would come to without us. TRAP raises SIGSYS, in whose handler, should there be one,
 * nobody expects our thread; NOTIFY asks a supervisor that does not know us. TRACE without a tracer
 * is an error like any other.
 */
static enum seccomp_harm harm_of(uint32_t action, unsigned flags)
{
	if (fails(action))
		return flags & MUST_WORK ? SECCOMP_FATAL_ERROR : SECCOMP_NO_HARM;
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG ? SECCOMP_NO_HARM
									: SECCOMP_KILLS;
}

static bool is_made(const struct payload_call *c, enum hm_mode mode, bool file)
{
	return (mode == HM_MODE_PROXY || !(c->flags & PROXY_ONLY)) &&
	       (file || !(c->flags & FILE_ONLY));
}

enum seccomp_harm seccomp_ask(const struct sock_filter *f, size_t n, enum hm_mode mode, bool file,
			      struct seccomp_call *out)
{
	uint32_t action = SECCOMP_RET_ALLOW;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct seccomp_data data = { .nr = (int)calls[i].nr, .arch = AUDIT_ARCH_X86_64 };
		enum seccomp_harm harm;

		if (!is_made(&calls[i], mode, file))
			continue;
		if ((calls[i].flags & INSTEAD) && !fails(action))
			continue;
		memcpy(data.args, calls[i].arg, sizeof(data.args));
		harm = seccomp_run(f, n, &data, &action) ? SECCOMP_KILLS
							 : harm_of(action, calls[i].flags);
		if (harm) {
			*out = (struct seccomp_call){ calls[i].name, calls[i].nr, harm };
			return harm;
		}
	}
	return SECCOMP_NO_HARM;
}

int seccomp_check(const struct tracee *t, enum hm_mode mode, bool file, struct seccomp_call *out)
{
	struct sock_filter *f = calloc(PATH_MAX_INSNS, sizeof(*f));
	int rc = f ? 0 : -ENOMEM;

	*out = (struct seccomp_call){ 0 };
	for (unsigned i = 0; rc == 0 && i < FILTERS_MAX; i++) {
		size_t n = 0;

		rc = tracee_filter(t, i, f, PATH_MAX_INSNS, &n);
		if (rc == -ENOENT) {
			/* that was the last */
			rc = 0;
			break;
		}
		if (rc == 0 && seccomp_ask(f, n, mode, file, out))
			rc = -EACCES;
	}
	free(f);
	return rc;
}
