// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PREFLIGHT_H
#define HM_PREFLIGHT_H
#include <stdbool.h>

#include "modules.h"
#include "target.h"
#include "threads.h"

/* Can we attach, can we inject, and if not the one precise cause. Nothing is held. */
struct preflight {
	bool attachable;   /* the kernel would let us ptrace it and read its memory */
	bool injectable;   /* calls can be made in it */
	struct diag cause; /* filled when one of the above is false; exit 4, 5, 6 or 3 */
	struct proc_status status;
	bool is_64bit;
	char arch[16]; /* "x86_64", "i386", "x32" or "unknown" */
	int yama;      /* kernel.yama.ptrace_scope, -1 if there is no yama */
	bool other_pidns, other_mntns, other_userns;
};

/*
 * All three return with nothing stopped, attached or left behind. preflight_run returns 0 whatever
 * it finds: a target that is gone is a cause (exit 3) like the others. Only -ENOMEM and the like
 * are errors of its own; cause is then filled too.
 */
/* Before modules are known: permissions, architecture, stopped, traced, zombie, seccomp, shadow
 * stack. */
HM_MUST_CHECK int preflight_run(const struct target *t, struct preflight *out);
/* Adds what needs modules: no libc, or none yet, musl, static without symbols. Changes injectable
 * and cause. */
void preflight_modules(struct preflight *p, const struct modules *mods);
/* Does the kernel let us attach right now? Then an EPERM a moment ago came from what the process
 * was doing: execve(2), or its end. */
bool preflight_may_attach(const struct target *t);
/* The precise cause of an EPERM from ptrace or process_vm_readv on t: capability, uid, yama,
 * dumpable, user ns, LSM. */
void preflight_explain_eperm(const struct target *t, struct diag *d);
#endif
