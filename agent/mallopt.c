// SPDX-License-Identifier: GPL-3.0-or-later
#include "mallopt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "size.h"

/*
 * Numbers as in <malloc.h>; limits as malloc/malloc.c applies them on 64 bit. mallopt takes an int.
 * Every mallopt call merges the main arena's fast bins first.
 */
#define FAST_MAX (80L * 8 / 4)

#define DYNAMIC_ENDS                                                                               \
	"both thresholds stop adapting by themselves, for good: no call turns that on again"

static const struct mallopt_fact facts[] = {
	{ "M_MXFAST", 1, 0, FAST_MAX, true,
	  "largest block in fast bins; 0 none (no effect since 2.43)",
	  "blocks in the fast bins of other arenas stay until their next merge; thread caches are "
	  "not "
	  "affected" },
	{ "M_TRIM_THRESHOLD", -1, -1, INT_MAX, true,
	  "free top at which free() shrinks the main heap; -1 never",
	  "nothing is released now, run `trim` for that; " DYNAMIC_ENDS },
	{ "M_TOP_PAD", -2, 0, INT_MAX, true,
	  "bytes kept or added at the top when a heap changes size",
	  "heaps keep the size they have until they next grow or shrink; " DYNAMIC_ENDS },
	{ "M_MMAP_THRESHOLD", -3, 0, INT_MAX, true,
	  "size from which a block gets a mapping of its own",
	  "blocks that exist stay where they are; " DYNAMIC_ENDS },
	{ "M_MMAP_MAX", -4, 0, INT_MAX, false, "most blocks with a mapping of their own; 0 none",
	  "blocks that exist stay where they are; " DYNAMIC_ENDS },
	{ "M_PERTURB", -6, 0, 255, false, "byte that new (inverted) and freed blocks get; 0 off",
	  "blocks that exist stay as they are; every malloc and free gets slower" },
	{ "M_ARENA_TEST", -7, 1, INT_MAX, false,
	  "arenas before a limit is computed, without M_ARENA_MAX",
	  "arenas that exist stay; no effect once the limit has been computed" },
	{ "M_ARENA_MAX", -8, 1, INT_MAX, false, "most arenas that are made",
	  "arenas that exist stay, threads stay with theirs; no effect at all once the process has "
	  "computed its limit, which it does with its ninth arena: restart it with "
	  "MALLOC_ARENA_MAX then" },
};

const struct mallopt_fact *mallopt_table(size_t *n)
{
	*n = sizeof(facts) / sizeof(facts[0]);
	return facts;
}

const struct mallopt_fact *mallopt_find(const char *name)
{
	if (!strncasecmp(name, "M_", 2))
		name += 2;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (!strcasecmp(facts[i].name + 2, name))
			return &facts[i];
	return NULL;
}

int mallopt_value_check(const struct mallopt_fact *f, long value, struct diag *d)
{
	if (value < f->min || value > f->max)
		return diag_fail(d, -ERANGE, HM_USAGE, "bad-value", "see mallopt(3)",
				 "%s takes %ld to %ld, not %ld", f->name, f->min, f->max, value);
	return 0;
}

int mallopt_value_parse(const struct mallopt_fact *f, const char *text, long *out, struct diag *d)
{
	uint64_t bytes = 0;
	char *end = NULL;
	int rc = 0;

	/* strtol would take blanks and a plus; a number that does not fit is LONG_MAX or LONG_MIN
	 */
	*out = strtol(text, &end, 10);
	if (!strchr("-0123456789", *text) || end == text || *end) {
		rc = f->size ? size_parse(text, &bytes) : -EINVAL;
		*out = rc == -ERANGE || bytes > LONG_MAX ? LONG_MAX : (long)bytes;
	}
	if (rc < 0 && rc != -ERANGE)
		return diag_fail(
			d, rc, HM_USAGE, "bad-value",
			f->size ? "write bytes or a size: 4096, 128K, 32M" : "write a whole number",
			"%s: '%.64s' is not a %s", f->name, text, f->size ? "size" : "number");
	return mallopt_value_check(f, *out, d);
}
