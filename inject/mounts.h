// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MOUNTS_H
#define HM_MOUNTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "target.h"

/* Devices of file systems that keep their files in memory (tmpfs, ramfs), as the target's mounts
 * say. */
#define MOUNTS_MAX 256
struct mounts {
	struct {
		uint32_t major, minor;
	} memory[MOUNTS_MAX];
	size_t n;
};

/* Pure: /proc/PID/mountinfo (proc(5)). Lines of another form, and more than MOUNTS_MAX, are passed
 * over. */
void mounts_parse(const char *text, struct mounts *out);
/* None at all if it cannot be read. */
void mounts_read(const struct target *t, struct mounts *out);
bool mounts_in_memory(const struct mounts *m, uint32_t major, uint32_t minor);
#endif
