// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_PERMIT_H
#define HM_PERMIT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag.h"
#include "ourselves.h"
#include "target.h"

/*
 * Why the kernel refuses to let us look into a process: the rules of ptrace(2), "Ptrace access mode
 * checking", applied to what /proc says of both sides.
 */

/* The user namespace of the process as seen from ours (user_namespaces(7), "Capabilities"): what we
 * may in ours we may in those below it, and nowhere else. */
enum userns_place {
	USERNS_UNKNOWN,
	USERNS_SAME,
	USERNS_BELOW,
	USERNS_OUTSIDE, /* above ours, or beside it */
};

struct permit {
	pid_t pid;
	char comm[64];
	/* ourselves */
	uid_t uid; /* real ones: PTRACE_MODE_REALCREDS */
	gid_t gid;
	uint64_t cap_eff, cap_prm, cap_bnd;
	int seccomp;
	bool no_new_privs;
	bool initial_userns;	 /* our user namespace is the machine's first one */
	uint64_t userns;	 /* inode of ours, 0 not known */
	const char *self_call;	 /* that a filter on ourselves forbids; NULL: none */
	enum self_call self_how; /* and how */
	char label[96];		 /* our security label, "" if there is none */
	/* the process */
	uid_t t_uid[3]; /* real, effective, saved */
	gid_t t_gid[3];
	uint64_t t_cap_prm;
	bool closed;	   /* to us are its /proc files that only their owner may read */
	bool t_undumpable; /* its /proc files belong to root although it does not run as root */
	enum userns_place place;
	uint64_t t_userns; /* inode of its user namespace, 0 not known */
	bool maps_differ;  /* it is another one, proven by its uid_map where that is all we see */
	bool owner_known;  /* below ours: the owner of the one directly below ours */
	uid_t owner;
	char t_label[96];
	/* the machine */
	int yama;	   /* kernel.yama.ptrace_scope, -1 if there is no yama */
	char security[96]; /* active security modules as the kernel lists them, "" unknown */
};

/* Reads all of it. The errno of reading /proc/PID/status; what else cannot be read stays unknown.
 */
HM_MUST_CHECK int permit_read(const struct target *t, struct permit *out);
/* Pure: names the cause that the facts prove in d, exit 4, or says that they prove none. */
void permit_cause(const struct permit *p, struct diag *d);
/* Pure: names the cause that calls need a file that we may not write to, exit 4. */
void permit_cause_files(const struct permit *p, struct diag *d);
/* Both: fills d with exit 4 (exit 3 if the process is gone); returns -EPERM, or -ESRCH. */
int permit_explain(const struct target *t, struct diag *d);
/* Pure: we hold this capability where the process is: in its user namespace. */
bool permit_has_cap(const struct permit *p, unsigned cap);

/* kernel.yama.ptrace_scope, -1 if there is no yama; the second form with another /proc/sys. */
int permit_yama(void);
int permit_yama_in(const char *sys);
/* True if we may ask for PTRACE_O_SUSPEND_SECCOMP (needs CAP_SYS_ADMIN in the first user namespace
 * and no seccomp filter on ourselves). */
bool permit_suspend_seccomp(const struct permit *p);
/* Inode of a namespace file, path relative to dirfd, following the link; 0 if it cannot be read. */
uint64_t permit_ns_inode(int dirfd, const char *path);
#endif
