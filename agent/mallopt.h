// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MALLOPT_H
#define HM_MALLOPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/* The parameters of glibc's mallopt(3), facts in one table. Pure: the call is glibc_mallopt. */
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
/* Text to value: a size where the fact takes one (or -1 where that is accepted). Exit 2 if it is
 * none, or outside of min and max. */
HM_MUST_CHECK int mallopt_value_parse(const struct mallopt_fact *f, const char *text, long *out,
				      struct diag *d);
/* The check alone. */
HM_MUST_CHECK int mallopt_value_check(const struct mallopt_fact *f, long value, struct diag *d);
#endif
