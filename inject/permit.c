// SPDX-License-Identifier: GPL-3.0-or-later
#include "permit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

/* The inode of the first user namespace is a constant of the kernel (PROC_USER_INIT_INO). */
#define USERNS_INIT_INO 0xEFFFFFFDU

static bool has_cap(uint64_t set, unsigned cap)
{
	return set >> cap & 1;
}

int permit_yama(void)
{
	char *text;
	size_t len;
	int v = -1;

	if (proc_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", 64, &text, &len))
		return -1;
	if (len && text[0] >= '0' && text[0] <= '9')
		v = text[0] - '0';
	free(text);
	return v;
}

bool permit_ptrace_filtered(pid_t pid)
{
	/*
	 * PEEKUSER on a process that we do not trace is answered with ESRCH before anything else
	 * is looked at; any other error comes from a filter in front of the call.
	 */
	errno = 0;
	if (ptrace(PTRACE_PEEKUSER, pid, NULL, NULL) == -1 && errno != 0)
		return errno == EPERM || errno == ENOSYS || errno == EACCES;
	return false;
}

bool permit_suspend_seccomp(const struct permit *p)
{
	return has_cap(p->cap_eff, CAP_SYS_ADMIN) && p->initial_userns && p->seccomp == 0;
}

uint64_t permit_ns_inode(int dirfd, const char *path)
{
	struct stat st;

	return fstatat(dirfd, path, &st, 0) ? 0 : (uint64_t)st.st_ino;
}

static void read_self(struct permit *p)
{
	struct proc_status st;

	p->uid = getuid();
	p->gid = getgid();
	p->initial_userns = permit_ns_inode(AT_FDCWD, "/proc/self/ns/user") == USERNS_INIT_INO;
	if (status_read(AT_FDCWD, "/proc/thread-self/status", &st) == 0) {
		p->cap_eff = st.cap_eff;
		p->seccomp = st.seccomp;
	}
}

static void read_security(struct permit *p)
{
	char *text;
	size_t len;

	if (proc_read(AT_FDCWD, "/sys/kernel/security/lsm", 4096, &text, &len))
		return;
	len = strcspn(text, "\n");
	escape_copy(p->security, sizeof(p->security), text, len);
	free(text);
}

int permit_read(const struct target *t, struct permit *out)
{
	struct proc_status st;
	struct stat file;
	uint64_t theirs, ours;
	int r;

	memset(out, 0, sizeof(*out));
	out->pid = t->pid;
	memcpy(out->comm, t->comm, sizeof(out->comm));
	r = status_read(t->procfd, "status", &st);
	if (r)
		return r;
	read_self(out);
	for (int i = 0; i < 3; i++) {
		out->t_uid[i] = st.uid[i];
		out->t_gid[i] = st.gid[i];
	}
	out->t_cap_prm = st.cap_prm;
	/* files of a process that is not dumpable belong to root (proc(5), /proc/PID) */
	if (fstatat(t->procfd, "status", &file, 0) == 0)
		out->t_undumpable = st.uid[1] != 0 && file.st_uid != st.uid[1];
	theirs = permit_ns_inode(t->procfd, "ns/user");
	ours = permit_ns_inode(AT_FDCWD, "/proc/self/ns/user");
	out->userns_known = theirs && ours;
	out->same_userns = theirs == ours;
	out->yama = permit_yama();
	out->ptrace_filtered = permit_ptrace_filtered(t->pid);
	read_security(out);
	return 0;
}

#define HINT_ROOT                                                                                  \
	"run it as root with CAP_SYS_PTRACE: sudo, nsenter from the host, or "                     \
	"kubectl debug --profile=sysadmin"

/* We hold the capability that overrides users, dumpable and yama 1 and 2, and are refused still. */
static void cause_with_cap(const struct permit *p, struct diag *d)
{
	if (p->yama == 3)
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "yama",
			  "3 cannot be lowered without a restart of the machine",
			  "kernel.yama.ptrace_scope is 3: nobody may attach to process %d (%s)",
			  (int)p->pid, p->comm);
	else if (p->userns_known && !p->same_userns && !p->initial_userns)
		diag_fail(
			d, -EPERM, HM_NOT_PERMITTED, "userns",
			"run it in the user namespace of the process or from the host",
			"process %d (%s) is in another user namespace: CAP_SYS_PTRACE counts only "
			"in ours and below",
			(int)p->pid, p->comm);
	else if (!p->initial_userns)
		diag_fail(
			d, -EPERM, HM_NOT_PERMITTED, "userns",
			"run it from the host or in the user namespace of the process",
			"the kernel refuses access to process %d (%s); we are in a user namespace, "
			"where CAP_SYS_PTRACE counts only for processes of it",
			(int)p->pid, p->comm);
	else
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "security-module",
			  "look for a denial in the kernel log (AppArmor, SELinux, a BPF module)",
			  "the kernel refuses access to process %d (%s) although we have "
			  "CAP_SYS_PTRACE; security modules: %s",
			  (int)p->pid, p->comm, p->security[0] ? p->security : "unknown");
}

static bool ids_match(const struct permit *p)
{
	for (int i = 0; i < 3; i++) {
		if (p->t_uid[i] != p->uid || p->t_gid[i] != p->gid)
			return false;
	}
	return true;
}

static void cause_ids(const struct permit *p, struct diag *d)
{
	for (int i = 0; i < 3; i++) {
		if (p->t_uid[i] == p->uid)
			continue;
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "other-user", HINT_ROOT,
			  "process %d (%s) has the uids %u %u %u (real, effective, saved), "
			  "we run as uid %u without CAP_SYS_PTRACE",
			  (int)p->pid, p->comm, p->t_uid[0], p->t_uid[1], p->t_uid[2], p->uid);
		return;
	}
	diag_fail(d, -EPERM, HM_NOT_PERMITTED, "other-group", HINT_ROOT,
		  "process %d (%s) has the gids %u %u %u (real, effective, saved), we run "
		  "as gid %u without CAP_SYS_PTRACE",
		  (int)p->pid, p->comm, p->t_gid[0], p->t_gid[1], p->t_gid[2], p->gid);
}

/* The checks in the kernel's own order, without CAP_SYS_PTRACE. */
static void cause_without_cap(const struct permit *p, struct diag *d)
{
	if (!ids_match(p))
		cause_ids(p, d);
	else if (p->t_undumpable)
		diag_fail(
			d, -EPERM, HM_NOT_PERMITTED, "not-dumpable", HINT_ROOT,
			"process %d (%s) is not dumpable (it changed its user, or its program file "
			"is set-user-ID or unreadable) and we lack CAP_SYS_PTRACE",
			(int)p->pid, p->comm);
	else if (p->t_cap_prm & ~p->cap_eff)
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "capabilities", HINT_ROOT,
			  "process %d (%s) has capabilities that we lack (0x%llx) and we lack "
			  "CAP_SYS_PTRACE",
			  (int)p->pid, p->comm, (unsigned long long)(p->t_cap_prm & ~p->cap_eff));
	else if (p->userns_known && !p->same_userns)
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "userns", HINT_ROOT,
			  "process %d (%s) is in another user namespace and we lack CAP_SYS_PTRACE",
			  (int)p->pid, p->comm);
	else if (p->yama >= 1)
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "yama", HINT_ROOT,
			  "kernel.yama.ptrace_scope is %d: %s may attach to process %d (%s)",
			  p->yama,
			  p->yama == 1	 ? "only a parent or CAP_SYS_PTRACE"
			  : p->yama == 2 ? "only CAP_SYS_PTRACE"
					 : "nobody",
			  (int)p->pid, p->comm);
	else
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "security-module", HINT_ROOT,
			  "the kernel refuses access to process %d (%s) although users, "
			  "capabilities and the dumpable flag allow it; security modules: %s",
			  (int)p->pid, p->comm, p->security[0] ? p->security : "unknown");
}

void permit_cause(const struct permit *p, struct diag *d)
{
	if (p->ptrace_filtered)
		diag_fail(d, -EPERM, HM_NOT_PERMITTED, "seccomp-self",
			  "run it without a seccomp profile (in Kubernetes: kubectl debug "
			  "--profile=sysadmin; docker: --security-opt seccomp=unconfined)",
			  "ptrace(2) is refused to heapmedic itself (its seccomp mode is %d)",
			  p->seccomp);
	else if (has_cap(p->cap_eff, CAP_SYS_PTRACE))
		cause_with_cap(p, d);
	else
		cause_without_cap(p, d);
}

int permit_explain(const struct target *t, struct diag *d)
{
	struct permit p;

	if (permit_read(t, &p))
		return target_gone(t, d);
	permit_cause(&p, d);
	return -EPERM;
}
