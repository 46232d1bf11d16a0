// SPDX-License-Identifier: GPL-3.0-or-later
#include "memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "descriptor.h"

#define CLOSE_ON_EXEC 1 /* MFD_CLOEXEC */

_Static_assert(sizeof(MEMFILE_PATH) - sizeof(HM_NAME) == MEMFILE_NAME_AT, "name");

void memfile_init(struct memfile *m, uint64_t path)
{
	memset(m, 0, sizeof(*m));
	m->path = path;
	m->fd = -1;
}

int memfile_request(const struct memfile *m)
{
	return m->state == MEMFILE_DONE ? PTRACE_CONT : PTRACE_SYSCALL;
}

/* At the entry of a call its result is not there yet, and stands as -ENOSYS (entry_64.S). */
static bool is_asked_for(const struct memfile *m, const arch_regs *r)
{
	if (arch_result(r) != -ENOSYS)
		return false;
	switch (arch_syscall(r)) {
	case SYS_creat:
	case SYS_open:
		return arch_syscall_arg(r, 0) == m->path;
	case SYS_openat:
		return arch_syscall_arg(r, 1) == m->path;
	default:
		return false;
	}
}

static int replace(struct memfile *m, const struct tracee *th, arch_regs *r)
{
	const uint64_t arg[6] = { m->path + MEMFILE_NAME_AT, CLOSE_ON_EXEC };
	int rc;

	for (unsigned i = 0; i < 6; i++)
		m->arg[i] = arch_syscall_arg(r, i);
	arch_replace_syscall(r, SYS_memfd_create, arg);
	rc = tracee_set_regs(th, r);
	if (rc == 0)
		m->state = MEMFILE_ASKED;
	return rc;
}

/* Its exit: a system call leaves all registers but two alone, and compilers rely on it. */
static int take(struct memfile *m, const struct target *t, const struct tracee *th, arch_regs *r)
{
	int64_t fd = arch_result(r);

	m->state = MEMFILE_DONE;
	arch_set_syscall_args(r, m->arg);
	if (fd < 0 || fd > INT32_MAX)
		m->err = fd < 0 && fd >= -4095 ? (int)fd : -EPROTO;
	else
		m->err = descriptor_open(t, th->tid, (int)fd, DESCRIPTOR_MEMORY, O_RDONLY, &m->fd);
	return tracee_set_regs(th, r);
}

int memfile_stop(struct memfile *m, const struct target *t, const struct tracee *th)
{
	arch_regs r;
	int rc;

	if (m->state == MEMFILE_DONE)
		return 0;
	rc = tracee_regs(th, &r);
	if (rc)
		return rc;
	if (m->state == MEMFILE_ASKED && arch_syscall(&r) == SYS_memfd_create)
		return take(m, t, th, &r);
	return is_asked_for(m, &r) ? replace(m, th, &r) : 0;
}

void memfile_close(struct memfile *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
