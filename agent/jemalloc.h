// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_JEMALLOC_H
#define HM_JEMALLOC_H
#include "process.h"

/* The names that jemalloc's mallctl knows; generated from agent/mallctl.tsv at build time. */
enum ctl_type {
	CTL_VOID,
	CTL_BOOL,
	CTL_UNSIGNED,
	CTL_SIZE,
	CTL_SSIZE,
	CTL_U32,
	CTL_U64,
	CTL_STRING,
	CTL_INT,
	CTL_OTHER
};
enum ctl_access { CTL_READ = 1, CTL_WRITE = 2 };
struct ctl_name {
	const char *name; /* with <i> and <j> where an index stands */
	const char *ctype;
	enum ctl_type type;
	unsigned access; /* CTL_READ | CTL_WRITE; 0: a call with no data */
	const char *condition;
	const char *meaning;
	bool acts_on_caller; /* thread.*: acts on the proxy thread only */
	bool forbidden; /* never to be used from outside (arena.<i>.reset, destroy, extent_hooks
			   ...) */
};
const struct ctl_name *ctl_table(size_t *n);
/* Finds the row of a concrete name ("arena.0.purge" matches "arena.<i>.purge"), NULL if unknown. */
const struct ctl_name *ctl_find(const char *name);
/* Nearest known names for an error message: at most max, by edit distance. Returns how many. */
size_t ctl_suggest(const char *name, const char **out, size_t max);

struct ctl_value {
	enum ctl_type type;
	union {
		bool b;
		uint64_t u; /* CTL_UNSIGNED, CTL_SIZE, CTL_U32, CTL_U64 */
		int64_t i;  /* CTL_SSIZE, CTL_INT */
	};
	char text[1024]; /* CTL_STRING */
};
/* Text to value of that type; exit 2 if it is not one (sizes as 512M allowed for CTL_SIZE). Pure.
 */
HM_MUST_CHECK int ctl_value_parse(const struct ctl_name *n, const char *text, struct ctl_value *out,
				  struct diag *d);
void ctl_value_format(const struct ctl_value *v, char *buf, size_t size);
/*
 * Reads name (old may be NULL), writes value (NULL: only read), refreshing the epoch first for
 * stats.*. Errors of mallctl come as exit 1 with a sentence for this return code, name, version and
 * build.
 */
HM_MUST_CHECK int jemalloc_ctl(struct process *p, const struct allocator *a, const char *name,
			       const struct ctl_name *row, const struct ctl_value *value,
			       struct ctl_value *old, struct diag *d);
#endif
