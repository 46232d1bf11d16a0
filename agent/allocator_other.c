// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_other.h"

#include <errno.h>

#include "process.h"

/* Its libc is also its dynamic linker, or a part of a static program; not an allocator that was
 * linked into such a one, which has nothing of musl's own malloc then. */
static size_t musl_detect(const struct process *p, const struct module *mod,
			  struct allocator_search *s, struct allocator *v, size_t max)
{
	struct symbol at;

	(void)v;
	if (!max || mod != s->owner || s->glibc || !modules_musl(&p->mods))
		return 0;
	return !mod->is_main || module_own_symbol(mod, "__libc_malloc_impl", &at) == 0;
}

static size_t unknown_detect(const struct process *p, const struct module *mod,
			     struct allocator_search *s, struct allocator *v, size_t max)
{
	(void)p, (void)mod, (void)s, (void)v, (void)max;
	return 0;
}

static int unsupported(const struct allocator *a, const char *what, struct diag *d)
{
	if (a->ops == &musl_ops)
		return diag_fail(
			d, -ENOTSUP, HM_UNSUPPORTED, "unsupported-allocator",
			"commands that make no call still work: check, diagnose, maps, threads",
			"musl's malloc has no call for that: no %s", what);
	return diag_fail(d, -ENOTSUP, HM_UNSUPPORTED, "unknown-allocator",
			 "if that is a wrapper around another allocator, run the program without "
			 "it",
			 "the program's malloc is in %s, which is no allocator known here: no %s",
			 *a->version ? a->version : "an unnamed object", what);
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

const struct allocator_ops musl_ops = {
	.name = "musl",
	.detect = musl_detect,
	.stats = other_stats,
	.trim = other_trim,
};

const struct allocator_ops unknown_ops = {
	.name = "unknown",
	.detect = unknown_detect,
	.stats = other_stats,
	.trim = other_trim,
};
