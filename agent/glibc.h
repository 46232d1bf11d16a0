// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_GLIBC_H
#define HM_GLIBC_H
#include "process.h"

/* glibc's allocator by calls. */
/* malloc_info(0, FILE) through a FILE of our own; *xml is the caller's. */
HM_MUST_CHECK int glibc_malloc_info(struct process *p, const struct allocator *a, char **xml,
				    size_t *len, struct diag *d);
/* mallopt by name; facts in one table. */
struct mallopt_fact {
	const char *name;    /* "M_ARENA_MAX" */
	int param;	     /* the number mallopt takes */
	long min, max;	     /* accepted values */
	bool size;	     /* takes a size (512M) */
	const char *meaning; /* one line for help */
	const char *limit;   /* what it will not change, said after a success */
};
const struct mallopt_fact *mallopt_table(size_t *n);
const struct mallopt_fact *mallopt_find(const char *name); /* with or without M_, any case */
HM_MUST_CHECK int glibc_mallopt(struct process *p, const struct mallopt_fact *f, long value,
				int *rc, struct diag *d);
#endif
