// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PERMIT_H
#define HM_PERMIT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "target.h"

/*
 * Why the kernel refuses to let us look into a process: the rules of ptrace(2), "Ptrace access mode
 * checking", applied to what /proc says of both sides.
 */
struct permit {
	pid_t pid;
	char comm[64];
	/* ourselves */
	uid_t uid;
	gid_t gid;
	uint64_t cap_eff;
	int seccomp;
	bool initial_userns; /* our user namespace is the machine's first one */
	/* the process */
	uid_t t_uid[3]; /* real, effective, saved */
	gid_t t_gid[3];
	uint64_t t_cap_prm;
	bool t_undumpable;    /* its /proc files belong to root although it does not run as root */
	bool userns_known;    /* its user namespace could be read */
	bool same_userns;     /* meaningful if userns_known */
	int yama;	      /* kernel.yama.ptrace_scope, -1 if there is no yama */
	char security[96];    /* active security modules as the kernel lists them, "" unknown */
	bool ptrace_filtered; /* ptrace(2) itself is refused to us for any process */
};

HM_MUST_CHECK int permit_read(const struct target *t, struct permit *out);
/* Pure: names the cause that the facts prove in d, exit 4, or says that they prove none. */
void permit_cause(const struct permit *p, struct diag *d);
/* Both: fills d with exit 4 (exit 3 if the process is gone); returns -EPERM, or -ESRCH. */
int permit_explain(const struct target *t, struct diag *d);

/* kernel.yama.ptrace_scope, -1 if there is no yama. */
int permit_yama(void);
/* True if ptrace(2) is refused to us whatever the process: a seccomp filter on ourselves. */
bool permit_ptrace_filtered(pid_t pid);
/* True if we may ask for PTRACE_O_SUSPEND_SECCOMP (needs CAP_SYS_ADMIN in the first user namespace
 * and no seccomp filter on ourselves). */
bool permit_suspend_seccomp(const struct permit *p);
/* Inode of a namespace file, path relative to dirfd, following the link; 0 if it cannot be read. */
uint64_t permit_ns_inode(int dirfd, const char *path);
#endif
