// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_ENVIRON_H
#define HM_ENVIRON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/target.h"

/*
 * The environment that a process was started with (proc_pid_environ(5)): what it has set or unset
 * itself since is not seen. Only some names are of interest here, and their values may be secret:
 * nothing else is ever shown.
 */
struct environ {
	char *text; /* NAME=VALUE strings, each with its NUL */
	size_t len;
};
/* 0, or a negative errno (-EACCES without the right to trace it); then e is empty. Free it always.
 */
HM_MUST_CHECK int environ_read(const struct target *t, struct environ *e);
void environ_free(struct environ *e);
/* The value of the first NAME=VALUE, or NULL. Points into e. */
const char *environ_get(const struct environ *e, const char *name);

/*
 * One of GLIBC_TUNABLES' values: "glibc.malloc.arena_max" in "NAME=VALUE:NAME=VALUE". glibc takes
 * the last of several. -ENOENT if it is not there or no number (decimal, 0x hexadecimal, 0 octal).
 */
HM_MUST_CHECK int tunable_get(const char *tunables, const char *name, uint64_t *value);

/*
 * How many arenas the environment allows: glibc.malloc.arena_max of GLIBC_TUNABLES, which wins
 * whatever the order (elf/dl-tunables.c: the other one is only its alias), else MALLOC_ARENA_MAX.
 * *tunable says which. -ENOENT where neither is a number from 1 on; glibc passes over such a one.
 * Whether it is in force mp_ tells: glibc before 2.26 has no tunables, and mallopt changes it.
 */
HM_MUST_CHECK int arena_max_get(const struct environ *e, uint64_t *n, bool *tunable);

/* Go's GOGC: percent, -1 for "off"; -EINVAL if it is neither (Go then takes 100). */
HM_MUST_CHECK int gogc_parse(const char *text, int *percent);
/*
 * Go's GOMEMLIMIT: a number with B, KiB, MiB, GiB, TiB or nothing behind it, or "off" (UINT64_MAX).
 * -EINVAL otherwise (such a program does not start).
 */
HM_MUST_CHECK int gomemlimit_parse(const char *text, uint64_t *bytes);
#endif
