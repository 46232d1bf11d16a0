// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_TRIM_H
#define HM_TRIM_H
#include "../inject/usage.h"
#include "process.h"

/*
 * A trim and its measured effect. Bytes; returned counts Anonymous + Swap and may be
 * negative.
 */
struct trim_report {
	struct usage before, after;
	int64_t returned_bytes;
	struct prediction predicted; /* of all parts; known only if each of them is */
	uint64_t minflt_delta;
	uint64_t minflt; /* after it */
	const char *via; /* "proxy" or "direct" */
	struct held held;
	struct trim_part part[MAX_ALLOCATORS];
	size_t parts;
	struct diag untrimmed; /* the first one in use that could not be trimmed; or exit 0 */
};
/* Adds what one allocator is predicted to return to the sum of those before it. */
void prediction_add(struct prediction *sum, const struct prediction *p);
/* Trims every allocator in use. Exit 5 if none can be trimmed (the cause and what would help
 * named). */
HM_MUST_CHECK int trim_run(struct process *p, uint64_t pad, struct trim_report *out,
			   struct diag *d);
#endif
