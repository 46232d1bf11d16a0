// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SIGFRAME_H
#define HM_SIGFRAME_H
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_64.h"
#include "diag.h"

/*
 * The dead man's frame: an rt_sigframe as the kernel builds it for a signal handler
 * (arch/x86/kernel/signal_64.c). The word at its start is the trampoline; a hijacked function that
 * returns runs rt_sigreturn(2), which gives the thread the state written here, whether or not we
 * are still alive.
 */

/* Size and feature facts of the FPU part, as this kernel writes them for a process without AMX
 * permission. */
struct xsave_facts {
	uint32_t xstate_size; /* without the trailing magic */
	uint64_t xfeatures;
};
/* Learns them from a signal raised on the calling thread. -ENOTSUP where the kernel uses no XSAVE.
 */
HM_MUST_CHECK int xsave_facts_read(struct xsave_facts *out);

#define SIGFRAME_MAX ((size_t)16 * 1024)

struct sigframe {
	uint64_t sp;   /* stack pointer at the entry of a hijacked function: address of the return
			  address */
	uint64_t addr; /* where bytes go */
	size_t len;
	uint8_t bytes[SIGFRAME_MAX];
};

/*
 * Pure: builds the frame for a stack whose free part ends below top. regs are the ones to resume
 * with (no restart code in them), xstate the regset blob of xlen bytes. -E2BIG if it does not fit,
 * -EINVAL for a blob too short.
 */
HM_MUST_CHECK int sigframe_build(struct sigframe *f, uint64_t top, const arch_regs *regs,
				 const void *xstate, size_t xlen, uint64_t mask,
				 uint64_t trampoline, const struct xsave_facts *facts);
#endif
