// SPDX-License-Identifier: GPL-3.0-or-later
#include "ctl_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *before; /* the part in front of the index */
	enum ctl_range range;
} ranges[] = {
	{ "arena.", RANGE_ARENAS }, { "arenas.", RANGE_ARENAS }, { "bin.", RANGE_BINS },
	{ "bins.", RANGE_BINS },    { "lextent.", RANGE_LARGE }, { "lextents.", RANGE_LARGE },
};

const char *ctl_range_name(enum ctl_range r)
{
	static const char *const names[] = {
		[RANGE_ARENAS] = "arenas.narenas",
		[RANGE_BINS] = "arenas.nbins",
		[RANGE_LARGE] = "arenas.nlextents",
	};

	return (unsigned)r < sizeof(names) / sizeof(names[0]) ? names[r] : NULL;
}

/* part points at the index; the part in front of it tells what it counts. */
static enum ctl_range range_of(const char *pattern, const char *part)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		size_t len = strlen(ranges[i].before);

		if ((size_t)(part - pattern) < len || strncmp(part - len, ranges[i].before, len))
			continue;
		/* not the end of a longer word */
		if (part - len == pattern || part[-(ptrdiff_t)len - 1] == '.')
			return ranges[i].range;
	}
	return RANGE_UNKNOWN;
}

static int index_parse(const char *name, struct ctl_index *out)
{
	char *end;

	if (!strncmp(name, "all", 3)) {
		out->all = true;
		return 0;
	}
	if (*name < '0' || *name > '9')
		return -EINVAL;
	out->value = strtoull(name, &end, 10);
	if (out->value > UINT32_MAX)
		out->value = UINT32_MAX;
	return 0;
}

int ctl_path_parse(const struct ctl_name *row, const char *name, struct ctl_path *out)
{
	const char *part = row->name;

	*out = (struct ctl_path){ .row = row };
	for (;; part++, name++) {
		if (*part == '<') {
			struct ctl_index *x = &out->index[out->n];

			if (out->n == CTL_INDICES || index_parse(name, x) < 0)
				return -EINVAL;
			x->at = out->depth;
			x->range = range_of(row->name, part);
			out->n++;
		}
		out->depth++;
		part = strchr(part, '.');
		name = strchr(name, '.');
		if (!part || !name)
			return part || name ? -EINVAL : 0;
	}
}

bool ctl_path_sweeps(const struct ctl_path *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->index[i].all)
			return true;
	return false;
}

int ctl_path_name(const struct ctl_path *p, const uint64_t index[CTL_INDICES], char *buf,
		  size_t size)
{
	const char *s = p->row->name;
	size_t used = 0;
	unsigned n = 0;

	while (*s) {
		int len;

		if (*s == '<' && n < CTL_INDICES) {
			len = snprintf(buf + used, size - used, "%llu",
				       (unsigned long long)index[n++]);
			s += 3;
		} else {
			len = snprintf(buf + used, size - used, "%c", *s++);
		}
		used += (size_t)len;
		if (used >= size)
			return -ENAMETOOLONG;
	}
	return 0;
}

int ctl_path_check(const struct ctl_path *p, unsigned i, const char *name, uint64_t have,
		   struct diag *d)
{
	const struct ctl_index *x = &p->index[i];
	bool arena = x->range == RANGE_ARENAS;
	const char *count = ctl_range_name(x->range);

	/* two numbers mean all and the destroyed ones (ctl_check knows for which names) */
	if (x->all || !have || x->value < have || (arena && (x->value == 4096 || x->value == 4097)))
		return 0;
	return diag_fail(d, -ENOENT, HM_CALL_FAILED, "mallctl-no-index",
			 arena ? "`arenas` lists those that are in use; all stands for each of them"
			       : "all stands for each of them",
			 "%.100s: %" PRIu64 " is too large: %s is %" PRIu64 ", and the first is 0",
			 name, x->value, count ? count : "their number", have);
}

bool ctl_begins(const struct ctl_name *row, const char *prefix)
{
	const char *pattern = row->name;

	while (*prefix && *pattern) {
		size_t n = strspn(prefix, "0123456789");

		if (*pattern != '<' || *prefix == '<') {
			if (*pattern++ != *prefix++)
				return false;
			continue;
		}
		if (!n && !strncmp(prefix, "all", 3))
			n = 3;
		if (!n)
			return false;
		prefix += n;
		pattern += 3;
	}
	return !*prefix;
}
