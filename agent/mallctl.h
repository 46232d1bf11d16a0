// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MALLCTL_H
#define HM_MALLCTL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../inject/diag.h"

/*
 * The names that jemalloc's mallctl knows, their types, and what its return codes mean. Pure: the
 * calls are in jemalloc.h. The table is generated from agent/mallctl.tsv at build time.
 */
enum ctl_type {
	CTL_VOID,
	CTL_BOOL,
	CTL_UNSIGNED,
	CTL_SIZE,
	CTL_SSIZE, /* ssize_t and int64_t */
	CTL_U32,
	CTL_U64,
	CTL_STRING,
	CTL_INT,
	CTL_OTHER /* pointers, structures, callbacks */
};
enum ctl_access { CTL_READ = 1, CTL_WRITE = 2 };
struct ctl_name {
	const char *name; /* with <i> and <j> where an index stands */
	const char *ctype;
	enum ctl_type type;
	unsigned access;       /* CTL_READ | CTL_WRITE; 0: a call with no data */
	const char *condition; /* "" if none */
	const char *meaning;
	bool acts_on_caller; /* thread.*: acts on the proxy thread only */
	bool forbidden; /* never to be used from outside (arena.<i>.reset, destroy, extent_hooks
			   ...) */
};
const struct ctl_name *ctl_table(size_t *n);
/*
 * Finds the row of a concrete name, NULL if unknown: "arena.0.purge" and "arena.all.purge" match
 * "arena.<i>.purge". Also matches the name as the table writes it.
 */
const struct ctl_name *ctl_find(const char *name);
/* Nearest known names for an error message: at most max, by edit distance. Returns how many. */
size_t ctl_suggest(const char *name, const char **out, size_t max);
/* Does name still have an index to be filled in ("<i>")? */
bool ctl_is_pattern(const char *name);

struct ctl_value {
	enum ctl_type type;
	union {
		bool b;
		uint64_t u; /* CTL_UNSIGNED, CTL_SIZE, CTL_U32, CTL_U64 */
		int64_t i;  /* CTL_SSIZE, CTL_INT */
	};
	char text[1024]; /* CTL_STRING */
};
/* Text to value of that type; exit 2 if it is not one (sizes as 512M allowed for CTL_SIZE). */
HM_MUST_CHECK int ctl_value_parse(const struct ctl_name *n, const char *text, struct ctl_value *out,
				  struct diag *d);
void ctl_value_format(const struct ctl_value *v, char *buf, size_t size);

/* Bytes of the type in the target (x86-64): 0 for CTL_VOID and CTL_OTHER; a pointer for strings. */
size_t ctl_size(enum ctl_type type);
/* Between the value and its bytes in the target; not for strings, void and other (-EINVAL). */
HM_MUST_CHECK int ctl_value_encode(const struct ctl_value *v, unsigned char raw[8]);
HM_MUST_CHECK int ctl_value_decode(enum ctl_type type, const unsigned char raw[8],
				   struct ctl_value *out);

/* Fills d for a name that is not in the table (exit 1, with the nearest ones). -ENOENT. */
int ctl_unknown(const char *name, struct diag *d);
#endif
