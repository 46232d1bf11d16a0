// SPDX-License-Identifier: GPL-3.0-or-later
#include "sigframe.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* Kernel ABI: arch/x86/include/uapi/asm/sigcontext.h and ucontext.h. */
struct kernel_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate;
	uint64_t reserved[8];
};

struct kernel_ucontext {
	uint64_t flags, link;
	uint64_t ss_sp;
	int32_t ss_flags, ss_pad;
	uint64_t ss_size;
	struct kernel_sigcontext mc;
	uint64_t sigmask;
};

struct kernel_rt_sigframe {
	uint64_t pretcode;
	struct kernel_ucontext uc;
	uint8_t siginfo[128];
};

_Static_assert(sizeof(struct kernel_sigcontext) == 256, "sigcontext");
_Static_assert(sizeof(struct kernel_rt_sigframe) == 440, "rt_sigframe");

enum {
	UC_FP_XSTATE = 1,
	UC_SIGCONTEXT_SS = 2,
	UC_STRICT_RESTORE_SS = 4,
	/* sigaltstack(2) refuses these flags, and rt_sigreturn then leaves the alternate stack as
	   it is */
	SS_FLAGS_INVALID = 0x7ffffff0,
	/* struct _fpx_sw_bytes in the last 48 bytes of the 512-byte legacy area */
	SW_OFFSET = 464,
	LEGACY_SIZE = 512,
	XSTATE_MIN = 576, /* legacy area and XSAVE header */
	XFEATURE_AMX_SHIFT = 17,
};
#define FP_XSTATE_MAGIC1 0x46505853U
#define FP_XSTATE_MAGIC2 0x46505845U
#define XFEATURES_AMX	 ((uint64_t)3 << XFEATURE_AMX_SHIFT)

struct fpx_sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size, padding[7];
};

static _Thread_local struct fpx_sw_bytes seen;

static void look_at_own_frame(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *uc = context;

	(void)sig;
	(void)si;
	memcpy(&seen, (const char *)uc->uc_mcontext.fpregs + SW_OFFSET, sizeof(seen));
}

int xsave_facts_read(struct xsave_facts *out)
{
	struct sigaction sa = { .sa_sigaction = look_at_own_frame, .sa_flags = SA_SIGINFO }, old;
	sigset_t unblock, mask;
	int rc;

	sigemptyset(&sa.sa_mask);
	sigemptyset(&unblock);
	sigaddset(&unblock, SIGURG);
	memset(&seen, 0, sizeof(seen));
	if (sigaction(SIGURG, &sa, &old))
		return -errno;
	pthread_sigmask(SIG_UNBLOCK, &unblock, &mask);
	rc = raise(SIGURG) ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGURG, &old, NULL);
	if (rc)
		return rc;
	if (seen.magic1 != FP_XSTATE_MAGIC1 || seen.xstate_size < XSTATE_MIN)
		return -ENOTSUP;
	out->xstate_size = seen.xstate_size;
	out->xfeatures = seen.xfeatures;
	return 0;
}

/* With AMX tiles in use the frame must hold them too, or rt_sigreturn would clear them. */
static void choose_size(const struct xsave_facts *facts, const uint8_t *xstate, size_t xlen,
			struct fpx_sw_bytes *sw)
{
	uint64_t in_use;

	memcpy(&in_use, xstate + LEGACY_SIZE, sizeof(in_use));
	memset(sw, 0, sizeof(*sw));
	sw->magic1 = FP_XSTATE_MAGIC1;
	sw->xfeatures = facts->xfeatures;
	sw->xstate_size = facts->xstate_size;
	if (in_use & XFEATURES_AMX) {
		sw->xfeatures |= XFEATURES_AMX;
		sw->xstate_size = (uint32_t)xlen;
	}
	sw->extended_size = sw->xstate_size + (uint32_t)sizeof(uint32_t);
}

static void fill_context(struct kernel_rt_sigframe *k, const arch_regs *r, uint64_t mask,
			 uint64_t fpstate)
{
	memset(k, 0, sizeof(*k));
	k->uc.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	k->uc.ss_flags = SS_FLAGS_INVALID;
	k->uc.sigmask = mask;
	k->uc.mc = (struct kernel_sigcontext){
		.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.di = r->rdi,
		.si = r->rsi,
		.bp = r->rbp,
		.bx = r->rbx,
		.dx = r->rdx,
		.ax = r->rax,
		.cx = r->rcx,
		.sp = r->rsp,
		.ip = r->rip,
		.flags = r->eflags,
		.cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss,
		.fpstate = fpstate,
	};
}

int sigframe_build(struct sigframe *f, uint64_t top, const arch_regs *regs, const void *xstate,
		   size_t xlen, uint64_t mask, uint64_t trampoline, const struct xsave_facts *facts)
{
	struct kernel_rt_sigframe k;
	struct fpx_sw_bytes sw;
	uint32_t magic2 = FP_XSTATE_MAGIC2;
	uint64_t fp;
	size_t copy;
	uint8_t *at;

	if (xlen < XSTATE_MIN)
		return -EINVAL;
	choose_size(facts, xstate, xlen, &sw);
	fp = (top - sw.extended_size) & ~(uint64_t)63;
	/* as at the entry of a function: (sp + 8) is a multiple of 16 */
	f->sp = ((fp - sizeof(k)) & ~(uint64_t)15) - 8;
	f->addr = f->sp;
	f->len = (size_t)(fp - f->sp) + sw.extended_size;
	if (f->len > sizeof(f->bytes))
		return -E2BIG;
	memset(f->bytes, 0, f->len);
	fill_context(&k, regs, mask, fp);
	k.pretcode = trampoline;
	memcpy(f->bytes, &k, sizeof(k));
	at = f->bytes + (fp - f->sp);
	copy = xlen < sw.xstate_size ? xlen : sw.xstate_size;
	memcpy(at, xstate, copy);
	memcpy(at + SW_OFFSET, &sw, sizeof(sw));
	memcpy(at + sw.xstate_size, &magic2, sizeof(magic2));
	return 0;
}
