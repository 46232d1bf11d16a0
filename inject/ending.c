// SPDX-License-Identifier: GPL-3.0-or-later
#include "ending.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "status.h"

/* linux/pidfd.h of Linux 6.15, as far as its first form goes; older headers have none of it. */
struct info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define INFO_EXIT UINT64_C(8)
#define GET_INFO  _IOWR(0xff, 11, struct info)

static bool by_pidfd(int pidfd, int *status)
{
	struct info info = { .mask = INFO_EXIT };

	_Static_assert(sizeof(info) == 64, "PIDFD_INFO_SIZE_VER0");
	if (pidfd < 0 || ioctl(pidfd, GET_INFO, &info) || !(info.mask & INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

/* The directory is that of the process itself, whoever has its number now. */
static bool by_stat(int procfd, int *status)
{
	char *text, state = '?';
	size_t len;
	bool known;

	if (proc_read(procfd, "stat", 16384, &text, &len))
		return false;
	known = stat_parse(text, &state, NULL, NULL) == 0 && (state == 'Z' || state == 'X') &&
		stat_exit_code(text, status) == 0;
	free(text);
	return known;
}

bool ending_status(const struct target *t, int *status)
{
	return by_pidfd(t->pidfd, status) || by_stat(t->procfd, status);
}

const char *ending_text(const int *status, char *buf, size_t size)
{
	const char *name = status && WIFSIGNALED(*status) ? sigabbrev_np(WTERMSIG(*status)) : NULL;

	if (!status)
		snprintf(buf, size, "has exited");
	else if (name)
		snprintf(buf, size, "was killed by signal %d (SIG%s)", WTERMSIG(*status), name);
	else if (WIFSIGNALED(*status))
		snprintf(buf, size, "was killed by signal %d", WTERMSIG(*status));
	else
		snprintf(buf, size, "has exited with code %d", WEXITSTATUS(*status));
	return buf;
}
