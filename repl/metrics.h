// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_METRICS_H
#define HM_METRICS_H
#include <stdio.h>
#include <sys/types.h>

#include "../agent/facts.h"
#include "../inject/diag.h"

/*
 * Facts of one or more processes as Prometheus reads them (its text format 0.0.4): each fact is one
 * family, heapmedic_ and its name with _ for the dots, with a sample for each process that it is
 * known of. A family stands there once, so that all processes have to be there before it is
 * written.
 */
struct metrics {
	struct metrics_of *v;
	size_t n;
};

/* comm is escaped already. -ENOMEM. The caller ends *m with metrics_free. */
HM_MUST_CHECK int metrics_add(struct metrics *m, pid_t pid, const char *comm,
			      const struct facts *f);
/* An error of out is its own to tell (ferror). */
void metrics_write(const struct metrics *m, FILE *out);
void metrics_free(struct metrics *m);

/* For families of somebody else: the two lines before the samples, and the text of a label's value,
 * with what has to be escaped there. */
void metrics_head(FILE *out, const char *name, const char *type, const char *help);
void metrics_label(FILE *out, const char *text);
#endif
