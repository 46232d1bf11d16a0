// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_other.h"

#include <errno.h>

static bool has_symbol(const struct module *mod, const char *name)
{
	struct symbol s;

	return module_symbol(mod, name, &s) == 0;
}

/* gperftools exports the C functions of its MallocExtension, Google's TCMalloc internal ones. */
static size_t tcmalloc_detect(const struct process *p, const struct module *mod,
			      struct allocator_search *s, struct allocator *v, size_t max)
{
	(void)p, (void)s, (void)v, (void)max;
	return has_symbol(mod, "MallocExtension_GetNumericProperty") ||
	       has_symbol(mod, "MallocExtension_Internal_GetNumericProperty");
}

static size_t mimalloc_detect(const struct process *p, const struct module *mod,
			      struct allocator_search *s, struct allocator *v, size_t max)
{
	(void)p, (void)s, (void)v, (void)max;
	return has_symbol(mod, "mi_version");
}

static size_t unknown_detect(const struct process *p, const struct module *mod,
			     struct allocator_search *s, struct allocator *v, size_t max)
{
	(void)p, (void)mod, (void)s, (void)v, (void)max;
	return 0;
}

static int unsupported(const struct allocator *a, const char *what, struct diag *d)
{
	if (a->ops == &unknown_ops)
		return diag_fail(
			d, -ENOTSUP, HM_UNSUPPORTED, "unknown-allocator",
			"if that is a wrapper around another allocator, run the program "
			"without it",
			"the program's malloc is in %s, which is no allocator known here: no "
			"%s",
			*a->version ? a->version : "an unnamed object", what);
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "unsupported-allocator",
			 "glibc and jemalloc can be called",
			 "%s is recognised, but it cannot be called yet: no %s", a->ops->name,
			 what);
}

static int other_stats(struct process *p, const struct allocator *a, int argc, char **argv,
		       char **text, struct diag *d)
{
	(void)p, (void)argc, (void)argv;
	*text = NULL;
	return unsupported(a, "statistics", d);
}

static int other_trim(struct process *p, const struct allocator *a, uint64_t pad,
		      struct trim_part *part, struct diag *d)
{
	(void)p, (void)pad, (void)part;
	return unsupported(a, "trim", d);
}

const struct allocator_ops tcmalloc_ops = {
	.name = "tcmalloc",
	.detect = tcmalloc_detect,
	.stats = other_stats,
	.trim = other_trim,
};

const struct allocator_ops mimalloc_ops = {
	.name = "mimalloc",
	.detect = mimalloc_detect,
	.stats = other_stats,
	.trim = other_trim,
};

const struct allocator_ops unknown_ops = {
	.name = "unknown",
	.detect = unknown_detect,
	.stats = other_stats,
	.trim = other_trim,
};
