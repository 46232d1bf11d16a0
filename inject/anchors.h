// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ANCHORS_H
#define HM_ANCHORS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules.h"
#include "payload/abi.h"

/* Addresses in the target's libc that injection stands on. All found before a thread is held. */
struct anchors {
	uint64_t trampoline;  /* arch_trampoline: libc's sa_restorer */
	uint64_t syscall_ret; /* arch_syscall_ret */
	uint64_t errno_location, munmap;
	/* 0 where the target has no threads library (glibc before 2.34): then only direct calls are
	 * possible */
	uint64_t attr_init, attr_setstack, attr_setdetachstate, attr_destroy, create;
	uint64_t malloc, free; /* for the end of a proxy; 0 where it needs neither */
	size_t tls_size; /* what a new thread's stack must hold beside the stack: all modules' TLS
			  */
};

HM_MUST_CHECK int anchors_find(const struct modules *mods, struct anchors *out, struct diag *d);
bool anchors_can_thread(const struct anchors *a);
#endif
