// SPDX-License-Identifier: GPL-3.0-or-later
#include "seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* A thread may have many filters; the kernel bounds their total length (MAX_INSNS_PER_PATH). */
#define FILTERS_MAX    4096
#define PATH_MAX_INSNS 32768

/* What the payload and glibc around it call, with the first argument where filters look at it. */
static const struct payload_call {
	long nr;
	uint64_t arg0;
	bool proxy_only;
} calls[] = {
	{ SYS_mmap, 0, false },
	{ SYS_mprotect, 0, false },
	{ SYS_munmap, 0, false },
	{ SYS_rt_sigprocmask, 2, false },
	{ SYS_rt_sigreturn, 0, false },
	{ SYS_prctl, 0x53564d41, false }, /* PR_SET_VMA */
	{ SYS_getpid, 0, false },
	{ SYS_gettid, 0, false },
	{ SYS_tgkill, 0, false },
	{ SYS_clock_gettime, 1, false },
	{ SYS_madvise, 0, false },
	{ SYS_prctl, 15, true }, /* PR_SET_NAME */
	{ SYS_close_range, 0, true },
	{ SYS_memfd_create, 0, true },
	{ SYS_fcntl, 0, true },
	{ SYS_dup3, 0, true },
	{ SYS_pipe2, 0, true },
	{ SYS_close, 0, true },
	{ SYS_poll, 0, true },
	{ SYS_read, 0, true },
	{ SYS_write, 0, true },
	{ SYS_rseq, 0, true },
	{ SYS_set_robust_list, 0, true },
	{ SYS_restart_syscall, 0, true },
	{ SYS_exit, 0, true },
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

static bool kills(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	/* TRAP raises SIGSYS; NOTIFY asks a supervisor that does not know us */
	return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
	       action == SECCOMP_RET_TRAP || action == SECCOMP_RET_USER_NOTIF;
}

static int check_filter(const struct sock_filter *f, size_t n, enum hm_mode mode, long *nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct seccomp_data data = { .nr = (int)calls[i].nr,
					     .arch = AUDIT_ARCH_X86_64,
					     .args = { calls[i].arg0 } };
		uint32_t action = SECCOMP_RET_ALLOW;

		if (calls[i].proxy_only && mode != HM_MODE_PROXY)
			continue;
		if (seccomp_run(f, n, &data, &action) || kills(action)) {
			*nr = calls[i].nr;
			return -EACCES;
		}
	}
	return 0;
}

int seccomp_check(const struct tracee *t, enum hm_mode mode, long *nr)
{
	struct sock_filter *f = calloc(PATH_MAX_INSNS, sizeof(*f));
	int rc = f ? 0 : -ENOMEM;

	for (unsigned i = 0; rc == 0 && i < FILTERS_MAX; i++) {
		size_t n = 0;

		rc = tracee_filter(t, i, f, PATH_MAX_INSNS, &n);
		if (rc == -ENOENT) {
			/* that was the last */
			rc = 0;
			break;
		}
		if (rc == 0)
			rc = check_filter(f, n, mode, nr);
	}
	free(f);
	return rc;
}
