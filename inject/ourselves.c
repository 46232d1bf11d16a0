// SPDX-License-Identifier: GPL-3.0-or-later
#include "ourselves.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cause.h"
#include "status.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/*
 * Calls that programs in general do not make and that filters therefore leave out. The arguments
 * are such that the kernel answers with an error before it does anything; a filter, which stands in
 * front of that, answers otherwise.
 */
static const struct {
	const char *name;
	long nr;
	long arg[6];
	bool needed; /* refused is an obstacle too: there is no other way */
} calls[] = {
	/* a process that we do not trace: ESRCH */
	{ "ptrace(2)", SYS_ptrace, { PTRACE_PEEKUSER, 1 }, true },
	/* unknown flags: EINVAL */
	{ "process_vm_readv(2)", SYS_process_vm_readv, { 1, 0, 0, 0, 0, 0x100 }, false },
	{ "process_vm_writev(2)", SYS_process_vm_writev, { 1, 0, 0, 0, 0, 0x100 }, false },
	{ "pidfd_open(2)", SYS_pidfd_open, { -1, 0 }, false },
	{ "openat2(2)", SYS_openat2, { -1, 0, 0, 0 }, false },
	{ "signalfd4(2)", SYS_signalfd4, { -1, 0, 0, 0 }, false },
	{ "memfd_create(2)", SYS_memfd_create, { 0, 0x8000 }, false },
};

static bool is_refusal(int err)
{
	return err == EPERM || err == ENOSYS || err == EACCES;
}

static enum self_call try(size_t i)
{
	const long *a = calls[i].arg;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long rc;

		/* its end leaves no core behind */
		prctl(PR_SET_DUMPABLE, 0);
		rc = syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);

		_exit(rc < 0 && is_refusal(errno));
	}
	if (pid < 0)
		return SELF_ALLOWED;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return SELF_ALLOWED;
	if (WIFSIGNALED(status))
		return SELF_KILLED;
	return WEXITSTATUS(status) ? SELF_REFUSED : SELF_ALLOWED;
}

enum self_call ourselves_obstacle(const char **name)
{
	struct proc_status st;

	*name = NULL;
	if (status_read(AT_FDCWD, "/proc/thread-self/status", &st) || !st.seccomp)
		return SELF_ALLOWED;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		enum self_call how = try(i);

		if (how == SELF_KILLED || (how == SELF_REFUSED && calls[i].needed)) {
			*name = calls[i].name;
			return how;
		}
	}
	return SELF_ALLOWED;
}

int ourselves_refused(const char *name, enum self_call how, struct diag *d)
{
	return cause_fail(d, -EPERM, CAUSE_SECCOMP_SELF,
			  how == SELF_KILLED ? "a seccomp filter would kill heapmedic itself for %s"
					     : "a seccomp filter on heapmedic itself refuses %s",
			  name);
}

int ourselves_check(struct diag *d)
{
	const char *name;
	enum self_call how = ourselves_obstacle(&name);

	return how == SELF_ALLOWED ? 0 : ourselves_refused(name, how, d);
}
