// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_SAFEPOINT_H
#define HM_SAFEPOINT_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/x86_64.h"
#include "maps.h"
#include "modules.h"
#include "pages.h"
#include "unwind.h"

/*
 * May a call be made on this stopped thread? The danger is the thread's own stack: if the
 * allocator, the loader or thread creation is in the middle of something there, a call would find
 * its data half changed and its locks held by ourselves. Everything that is needed is prepared
 * before the thread is held.
 */
struct safepoint {
	pid_t pid;
	pid_t tid;
	const struct maps *maps;
	const struct pages *pages; /* what was never touched is not read; NULL: it is */
	const struct code_map *code;
	struct unwinder *unwinder;
	unsigned forbid;   /* enum code_kind bits that must not be on the stack */
	size_t need;	   /* bytes of free stack below the red zone */
	uint8_t *buf;	   /* SAFEPOINT_BUF bytes of scratch */
	char reason[160];  /* out: why not */
	const char *why;   /* out: the same as static text, without details; NULL for none */
	uint64_t stack_lo; /* out: the mapping of the stack */
	uint64_t stack_hi; /* out: end of what was scanned */
};
#define SAFEPOINT_BUF ((size_t)256 * 1024)

/* 0: safe. -EAGAIN: not here, not now; reason says why. Other errors: memory could not be read. */
HM_MUST_CHECK int safepoint_check(struct safepoint *s, const arch_regs *regs);

/*
 * The same look at a sleeping thread that is not held, by what /proc says of it: sp, pc, and tp
 * where its thread descriptor was found (0 for the main thread). Fills the unwinder's caches, so
 * that the look while it is held costs little. -EAGAIN if it is certainly not at a safe point; 0 if
 * it may be.
 */
HM_MUST_CHECK int safepoint_preview(struct safepoint *s, uint64_t sp, uint64_t pc, uint64_t tp);
#endif
