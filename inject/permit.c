// SPDX-License-Identifier: GPL-3.0-or-later
#include "permit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cause.h"
#include "userns.h"

static bool has_cap(uint64_t set, unsigned cap)
{
	return set >> cap & 1;
}

/* ---- reading */

int permit_yama_in(const char *sys)
{
	char path[256], *text;
	size_t len;
	int v = -1;

	snprintf(path, sizeof(path), "%s/kernel/yama/ptrace_scope", sys);
	if (proc_read(AT_FDCWD, path, 64, &text, &len))
		return -1;
	if (len && text[0] >= '0' && text[0] <= '9')
		v = text[0] - '0';
	free(text);
	return v;
}

int permit_yama(void)
{
	return permit_yama_in("/proc/sys");
}

static void read_self(struct permit *p)
{
	struct proc_status st;

	p->uid = getuid();
	p->gid = getgid();
	if (status_read(AT_FDCWD, "/proc/thread-self/status", &st))
		return;
	p->cap_eff = st.cap_eff;
	p->cap_prm = st.cap_prm;
	p->cap_bnd = st.cap_bnd;
	p->seccomp = st.seccomp;
	p->no_new_privs = st.no_new_privs;
	p->self_how = ourselves_obstacle(&p->self_call);
}

/* One line of a file, escaped; "" if it cannot be read. */
static void read_word(int dirfd, const char *path, char *buf, size_t size)
{
	char *text;
	size_t len;

	buf[0] = '\0';
	if (proc_read(dirfd, path, 4096, &text, &len))
		return;
	escape_copy(buf, size, text, strnlen(text, strcspn(text, "\n")));
	free(text);
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

int permit_read(const struct target *t, struct permit *out)
{
	struct proc_status st;
	struct stat file;
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
	/* CAP_SYS_PTRACE passes ptrace's check, not that of a file's mode, which comes before */
	out->closed = faccessat(t->procfd, "auxv", R_OK, AT_EACCESS) && errno == EACCES;
	userns_read(t, out);
	out->yama = permit_yama();
	read_word(AT_FDCWD, "/sys/kernel/security/lsm", out->security, sizeof(out->security));
	read_word(AT_FDCWD, "/proc/self/attr/current", out->label, sizeof(out->label));
	read_word(t->procfd, "attr/current", out->t_label, sizeof(out->t_label));
	return 0;
}

/* ---- explaining */

bool permit_has_cap(const struct permit *p, unsigned cap)
{
	if (p->place == USERNS_BELOW && p->owner_known && p->owner == p->uid)
		return true;
	if (p->place == USERNS_OUTSIDE || (p->place == USERNS_UNKNOWN && !p->initial_userns))
		return false;
	return has_cap(p->cap_eff, cap);
}

/* "uid 0 without CAP_SYS_PTRACE", and why that cannot be had so easily. */
static const char *describe_self(const struct permit *p, char buf[160])
{
	const char *more = "";

	if (!has_cap(p->cap_bnd, CAP_SYS_PTRACE))
		more = " (it is not in our bounding set: no setuid program gives it back)";
	else if (p->no_new_privs)
		more = " (no_new_privs is set: sudo gives nothing here)";
	if (has_cap(p->cap_eff, CAP_SYS_PTRACE))
		snprintf(buf, 160, "uid %u gid %u, whose CAP_SYS_PTRACE does not count there",
			 p->uid, p->gid);
	else
		snprintf(buf, 160, "uid %u gid %u without CAP_SYS_PTRACE%s", p->uid, p->gid, more);
	return buf;
}

static void cause_userns(const struct permit *p, struct diag *d)
{
	char self[160], number[32] = "";
	const char *where = p->place == USERNS_OUTSIDE ? "above ours or beside it"
			    : p->place == USERNS_BELOW ? "below ours"
			    : p->maps_differ	       ? "another than ours"
						       : "not to be seen from here";

	if (p->t_userns)
		snprintf(number, sizeof(number), "%llu, ", (unsigned long long)p->t_userns);
	cause_fail(d, -EPERM, CAUSE_USERNS,
		   "the user namespace of process %d (%s) is %s (%sours is %llu): there we are %s",
		   (int)p->pid, p->comm, where, number, (unsigned long long)p->userns,
		   describe_self(p, self));
}

static void cause_lsm(const struct permit *p, struct diag *d)
{
	cause_fail(d, -EPERM, CAUSE_LSM,
		   "the kernel refuses access to process %d (%s) although users, capabilities and "
		   "the dumpable flag allow it; security modules: %s%s%s%s%s",
		   (int)p->pid, p->comm, p->security[0] ? p->security : "unknown",
		   p->t_label[0] ? "; its label: " : "", p->t_label, p->label[0] ? "; ours: " : "",
		   p->label);
}

void permit_cause_files(const struct permit *p, struct diag *d)
{
	cause_fail(
		d, -EPERM, CAUSE_FILES,
		"process %d (%s) runs as uid %u, and uid %u without CAP_DAC_OVERRIDE may not open "
		"its files in /proc%s, which CAP_SYS_PTRACE alone does not change",
		(int)p->pid, p->comm, p->t_uid[1], p->uid, p->closed ? "" : " for writing");
}

/* We hold the capability that overrides users, dumpable and yama 1 and 2, and are refused still. */
static void cause_with_cap(const struct permit *p, struct diag *d)
{
	if (p->yama == 3)
		cause_fail(d, -EPERM, CAUSE_YAMA_3,
			   "kernel.yama.ptrace_scope is 3: nobody may attach to process %d (%s)",
			   (int)p->pid, p->comm);
	else if (p->closed)
		permit_cause_files(p, d);
	else
		cause_lsm(p, d);
}

static bool uids_match(const struct permit *p)
{
	return p->t_uid[0] == p->uid && p->t_uid[1] == p->uid && p->t_uid[2] == p->uid;
}

static bool gids_match(const struct permit *p)
{
	return p->t_gid[0] == p->gid && p->t_gid[1] == p->gid && p->t_gid[2] == p->gid;
}

static void cause_yama(const struct permit *p, struct diag *d)
{
	const char *who = p->yama == 1	 ? "only a parent or CAP_SYS_PTRACE"
			  : p->yama == 2 ? "only CAP_SYS_PTRACE"
					 : "nobody";

	cause_fail(d, -EPERM, p->yama == 3 ? CAUSE_YAMA_3 : CAUSE_YAMA,
		   "kernel.yama.ptrace_scope is %d: %s may attach to process %d (%s), and we run "
		   "as uid %u without it",
		   p->yama, who, (int)p->pid, p->comm, p->uid);
}

/* The capabilities in set, as capabilities(7) calls them; as many as there is room for. */
static void name_capabilities(uint64_t set, char *buf, size_t size)
{
	static const char *const names[] = {
		"CHOWN",
		"DAC_OVERRIDE",
		"DAC_READ_SEARCH",
		"FOWNER",
		"FSETID",
		"KILL",
		"SETGID",
		"SETUID",
		"SETPCAP",
		"LINUX_IMMUTABLE",
		"NET_BIND_SERVICE",
		"NET_BROADCAST",
		"NET_ADMIN",
		"NET_RAW",
		"IPC_LOCK",
		"IPC_OWNER",
		"SYS_MODULE",
		"SYS_RAWIO",
		"SYS_CHROOT",
		"SYS_PTRACE",
		"SYS_PACCT",
		"SYS_ADMIN",
		"SYS_BOOT",
		"SYS_NICE",
		"SYS_RESOURCE",
		"SYS_TIME",
		"SYS_TTY_CONFIG",
		"MKNOD",
		"LEASE",
		"AUDIT_WRITE",
		"AUDIT_CONTROL",
		"SETFCAP",
		"MAC_OVERRIDE",
		"MAC_ADMIN",
		"SYSLOG",
		"WAKE_ALARM",
		"BLOCK_SUSPEND",
		"AUDIT_READ",
		"PERFMON",
		"BPF",
		"CHECKPOINT_RESTORE",
	};
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < 64 && used < size; i++) {
		if (!has_cap(set, i))
			continue;
		if (i < sizeof(names) / sizeof(*names))
			used += (size_t)snprintf(buf + used, size - used, "%sCAP_%s",
						 used ? " " : "", names[i]);
		else
			used += (size_t)snprintf(buf + used, size - used, "%s%u", used ? " " : "",
						 i);
	}
}

static void cause_capabilities(const struct permit *p, struct diag *d)
{
	uint64_t lacking = p->t_cap_prm & ~p->cap_prm;
	char self[160], names[128];

	name_capabilities(lacking, names, sizeof(names));
	cause_fail(d, -EPERM, CAUSE_CAPABILITIES,
		   "process %d (%s) has capabilities that we lack (0x%llx: %s), and we are %s",
		   (int)p->pid, p->comm, (unsigned long long)lacking, names,
		   describe_self(p, self));
}

/* The checks in the kernel's own order (__ptrace_may_access), without CAP_SYS_PTRACE there. */
static void cause_without_cap(const struct permit *p, struct diag *d)
{
	bool other = p->place == USERNS_OUTSIDE || p->place == USERNS_BELOW || p->maps_differ;
	char self[160];

	if (has_cap(p->cap_eff, CAP_SYS_PTRACE) && p->place != USERNS_SAME)
		cause_userns(p, d);
	else if (!uids_match(p))
		cause_fail(d, -EPERM, CAUSE_OTHER_USER,
			   "process %d (%s) has the uids %u %u %u (real, effective, saved), we "
			   "are %s",
			   (int)p->pid, p->comm, p->t_uid[0], p->t_uid[1], p->t_uid[2],
			   describe_self(p, self));
	else if (!gids_match(p))
		cause_fail(d, -EPERM, CAUSE_OTHER_GROUP,
			   "process %d (%s) has the gids %u %u %u (real, effective, saved), we "
			   "are %s",
			   (int)p->pid, p->comm, p->t_gid[0], p->t_gid[1], p->t_gid[2],
			   describe_self(p, self));
	else if (p->t_undumpable)
		cause_fail(d, -EPERM, CAUSE_NOT_DUMPABLE,
			   "process %d (%s) is not dumpable (it changed its user, or its program "
			   "file is set-user-ID or unreadable), and we are %s",
			   (int)p->pid, p->comm, describe_self(p, self));
	else if (other)
		cause_userns(p, d);
	else if (p->t_cap_prm & ~p->cap_prm)
		cause_capabilities(p, d);
	else if (p->yama >= 1)
		cause_yama(p, d);
	else
		cause_lsm(p, d);
}

void permit_cause(const struct permit *p, struct diag *d)
{
	if (p->self_call)
		(void)ourselves_refused(p->self_call, p->self_how, d);
	else if (permit_has_cap(p, CAP_SYS_PTRACE))
		cause_with_cap(p, d);
	else
		cause_without_cap(p, d);
}

int permit_explain(const struct target *t, struct diag *d)
{
	struct permit p;
	int rc = permit_read(t, &p);

	if (rc)
		return target_unreadable(t, "/status", rc, d);
	permit_cause(&p, d);
	return -EPERM;
}
