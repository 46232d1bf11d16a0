// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ENDING_H
#define HM_ENDING_H
#include <stdbool.h>
#include <stddef.h>

#include "target.h"

/*
 * How a process that has ended did: its wait status (wait(2)), which belongs to its parent. The
 * kernel tells whoever holds its pidfd once the parent has looked (PIDFD_INFO_EXIT, Linux 6.15),
 * and before that who may trace it (field 52 of /proc/PID/stat, proc(5)). False: neither does, or
 * it has not ended.
 */
bool ending_status(const struct target *t, int *status);
/* Pure: "has exited", "has exited with code 3", "was killed by signal 9 (SIGKILL)"; status NULL:
 * not known. buf is returned. */
const char *ending_text(const int *status, char *buf, size_t size);
#endif
