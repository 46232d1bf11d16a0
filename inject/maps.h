// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef HM_MAPS_H
#define HM_MAPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag.h"
#include "target.h"
#include "usage.h"

/* One line of /proc/PID/maps (proc(5)). */
struct map {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* in the file, bytes */
	int prot;	     /* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;
	bool deleted; /* the kernel's " (deleted)" suffix, removed from name */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	const char *name; /* octal escapes decoded; "" if none; owned by struct maps */
};

struct maps {
	struct map *v; /* by address */
	size_t n;
	char *text; /* holds the names */
};

/* Pure: one NUL-terminated line, changed in place; the name stays in it. -EINVAL. */
HM_MUST_CHECK int map_parse(char *line, struct map *out);
/* Pure: parses text (copied). -EINVAL on a malformed line, -ENOMEM. The caller frees with
 * maps_free. */
HM_MUST_CHECK int maps_parse(const char *text, size_t len, struct maps *out);
/*
 * The text of /proc/PID/NAME ("maps", "smaps"), at most max bytes, which the caller frees; of older
 * (NULL: none) where the kernel has no file of that name. Errors: gone (3), the cause of a refusal
 * (4), more than max (5), no descriptor left of ours (10).
 */
HM_MUST_CHECK int maps_text(const struct target *t, const char *name, const char *older, size_t max,
			    char **text, size_t *len, struct diag *d);
/* What it means that such a file could not be read: r, a negative errno, becomes one of these. */
HM_MUST_CHECK int maps_fail(const struct target *t, const char *name, size_t max, int r,
			    struct diag *d);
/* Pure: a copy of text with a NUL behind it, for a parser that keeps it; NULL without memory. */
char *maps_copy(const char *text, size_t len);
HM_MUST_CHECK int maps_read(const struct target *t, struct maps *out, struct diag *d);
void maps_free(struct maps *m);
/* The mapping that holds addr, or NULL. Binary search. */
const struct map *maps_find(const struct maps *m, uint64_t addr);
/* True if the mapping is anonymous memory: no inode and no file name ("[heap]", "[stack]",
 * "[anon:...]" count). */
bool map_is_anon(const struct map *m);
#endif
