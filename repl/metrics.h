// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_METRICS_H
#define HM_METRICS_H
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "../agent/facts.h"
#include "../inject/diag.h"

/*
 * Facts of one or more processes as Prometheus reads them (its text format 0.0.4): each fact is one
 * family, heapmedic_ and its name with _ for the dots, with a sample for each process that it is
 * known of. A family stands there once, so that all processes have to be there before it is
 * written. One family more says when each was looked at, so that a reader can tell old numbers.
 */
struct metrics {
	struct metrics_of *v;
	size_t n;
	char *output; /* the file that they are for; NULL: stdout */
	bool force;   /* whatever is there now */
};

#define METRICS_TIME "heapmedic_look_timestamp_seconds"

/* The family's name of a fact, as in heapmedic_minflt_total. */
void metrics_name(enum fact_id id, char buf[64]);
/* comm is escaped already; when: of the look. -ENOMEM. The caller ends *m with metrics_free. */
HM_MUST_CHECK int metrics_add(struct metrics *m, pid_t pid, const char *comm, const struct facts *f,
			      const struct timespec *when);
/* They are for this file, copied. Exit 2 where they are for another one already. */
HM_MUST_CHECK int metrics_for(struct metrics *m, const char *path, bool force, struct diag *d);
/* An error of out is its own to tell (ferror). */
void metrics_write(const struct metrics *m, FILE *out);
/*
 * The same into the file that they are for: it is replaced by a whole one (mode 0644), or is as it
 * was. What is there must be such a file (unless forced), or exit 2; exit 1 where it cannot be
 * written. dry_run: only whether it may be.
 */
HM_MUST_CHECK int metrics_save(const struct metrics *m, bool dry_run, struct diag *d);
void metrics_free(struct metrics *m);

/* For families of somebody else: the two lines before the samples, and the text of a label's value,
 * with what has to be escaped there. */
void metrics_head(FILE *out, const char *name, const char *type, const char *help);
void metrics_label(FILE *out, const char *text);
#endif
